package tokenizer

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// scanner reads JSON of vocabularies: they are large and flat, and a mistake in one has a place.
type scanner struct {
	file string
	src  string
	at   int
}

// maxDepth bounds the nesting of what is skipped.
const maxDepth = 128

// fail is an error at a place of the file.
func (s *scanner) fail(at int, format string, args ...any) error {
	before := s.src[:min(at, len(s.src))]
	line := strings.Count(before, "\n")
	column := utf8.RuneCountInString(before[strings.LastIndexByte(before, '\n')+1:])
	return fmt.Errorf("%s:%d:%d: %s", s.file, line+1, column+1, fmt.Sprintf(format, args...))
}

// peek is the next byte that is no white space, 0 at the end.
func (s *scanner) peek() byte {
	for s.at < len(s.src) {
		switch c := s.src[s.at]; c {
		case ' ', '\t', '\n', '\r':
			s.at++
		default:
			return c
		}
	}
	return 0
}

// expect takes c.
func (s *scanner) expect(c byte, what string) error {
	if got := s.peek(); got != c {
		if s.at >= len(s.src) {
			return s.fail(s.at, "the file ends where %s should be", what)
		}
		return s.fail(s.at, "%q where %s should be", string(rune(got)), what)
	}
	s.at++
	return nil
}

// object calls member with each key; member takes the value.
func (s *scanner) object(what string, member func(key string) error) error {
	if err := s.expect('{', what); err != nil {
		return err
	}
	if s.peek() == '}' {
		s.at++
		return nil
	}
	for {
		key, err := s.text("a key in quotes")
		if err == nil {
			err = s.expect(':', "a colon")
		}
		if err == nil {
			err = member(key)
		}
		if err != nil {
			return err
		}
		if s.peek() == '}' {
			s.at++
			return nil
		}
		if err := s.expect(',', "a comma or }"); err != nil {
			return err
		}
	}
}

// array calls element with each index; element takes the value.
func (s *scanner) array(what string, element func(i int) error) error {
	if err := s.expect('[', what); err != nil {
		return err
	}
	if s.peek() == ']' {
		s.at++
		return nil
	}
	for i := 0; ; i++ {
		if err := element(i); err != nil {
			return err
		}
		if s.peek() == ']' {
			s.at++
			return nil
		}
		if err := s.expect(',', "a comma or ]"); err != nil {
			return err
		}
	}
}

// text takes a string. Without escapes it is a part of the file, not a copy.
func (s *scanner) text(what string) (string, error) {
	if err := s.expect('"', what); err != nil {
		return "", err
	}
	from := s.at
	for s.at < len(s.src) {
		switch c := s.src[s.at]; {
		case c == '"':
			s.at++
			return s.src[from : s.at-1], nil
		case c == '\\':
			return s.escaped(from)
		case c < ' ':
			return "", s.fail(s.at, "a control character in a string")
		}
		s.at++
	}
	return "", s.fail(from-1, "a string without an end")
}

// escaped is text from the first escape on; the string starts at from.
func (s *scanner) escaped(from int) (string, error) {
	out := []byte(s.src[from:s.at])
	for s.at < len(s.src) {
		c := s.src[s.at]
		switch {
		case c == '"':
			s.at++
			return string(out), nil
		case c < ' ':
			return "", s.fail(s.at, "a control character in a string")
		case c != '\\':
			out = append(out, c)
			s.at++
			continue
		}
		r, err := s.escape()
		if err != nil {
			return "", err
		}
		out = utf8.AppendRune(out, r)
	}
	return "", s.fail(from-1, "a string without an end")
}

// escape takes one escape.
func (s *scanner) escape() (rune, error) {
	at := s.at
	if at+1 < len(s.src) {
		s.at += 2
		if c := s.src[at+1]; c != 'u' {
			if i := strings.IndexByte(`"\/bfnrt`, c); i >= 0 {
				return rune("\"\\/\b\f\n\r\t"[i]), nil
			}
			return 0, s.fail(at, `no escape is \%s`, string(rune(c)))
		}
	}
	r, err := s.unit(at)
	if err != nil || r < 0xd800 || r > 0xdfff {
		return r, err
	}
	if r < 0xdc00 && strings.HasPrefix(s.src[s.at:], `\u`) {
		s.at += 2
		if low, err := s.unit(at); err != nil || low >= 0xdc00 && low < 0xe000 {
			return 0x10000 + (r-0xd800)<<10 + low - 0xdc00, err
		}
	}
	return 0, s.fail(at, "half a surrogate pair")
}

// unit takes four hexadecimal digits.
func (s *scanner) unit(at int) (rune, error) {
	if s.at+4 > len(s.src) {
		return 0, s.fail(at, "an escape without an end")
	}
	n, err := strconv.ParseUint(s.src[s.at:s.at+4], 16, 32)
	if err != nil {
		return 0, s.fail(at, "an escape needs four hexadecimal digits")
	}
	s.at += 4
	return rune(n), nil
}

// maxID bounds ids: no vocabulary comes near, and tables are as long as the highest.
const maxID = 1<<22 - 1

// id takes a token's id.
func (s *scanner) id() (int32, error) {
	s.peek()
	from := s.at
	for s.at < len(s.src) && s.src[s.at] >= '0' && s.src[s.at] <= '9' {
		s.at++
	}
	n, err := strconv.ParseInt(s.src[from:s.at], 10, 32)
	if err != nil || n > maxID {
		return 0, s.fail(from, "an id should be here, from 0 to %d", maxID)
	}
	return int32(n), nil
}

// raw takes a value of any kind and gives its text.
func (s *scanner) raw() (string, error) {
	s.peek()
	from := s.at
	if err := s.skip(0); err != nil {
		return "", err
	}
	return s.src[from:s.at], nil
}

func (s *scanner) skip(depth int) error {
	if depth > maxDepth {
		return s.fail(s.at, "nested deeper than %d", maxDepth)
	}
	switch c := s.peek(); c {
	case '{':
		return s.object("an object", func(string) error { return s.skip(depth + 1) })
	case '[':
		return s.array("a list", func(int) error { return s.skip(depth + 1) })
	case '"':
		_, err := s.text("a string")
		return err
	}
	from := s.at
	for s.at < len(s.src) && !strings.ContainsRune(" \t\r\n,:]}[{\"", rune(s.src[s.at])) {
		s.at++
	}
	if !json.Valid([]byte(s.src[from:s.at])) {
		return s.fail(from, "no value of JSON")
	}
	return nil
}

// decode takes a small value into v, whose fields say what it should be.
func (s *scanner) decode(what string, v any) error {
	s.peek()
	at := s.at
	text, err := s.raw()
	if err != nil {
		return err
	}
	if err := json.Unmarshal([]byte(text), v); err != nil {
		return s.fail(at, "%s: %s", what, strings.TrimPrefix(err.Error(), "json: "))
	}
	return nil
}

// finish says that nothing may follow.
func (s *scanner) finish() error {
	if s.peek(); s.at < len(s.src) {
		return s.fail(s.at, "something follows the end of the object")
	}
	return nil
}
