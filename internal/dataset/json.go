package dataset

import (
	"bytes"
	"fmt"
	"unicode/utf8"
)

// maxDepth bounds the nesting of a row, and with it the checker's stack.
const maxDepth = 200

// checker is a strict JSON reader over one row: what it lets through has one meaning. Beyond the grammar it refuses
// what decoders repair in silence: invalid UTF-8, half a surrogate pair, a key that occurs twice.
type checker struct {
	raw []byte
	i   int
	err error
}

// check returns what is wrong with raw as one JSON value with nothing behind it, nil when it is sound.
func check(raw []byte) error {
	c := &checker{raw: raw}
	c.space()
	c.value(0)
	c.space()
	if c.err == nil && c.i < len(raw) {
		c.fault("something follows the row: %s", c.next())
	}
	return c.err
}

// fault records the first fault, at c.i.
func (c *checker) fault(format string, a ...any) {
	if c.err == nil {
		c.err = fmt.Errorf("byte %d: %s", c.i+1, fmt.Sprintf(format, a...))
	}
}

// next shows what stands at c.i.
func (c *checker) next() string {
	if c.i >= len(c.raw) {
		return "the end of the row"
	}
	r, n := utf8.DecodeRune(c.raw[c.i:])
	switch {
	case r == '\uFEFF':
		return "a byte order mark"
	case r == utf8.RuneError && n == 1:
		return fmt.Sprintf("the byte 0x%02x, which is not UTF-8", c.raw[c.i])
	}
	return fmt.Sprintf("%q", r)
}

func (c *checker) peek() byte {
	if c.err != nil || c.i >= len(c.raw) {
		return 0
	}
	return c.raw[c.i]
}

func (c *checker) space() {
	for c.i < len(c.raw) && isSpace(c.raw[c.i]) {
		c.i++
	}
}

func isSpace(b byte) bool { return b == ' ' || b == '\t' || b == '\n' || b == '\r' }

func (c *checker) value(depth int) {
	if depth > maxDepth {
		c.fault("nested more than %d deep", maxDepth)
		return
	}
	switch b := c.peek(); {
	case b == '{':
		c.object(depth)
	case b == '[':
		c.list(depth)
	case b == '"':
		c.text()
	case b == '-' || isDigit(b):
		c.number()
	default:
		c.word()
	}
}

func (c *checker) word() {
	for _, w := range []string{"true", "false", "null"} {
		if bytes.HasPrefix(c.raw[c.i:], []byte(w)) {
			c.i += len(w)
			return
		}
	}
	if c.peek() == '\'' {
		c.fault("JSON text stands in double quotes")
		return
	}
	hint := ""
	if bytes.HasPrefix(c.raw[c.i:], []byte("NaN")) || bytes.HasPrefix(c.raw[c.i:], []byte("Infinity")) {
		hint = "; JSON has neither NaN nor Infinity: null is what it has for no number"
	}
	c.fault("a value is due, not %s%s", c.next(), hint)
}

func (c *checker) list(depth int) {
	c.i++
	c.space()
	if c.peek() == ']' {
		c.i++
		return
	}
	for c.err == nil {
		c.space()
		c.value(depth + 1)
		c.space()
		if !c.more(']') {
			return
		}
	}
}

func (c *checker) object(depth int) {
	c.i++
	c.space()
	if c.peek() == '}' {
		c.i++
		return
	}
	var room [8][]byte
	seen := keys{few: room[:0]}
	for c.err == nil {
		c.space()
		if c.peek() != '"' {
			c.fault("a key in double quotes is due, not %s", c.next())
			return
		}
		start := c.i
		if c.text(); c.err != nil {
			return
		}
		if key := unquote(c.raw[start:c.i]); seen.add(key) {
			c.i = start
			c.fault("the key %q stands here twice", key)
			return
		}
		c.space()
		if c.peek() != ':' {
			c.fault("a : is due behind the key, not %s", c.next())
			return
		}
		c.i++
		c.space()
		c.value(depth + 1)
		c.space()
		if !c.more('}') {
			return
		}
	}
}

// more steps over a comma, or over the end of the container; it tells whether another element follows.
func (c *checker) more(end byte) bool {
	switch b := c.peek(); {
	case c.err != nil:
	case b == ',':
		c.i++
		return true
	case b == end:
		c.i++
	default:
		c.fault("a comma or %c is due, not %s", end, c.next())
	}
	return false
}

func (c *checker) number() {
	if c.peek() == '-' {
		c.i++
	}
	switch b := c.peek(); {
	case b == '0':
		c.i++
	case isDigit(b):
		c.digits()
	default:
		c.fault("a digit is due, not %s", c.next())
	}
	if c.peek() == '.' {
		c.i++
		c.digits()
	}
	if b := c.peek(); b == 'e' || b == 'E' {
		c.i++
		if b := c.peek(); b == '+' || b == '-' {
			c.i++
		}
		c.digits()
	}
}

func (c *checker) digits() {
	if !isDigit(c.peek()) {
		c.fault("a digit is due, not %s", c.next())
	}
	for isDigit(c.peek()) {
		c.i++
	}
}

func isDigit(b byte) bool { return b >= '0' && b <= '9' }

// keys are those of one object: few in most, and a map only where there are many.
type keys struct {
	few  [][]byte
	many map[string]bool
}

// add tells whether key was there before. It keeps key, which is of the row.
func (k *keys) add(key []byte) bool {
	if k.many != nil {
		was := k.many[string(key)]
		k.many[string(key)] = true
		return was
	}
	for _, f := range k.few {
		if bytes.Equal(f, key) {
			return true
		}
	}
	if k.few = append(k.few, key); len(k.few) > 32 {
		k.many = map[string]bool{}
		for _, f := range k.few {
			k.many[string(f)] = true
		}
	}
	return false
}
