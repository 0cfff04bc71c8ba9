package dataset

import (
	"bytes"
	"iter"
	"strconv"
)

// value is one checked JSON value, without space around it. It is read in place: a row's columns cost nothing until
// they are asked for, and a list of a million ids is never a tree of a million nodes.
type value []byte

// kind is what the value is, as messages say it.
func (v value) kind() string {
	switch v[0] {
	case '{':
		if bytes.HasPrefix(v, []byte(`{"binary":`)) {
			return "binary" // what a packing writes for bytes that are no text
		}
		return "an object"
	case '[':
		return "a list"
	case '"':
		return "text"
	case 't', 'f':
		return "a boolean"
	case 'n':
		return "null"
	}
	return "a number"
}

func (v value) isText() bool   { return v[0] == '"' }
func (v value) isList() bool   { return v[0] == '[' }
func (v value) isObject() bool { return v[0] == '{' }
func (v value) isNull() bool   { return v[0] == 'n' }

// isBlank tells whether there is nothing in it: null, "", [] or {}.
func (v value) isBlank() bool {
	return v.isNull() || (len(v) >= 2 && (v.isText() || v.isList() || v.isObject()) && skipSpace(v, 1) == len(v)-1)
}

// text is the content of text.
func (v value) text() string { return string(unquote(v)) }

// truth is the content of a boolean.
func (v value) truth() (is, ok bool) { return v[0] == 't', v[0] == 't' || v[0] == 'f' }

// number is the content of a number; an overflow is infinite.
func (v value) number() (float64, bool) {
	if v[0] != '-' && !isDigit(v[0]) {
		return 0, false
	}
	f, _ := strconv.ParseFloat(string(v), 64)
	return f, true
}

// whole is the content of a number that is written as a whole one and fits.
func (v value) whole() (int64, bool) {
	n, err := strconv.ParseInt(string(v), 10, 64)
	return n, err == nil
}

// items are the elements of a list.
func (v value) items() iter.Seq2[int, value] {
	return func(yield func(int, value) bool) {
		for n, i := 0, skipSpace(v, 1); v[i] != ']'; n++ {
			end := skip(v, i)
			if !yield(n, v[i:end]) {
				return
			}
			i = skipComma(v, end)
		}
	}
}

// members are the keys of an object with their values, in file order. A key is of the row: copy it to keep it.
func (v value) members() iter.Seq2[[]byte, value] {
	return func(yield func([]byte, value) bool) {
		for i := skipSpace(v, 1); v[i] != '}'; {
			colon := skip(v, i)
			key := unquote(v[i:colon])
			start := skipSpace(v, skipSpace(v, colon)+1)
			end := skip(v, start)
			if !yield(key, v[start:end]) {
				return
			}
			i = skipComma(v, end)
		}
	}
}

// member is the value of a key of an object, nil when there is none.
func (v value) member(key string) value {
	for k, item := range v.members() {
		if string(k) == key {
			return item
		}
	}
	return nil
}

// item is element n of a list, nil when there is none.
func (v value) item(n int) value {
	for i, item := range v.items() {
		if i == n {
			return item
		}
	}
	return nil
}

// skip returns the index behind the checked value that starts at s[i].
func skip(s []byte, i int) int {
	switch s[i] {
	case '"':
		return skipText(s, i)
	case '{', '[':
		return skipNested(s, i)
	}
	for i < len(s) && s[i] != ',' && s[i] != ']' && s[i] != '}' && !isSpace(s[i]) {
		i++
	}
	return i
}

func skipNested(s []byte, i int) int {
	for depth := 0; ; {
		switch s[i] {
		case '"':
			i = skipText(s, i)
			continue
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		}
		i++
		if depth == 0 {
			return i
		}
	}
}

// skipText goes from quote to quote: one with an odd number of backslashes before it is part of the text.
func skipText(s []byte, i int) int {
	for i++; ; i++ {
		i += bytes.IndexByte(s[i:], '"')
		slashes := i
		for s[slashes-1] == '\\' {
			slashes--
		}
		if (i-slashes)%2 == 0 {
			return i + 1
		}
	}
}

func skipSpace(s []byte, i int) int {
	for i < len(s) && isSpace(s[i]) {
		i++
	}
	return i
}

func skipComma(s []byte, i int) int {
	if i = skipSpace(s, i); s[i] == ',' {
		i = skipSpace(s, i+1)
	}
	return i
}
