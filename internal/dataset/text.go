package dataset

import (
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// plain marks the bytes that stand for themselves inside JSON text: ASCII but for controls, " and \.
var plain = func() (t [256]bool) {
	for b := 0x20; b < 0x80; b++ {
		t[b] = b != '"' && b != '\\'
	}
	return t
}()

// text checks the JSON text that starts at c.i.
func (c *checker) text() {
	c.i++
	for c.i < len(c.raw) {
		switch b := c.raw[c.i]; {
		case plain[b]:
			c.i++
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
		default:
			r, n := utf8.DecodeRune(c.raw[c.i:])
			if r == utf8.RuneError && n == 1 {
				c.fault("%s", c.next())
				return
			}
			c.i += n
		}
	}
	c.fault("text without its closing quote")
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
	i := 0
	for i < len(s) && s[i] != '\\' {
		i++
	}
	if i == len(s) {
		return s
	}
	out := append(make([]byte, 0, len(s)), s[:i]...)
	for i < len(s) {
		if s[i] != '\\' {
			out = append(out, s[i])
			i++
			continue
		}
		if s[i+1] == 'u' {
			r, n := unicodeEscape(s[i:])
			out = utf8.AppendRune(out, r)
			i += n
			continue
		}
		out = append(out, unescaped(s[i+1]))
		i += 2
	}
	return out
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
