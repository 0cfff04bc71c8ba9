package jinja

import (
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
	"unicode"
)

const maxDigits = 4300 // of an integer as text, Python's limit

// str is Python's str(v).
func (x *exec) str(v Value) string {
	switch t := v.(type) {
	case string:
		return t
	case markup:
		return string(t)
	case *undefined:
		return ""
	}
	return x.repr(v)
}

// repr is Python's repr(v).
func (x *exec) repr(v Value) string {
	if i, ok := v.(int64); ok {
		return strconv.FormatInt(i, 10)
	}
	r := &reprWriter{x: x}
	r.value(v, 0)
	return r.b.String()
}

type reprWriter struct {
	x *exec
	b strings.Builder
}

func (r *reprWriter) put(s string) {
	r.x.charge(len(s))
	r.b.WriteString(s)
}

func (r *reprWriter) value(v Value, depth int) {
	r.x.step(1)
	tooDeep(depth, "print")
	switch t := v.(type) {
	case *List:
		r.items("[", t.Items, "]", depth)
	case *tuple:
		end := ")"
		if len(t.items) == 1 {
			end = ",)"
		}
		r.items("(", t.items, end, depth)
	case *Dict:
		r.dict(t, depth)
	case *view:
		r.items(typeName(t)+"([", r.x.viewItems(t), "])", depth)
	case *namespace:
		r.put("<Namespace ")
		r.dict(t.attrs, depth+1)
		r.put(">")
	case *loopState:
		r.put(fmt.Sprintf("<LoopContext %d/%d>", t.index0+1, t.length()))
	default:
		r.put(scalar(v))
	}
}

func (r *reprWriter) items(open string, items []Value, end string, depth int) {
	r.put(open)
	for i, item := range items {
		if i > 0 {
			r.put(", ")
		}
		r.value(item, depth+1)
	}
	r.put(end)
}

func (r *reprWriter) dict(d *Dict, depth int) {
	r.put("{")
	for i, k := range d.keys {
		if i > 0 {
			r.put(", ")
		}
		r.value(k, depth+1)
		r.put(": ")
		r.value(d.vals[i], depth+1)
	}
	r.put("}")
}

// scalar is repr of a value that holds no others.
func scalar(v Value) string {
	switch t := v.(type) {
	case nil:
		return "None"
	case bool:
		if t {
			return "True"
		}
		return "False"
	case int64:
		return strconv.FormatInt(t, 10)
	case *big.Int:
		return bigString(t)
	case float64:
		return floatRepr(t)
	case string:
		return quote(t)
	case markup:
		return "Markup(" + quote(string(t)) + ")"
	case *rangeValue:
		if t.step != 1 {
			return fmt.Sprintf("range(%d, %d, %d)", t.start, t.stop, t.step)
		}
		return fmt.Sprintf("range(%d, %d)", t.start, t.stop)
	case *undefined:
		return "Undefined"
	case *macro:
		return "<Macro " + quote(t.def.name) + ">"
	}
	unsupported("printing a %s, which in Python shows an address", typeName(v))
	return ""
}

func bigString(n *big.Int) string {
	s := ""
	if n.BitLen() <= 4*maxDigits {
		s = n.String()
	}
	if s == "" || len(strings.TrimPrefix(s, "-")) > maxDigits {
		fail("ValueError", "an integer of more than %d digits cannot be printed", maxDigits)
	}
	return s
}

// floatRepr is repr of a float: the shortest digits that mean it, with an exponent below 1e-4 and from 1e16 on.
func floatRepr(f float64) string {
	switch {
	case math.IsNaN(f):
		return "nan"
	case math.IsInf(f, 1):
		return "inf"
	case math.IsInf(f, -1):
		return "-inf"
	}
	if a := math.Abs(f); a != 0 && (a < 1e-4 || a >= 1e16) {
		return strconv.FormatFloat(f, 'e', -1, 64)
	}
	s := strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}

// quote is repr of a str.
func quote(s string) string {
	q := '\''
	if strings.Contains(s, "'") && !strings.Contains(s, "\"") {
		q = '"'
	}
	var b strings.Builder
	b.WriteRune(q)
	for _, r := range s {
		switch {
		case r == q || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\r':
			b.WriteString(`\r`)
		case r == '\t':
			b.WriteString(`\t`)
		case unicode.IsPrint(r):
			b.WriteRune(r)
		case r < 0x100:
			fmt.Fprintf(&b, `\x%02x`, r)
		case r < 0x10000:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			fmt.Fprintf(&b, `\U%08x`, r)
		}
	}
	b.WriteRune(q)
	return b.String()
}
