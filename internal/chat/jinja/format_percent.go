package jinja

import (
	"math"
	"strconv"
	"strings"
)

// percent is a run of format % arg.
type percent struct {
	x       *exec
	format  string
	i       int // the byte of format that is next
	b       strings.Builder
	items   []Value
	used    int
	mapping *Dict // what %(name)s looks up, nil for none
}

// percentFormat is format % arg.
func (x *exec) percentFormat(format string, arg Value) string {
	p := &percent{x: x, format: format, items: []Value{arg}}
	mayStay := false // that not all of arg is used
	switch t := arg.(type) {
	case *tuple:
		p.items = t.items
	case *Dict:
		p.mapping, mayStay = t, true
	case *List, *rangeValue, *undefined: // what has a __getitem__ passes for a mapping
		mayStay = true
	}
	p.run()
	if p.used < len(p.items) && !mayStay {
		fail("TypeError", "not all arguments converted during string formatting")
	}
	return p.b.String()
}

func (p *percent) put(s string) {
	p.x.charge(len(s))
	p.b.WriteString(s)
}

func (p *percent) run() {
	for {
		rest := p.format[p.i:]
		j := strings.IndexByte(rest, '%')
		if j < 0 {
			p.put(rest)
			return
		}
		p.put(rest[:j])
		p.i += j + 1
		p.field()
	}
}

func (p *percent) take() Value {
	if p.used >= len(p.items) {
		fail("TypeError", "not enough arguments for format string")
	}
	p.used++
	return p.items[p.used-1]
}

func (p *percent) peek() byte {
	if p.i >= len(p.format) {
		fail("ValueError", "incomplete format")
	}
	return p.format[p.i]
}

// field formats what stands behind a %.
func (p *percent) field() {
	var v Value = unset
	if p.peek() == '(' {
		v = p.named()
	}
	sp := spec{fill: ' ', prec: -1, align: '>'}
	for ; strings.IndexByte("-+ #0", p.peek()) >= 0; p.i++ {
		switch c := p.peek(); c {
		case '-':
			sp.align = '<'
		case '0':
			sp.fill = '0'
		case '#':
			sp.alt = true
		default:
			sp.sign = c
		}
	}
	sp.width = p.number()
	if p.peek() == '.' {
		p.i++
		sp.prec = p.number()
	}
	sp.verb = p.peek()
	p.i++
	if sp.verb == '%' {
		p.put("%")
		return
	}
	if v == unset {
		v = p.take()
	}
	p.put(p.x.percentItem(sp, v))
}

func (p *percent) named() Value {
	name, _, ok := strings.Cut(p.format[p.i+1:], ")")
	if p.mapping == nil || !ok {
		fail("TypeError", "format requires a mapping")
	}
	v, ok := p.mapping.Get(name)
	if !ok {
		fail("KeyError", "'%s'", name)
	}
	p.i += len(name) + 2
	return v
}

func (p *percent) number() int {
	if p.peek() == '*' {
		unsupported("%%*")
	}
	from := p.i
	for c := p.peek(); c >= '0' && c <= '9'; c = p.peek() {
		p.i++
	}
	if from == p.i {
		return 0
	}
	n, err := strconv.Atoi(p.format[from:p.i])
	if err != nil || n > math.MaxInt32 {
		fail("ValueError", "width too big")
	}
	return n
}

func (x *exec) percentItem(sp spec, v Value) string {
	switch sp.verb {
	case 's':
		sp.fill = ' '
		return x.padText(sp, x.str(v))
	case 'r':
		sp.fill = ' '
		return x.padText(sp, x.repr(v))
	case 'd', 'i', 'u':
		sp.verb = 'd'
		if f, ok := v.(float64); ok && !math.IsNaN(f) && !math.IsInf(f, 0) {
			v = truncated(f)
		}
	case 'x', 'X', 'o':
		if is[float64](v) {
			fail("TypeError", "%%%c format: an integer is required, not float", sp.verb)
		}
	case 'e', 'E', 'f', 'F', 'g', 'G':
		if f, ok := asFloat(v); ok {
			v = f
		}
	case 'a', 'c':
		unsupported("%%%c", sp.verb)
	default:
		fail("ValueError", "unsupported format character '%c'", sp.verb)
	}
	mustBeDefined(v)
	if !isNumber(v) || sp.verb == 'd' && is[float64](v) {
		fail("TypeError", "%%%c format: a real number is required, not %s", sp.verb, typeName(v))
	}
	if sp.verb == 'd' && sp.prec >= 0 || sp.alt {
		unsupported("a format of this kind")
	}
	if sp.align == '<' {
		sp.fill = ' '
	} else if sp.fill == '0' {
		sp.align = '='
	}
	return x.formatNumber(sp, v)
}
