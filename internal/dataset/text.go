package dataset

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// Eight bytes at a time: each constant has its byte in all eight places.
const (
	ones    = 0x0101010101010101
	tops    = 0x80 * ones
	spaces  = 0x20 * ones
	quotes  = '"' * ones
	slashes = '\\' * ones
)

// skipPlain returns the index of the first byte from i on that does not stand for itself inside JSON text: ASCII but for
// controls, " and \ does. A byte of x is below n where x-n borrows, and zero where x-1 does; what a borrow carries on to is
// above the first such byte, which alone is asked for (Warren, Hacker's Delight, 6-1).
func skipPlain(s []byte, i int) int {
	for ; i+8 <= len(s); i += 8 {
		x := binary.LittleEndian.Uint64(s[i:])
		q, b := x^quotes, x^slashes
		if stop := (x | (x - spaces) | (q-ones)&^q | (b-ones)&^b) & tops; stop != 0 {
			return i + bits.TrailingZeros64(stop)/8
		}
	}
	for i < len(s) && s[i] >= 0x20 && s[i] < 0x80 && s[i] != '"' && s[i] != '\\' {
		i++
	}
	return i
}

// text checks the JSON text that starts at c.i.
func (c *checker) text() {
	for c.i++; ; {
		if c.i = skipPlain(c.raw, c.i); c.i >= len(c.raw) {
			c.fault("text without its closing quote")
			return
		}
		switch b := c.raw[c.i]; {
		case b == '"':
			c.i++
			return
		case b == '\\':
			if !c.escape() {
				return
			}
		case b < 0x20:
			c.fault("%s inside text is written as an escape (\\n, \\t, \\u%04x)", c.next(), b)
			return
		case !c.characters():
			return
		}
	}
}

// characters steps over those of several bytes; it tells whether they are sound.
func (c *checker) characters() bool {
	end := c.i
	for end < len(c.raw) && c.raw[end] >= 0x80 {
		end++
	}
	if utf8.Valid(c.raw[c.i:end]) {
		c.i = end
		return true
	}
	for {
		r, n := utf8.DecodeRune(c.raw[c.i:end])
		if r == utf8.RuneError && n <= 1 {
			c.fault("%s", c.next())
			return false
		}
		c.i += n
	}
}

// escape steps over one; it tells whether it is sound.
func (c *checker) escape() bool {
	if c.i+1 >= len(c.raw) {
		c.fault("text without its closing quote")
		return false
	}
	switch b := c.raw[c.i+1]; b {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		c.i += 2
		return true
	case 'u':
		r, n := unicodeEscape(c.raw[c.i:])
		if n == 0 {
			c.fault("\\u needs four hexadecimal digits")
			return false
		}
		if utf16.IsSurrogate(r) {
			c.fault("%s is half of a pair that stands for one character", c.raw[c.i:c.i+6])
			return false
		}
		c.i += n
		return true
	}
	c.fault("\\%s is no escape", c.raw[c.i+1:min(c.i+2, len(c.raw))])
	return false
}

// unicodeEscape reads \uXXXX, or the two that make a pair; n is 0 when there is none. Half a pair comes back as itself.
func unicodeEscape(s []byte) (r rune, n int) {
	hex := func(s []byte) (rune, bool) {
		if len(s) < 6 || s[0] != '\\' || s[1] != 'u' {
			return 0, false
		}
		v, err := strconv.ParseUint(string(s[2:6]), 16, 16)
		return rune(v), err == nil
	}
	r, ok := hex(s)
	if !ok {
		return 0, 0
	}
	if utf16.IsSurrogate(r) {
		if second, ok := hex(s[6:]); ok {
			if both := utf16.DecodeRune(r, second); both != utf8.RuneError {
				return both, 12
			}
		}
	}
	return r, 6
}

// unquote returns the content of JSON text that was checked, quotes included in s.
func unquote(s []byte) []byte {
	s = s[1 : len(s)-1]
	i := bytes.IndexByte(s, '\\')
	if i < 0 {
		return s
	}
	out := make([]byte, 0, len(s))
	for ; i >= 0; i = bytes.IndexByte(s, '\\') {
		out = append(out, s[:i]...)
		if s[i+1] == 'u' {
			r, n := unicodeEscape(s[i:])
			out, s = utf8.AppendRune(out, r), s[i+n:]
			continue
		}
		out, s = append(out, unescaped(s[i+1])), s[i+2:]
	}
	return append(out, s...)
}

func unescaped(b byte) byte {
	switch b {
	case 'b':
		return '\b'
	case 'f':
		return '\f'
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	}
	return b
}
