package wire

import (
	"fmt"
	"io"
	"unicode/utf16"
	"unicode/utf8"
)

const (
	bufferSize = 64 << 10
	// longestNumber is far above what any writer of doubles or 64-bit integers makes.
	longestNumber = 512
	longestString = 1 << 20
	deepest       = 64
)

// scanner reads JSON from a stream by asking for what should come. The first error stays: from then on every method
// returns at once with a zero value, so that callers check err once. It is strict: no comments, no trailing commas, no
// value of another type. All nesting is bounded, and every list it builds is at most a constant times its input.
type scanner struct {
	r        io.Reader
	buf      []byte // buf[pos:] is read and not used
	pos      int
	consumed int64 // bytes before buf[0]
	eof      bool
	err      error
	where    []byte // the place of the value being read, as samples[3].model_input
	depth    int
	longest  int  // bytes of a string
	index    int  // of the number being read in a list, -1 elsewhere; part of the place
	isNull   bool // null was seen, and consumed, by null; skip then has nothing to do
	ints     []int32
	floats   []float64
	str      []byte

	shape   Shape
	marked  string       // the place of the member that told the shape; empty: none has
	objects [][]LossType // of the older shape: those in each sample
}

func newScanner(r io.Reader) *scanner {
	return &scanner{r: r, buf: make([]byte, 0, bufferSize), index: -1, longest: longestString}
}

// fail keeps the first error, with the place and the byte it was met at.
func (s *scanner) fail(format string, a ...any) {
	if s.err != nil {
		return
	}
	place := string(s.where)
	if s.index >= 0 {
		place += fmt.Sprintf("[%d]", s.index)
	}
	if place != "" {
		place += ": "
	}
	s.err = fmt.Errorf("%s%w at byte %d", place, fmt.Errorf(format, a...), s.consumed+int64(s.pos))
}

// more makes at least n bytes available where the stream has them; false after an error too, so that loops end.
func (s *scanner) more(n int) bool {
	if len(s.buf)-s.pos >= n {
		return s.err == nil
	}
	s.consumed += int64(s.pos)
	s.buf = s.buf[:copy(s.buf, s.buf[s.pos:])]
	s.pos = 0
	for idle := 0; len(s.buf) < n && !s.eof && s.err == nil; {
		got, err := s.r.Read(s.buf[len(s.buf):cap(s.buf)])
		s.buf = s.buf[:len(s.buf)+got]
		switch {
		case err == io.EOF:
			s.eof = true
		case err != nil:
			s.fail("reading: %w", err)
		case got == 0:
			if idle++; idle == 100 {
				s.fail("reading: %w", io.ErrNoProgress)
			}
		}
	}
	return len(s.buf) >= n && s.err == nil
}

// peek returns the next byte that is not white space, 0 at the end.
func (s *scanner) peek() byte {
	for s.err == nil {
		for s.pos < len(s.buf) {
			switch c := s.buf[s.pos]; c {
			case ' ', '\t', '\n', '\r':
				s.pos++
			default:
				return c
			}
		}
		if !s.more(1) {
			break
		}
	}
	return 0
}

// take consumes c, the next byte that is not white space, or fails.
func (s *scanner) take(c byte) bool {
	if got := s.peek(); got != c || s.err != nil {
		s.want("%q", c)
		return false
	}
	s.pos++
	return true
}

// want fails with what was expected, in the words of format, and what is there.
func (s *scanner) want(format string, a ...any) {
	found := "the end of the input"
	switch c := s.peek(); {
	case s.err != nil:
		return
	case c == 0 && s.pos >= len(s.buf):
		s.fail("want "+format+", found %s: %w", append(a, found, io.ErrUnexpectedEOF)...)
		return
	case c == '{':
		found = "an object"
	case c == '[':
		found = "an array"
	case c == '"':
		found = "a string"
	case c == '-' || c >= '0' && c <= '9':
		found = "a number"
	case c == 't' || c == 'f' || c == 'n':
		found = "a literal"
	default:
		found = fmt.Sprintf("%q", c)
	}
	s.fail("want "+format+", found %s", append(a, found)...)
}

// end fails unless only white space is left.
func (s *scanner) end() {
	if s.err == nil && s.peek() != 0 || s.err == nil && s.pos < len(s.buf) {
		s.want("the end of the input")
	}
}

// within runs f with name added to the place.
func (s *scanner) within(name string, f func()) {
	n := len(s.where)
	if n > 0 {
		s.where = append(s.where, '.')
	}
	s.where = append(s.where, name...)
	f()
	s.where = s.where[:n]
}

func (s *scanner) enter() bool {
	if s.depth++; s.depth > deepest {
		s.fail("nested deeper than %d", deepest)
	}
	return s.err == nil
}

// object reads an object; member is called at each value and must consume it.
func (s *scanner) object(member func(name string)) {
	if !s.take('{') || !s.enter() {
		return
	}
	defer func() { s.depth-- }()
	if s.peek() == '}' {
		s.pos++
		return
	}
	for s.err == nil {
		name := s.name()
		if !s.take(':') {
			return
		}
		s.isNull = false
		member(name)
		if !s.another('}') {
			return
		}
	}
}

// array reads an array; element is called at each value, with its index in the place, and must consume it.
func (s *scanner) array(element func(i int)) {
	if !s.take('[') || !s.enter() {
		return
	}
	defer func() { s.depth-- }()
	if s.peek() == ']' {
		s.pos++
		return
	}
	n := len(s.where)
	for i := 0; s.err == nil; i++ {
		s.where = fmt.Appendf(s.where[:n], "[%d]", i)
		s.isNull = false
		element(i)
		s.where = s.where[:n]
		if !s.another(']') {
			return
		}
	}
}

// another consumes a comma, and returns true, or the closing byte.
func (s *scanner) another(closing byte) bool {
	switch c := s.peek(); {
	case s.err != nil:
		return false
	case c == ',':
		s.pos++
		return true
	case c == closing:
		s.pos++
		return false
	}
	s.want("%q or %q", ',', closing)
	return false
}

// null consumes null when it is next. A skip that follows has nothing more to do.
func (s *scanner) null() bool {
	if s.peek() != 'n' {
		return false
	}
	s.literal("null")
	s.isNull = s.err == nil
	return true
}

func (s *scanner) literal(word string) {
	if !s.more(len(word)) || string(s.buf[s.pos:s.pos+len(word)]) != word {
		s.fail("want %s", word)
		return
	}
	s.pos += len(word)
}

// boolean reads true or false; null is false.
func (s *scanner) boolean() bool {
	switch s.peek() {
	case 't':
		s.literal("true")
		return s.err == nil
	case 'f':
		s.literal("false")
	case 'n':
		s.literal("null")
	default:
		s.want("true or false")
	}
	return false
}

// skip reads any value and forgets it.
func (s *scanner) skip() {
	if s.isNull {
		s.isNull = false
		return
	}
	switch c := s.peek(); {
	case s.err != nil:
	case c == '{':
		s.object(func(string) { s.skip() })
	case c == '[':
		s.array(func(int) { s.skip() })
	case c == '"':
		s.string()
	case c == 't' || c == 'f' || c == 'n':
		s.boolean()
	case c == '-' || c >= '0' && c <= '9':
		s.number()
	default:
		s.want("a value")
	}
}

// text reads a string, the value of name; null is "".
func (s *scanner) text(name string) (v string) {
	if s.null() {
		return ""
	}
	s.within(name, func() { v = string(s.string()) })
	return v
}

// word is text that is not empty when it is there.
func (s *scanner) word(name string) string {
	there := s.peek() == '"'
	v := s.text(name)
	if there && v == "" {
		s.within(name, func() { s.fail("is empty; leave it out for the default") })
	}
	return v
}

// name reads the key of a member.
func (s *scanner) name() string {
	if s.peek() != '"' {
		s.want("a member's name")
		return ""
	}
	return string(s.string())
}

// string reads a string; the bytes are valid until the next call.
func (s *scanner) string() []byte {
	if s.peek() != '"' {
		s.want("a string")
		return nil
	}
	s.pos++
	s.str = s.str[:0]
	for s.more(1) {
		start := s.pos
		for s.pos < len(s.buf) && s.buf[s.pos] != '"' && s.buf[s.pos] != '\\' && s.buf[s.pos] >= ' ' {
			s.pos++
		}
		if s.str = append(s.str, s.buf[start:s.pos]...); len(s.str) > s.longest {
			s.fail("a string is longer than %d bytes", s.longest)
			return nil
		}
		switch {
		case s.pos == len(s.buf):
		case s.buf[s.pos] == '"':
			s.pos++
			if !utf8.Valid(s.str) {
				s.fail("a string is not UTF-8")
				return nil
			}
			return s.str
		case s.buf[s.pos] == '\\':
			s.escape()
		default:
			s.fail("a control character in a string")
		}
	}
	s.fail("a string has no end: %w", io.ErrUnexpectedEOF)
	return nil
}

func (s *scanner) escape() {
	if !s.more(2) {
		s.fail("a string has no end: %w", io.ErrUnexpectedEOF)
		return
	}
	c := s.buf[s.pos+1]
	s.pos += 2
	switch c {
	case '"', '\\', '/':
		s.str = append(s.str, c)
	case 'b':
		s.str = append(s.str, '\b')
	case 'f':
		s.str = append(s.str, '\f')
	case 'n':
		s.str = append(s.str, '\n')
	case 'r':
		s.str = append(s.str, '\r')
	case 't':
		s.str = append(s.str, '\t')
	case 'u':
		r := s.hex4()
		if utf16.IsSurrogate(r) {
			r = s.lowSurrogate(r)
		}
		s.str = utf8.AppendRune(s.str, r)
	default:
		s.fail("\\%c is not an escape", c)
	}
}

// lowSurrogate joins high with the escape that follows; a lone half becomes U+FFFD.
func (s *scanner) lowSurrogate(high rune) rune {
	if !s.more(6) || s.buf[s.pos] != '\\' || s.buf[s.pos+1] != 'u' {
		return utf8.RuneError
	}
	s.pos += 2
	low := s.hex4()
	r := utf16.DecodeRune(high, low)
	if r == utf8.RuneError && !utf16.IsSurrogate(low) {
		s.str = utf8.AppendRune(s.str, utf8.RuneError)
		return low
	}
	return r
}

func (s *scanner) hex4() rune {
	if !s.more(4) {
		s.fail("\\u wants four hexadecimal digits")
		return 0
	}
	var r rune
	for _, c := range s.buf[s.pos : s.pos+4] {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		case c >= 'A' && c <= 'F':
			c -= 'A' - 10
		default:
			s.fail("\\u wants four hexadecimal digits")
			return 0
		}
		r = r<<4 | rune(c)
	}
	s.pos += 4
	return r
}
