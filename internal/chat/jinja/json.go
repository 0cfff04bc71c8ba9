package jinja

import (
	"fmt"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
)

// jsonWriter is json.dumps with the options that templates may give.
type jsonWriter struct {
	x           *exec
	b           strings.Builder
	ascii, sort bool
	lines       bool // an item a line
	indent      string
	comma       string // between items
	colon       string // behind keys
}

// tojsonFilter is the one of transformers, which escapes no HTML and keeps the order of keys.
func tojsonFilter(x *exec, v Value, p []Value) Value {
	w := &jsonWriter{x: x, comma: ", ", colon: ": ", ascii: isTrue(p[0]), sort: isTrue(p[3])}
	if isSet(p[1]) {
		w.lines, w.comma = true, ","
		w.setIndent(p[1])
	}
	if isSet(p[2]) {
		seps := x.items(p[2])
		if len(seps) != 2 {
			fail("ValueError", "the separators of tojson are two")
		}
		w.comma, w.colon = stringArg("tojson", seps[0]), stringArg("tojson", seps[1])
	}
	w.value(v, 0)
	return w.b.String()
}

func (w *jsonWriter) setIndent(v Value) {
	if s, ok := text(v); ok {
		w.indent = s
		return
	}
	n := max(intArg("tojson", v), 0)
	w.x.chargeTimes(1, n)
	w.indent = strings.Repeat(" ", n)
}

func (w *jsonWriter) put(s string) {
	w.x.charge(len(s))
	w.b.WriteString(s)
}

func (w *jsonWriter) newline(depth int) {
	if w.lines {
		w.put("\n")
		w.x.chargeTimes(len(w.indent), depth)
		w.b.WriteString(strings.Repeat(w.indent, depth))
	}
}

func (w *jsonWriter) value(v Value, depth int) {
	w.x.step(1)
	tooDeep(depth, "write as JSON")
	switch t := v.(type) {
	case string:
		w.text(t)
	case markup:
		w.text(string(t))
	case *List:
		w.array(t.Items, depth)
	case *tuple:
		w.array(t.items, depth)
	case *Dict:
		w.object(t, depth)
	default:
		s, ok := jsonScalar(v)
		if !ok {
			fail("TypeError", "Object of type %s is not JSON serializable", typeName(v))
		}
		w.put(s)
	}
}

func jsonScalar(v Value) (s string, ok bool) {
	switch t := v.(type) {
	case nil:
		return "null", true
	case bool:
		return strconv.FormatBool(t), true
	case int64:
		return strconv.FormatInt(t, 10), true
	case *big.Int:
		return bigString(t), true
	case float64:
		switch {
		case math.IsNaN(t):
			return "NaN", true
		case math.IsInf(t, 1):
			return "Infinity", true
		case math.IsInf(t, -1):
			return "-Infinity", true
		}
		return floatRepr(t), true
	}
	return "", false
}

func (w *jsonWriter) array(items []Value, depth int) {
	if len(items) == 0 {
		w.put("[]")
		return
	}
	w.put("[")
	for i, item := range items {
		if i > 0 {
			w.put(w.comma)
		}
		w.newline(depth + 1)
		w.value(item, depth+1)
	}
	w.newline(depth)
	w.put("]")
}

func (w *jsonWriter) object(d *Dict, depth int) {
	if d.Len() == 0 {
		w.put("{}")
		return
	}
	w.put("{")
	for n, i := range w.order(d) {
		if n > 0 {
			w.put(w.comma)
		}
		w.newline(depth + 1)
		w.key(d.keys[i])
		w.put(w.colon)
		w.value(d.vals[i], depth+1)
	}
	w.newline(depth)
	w.put("}")
}

// order is that of the entries: as set, or by key.
func (w *jsonWriter) order(d *Dict) []int {
	w.x.charge(8 * d.Len())
	order := make([]int, d.Len())
	for i := range order {
		order[i] = i
	}
	if w.sort {
		slices.SortStableFunc(order, func(i, j int) int { return int(w.x.compare("<", d.keys[i], d.keys[j])) })
	}
	return order
}

func (w *jsonWriter) key(k Value) {
	if s, ok := text(k); ok {
		w.text(s)
		return
	}
	s, ok := jsonScalar(k)
	if !ok {
		fail("TypeError", "keys must be str, int, float, bool or None, not %s", typeName(k))
	}
	w.put(`"` + s + `"`)
}

var jsonEscapes = map[rune]string{'"': `\"`, '\\': `\\`, '\n': `\n`, '\r': `\r`, '\t': `\t`, '\b': `\b`, '\f': `\f`}

func (w *jsonWriter) text(s string) {
	w.x.charge(len(s) + 2)
	w.b.WriteByte('"')
	from := 0
	for i, r := range s {
		if r >= ' ' && r != '"' && r != '\\' && (!w.ascii || r < 0x7f) {
			continue
		}
		w.b.WriteString(s[from:i])
		w.put(jsonEscape(r))
		from = i + len(string(r))
	}
	w.b.WriteString(s[from:])
	w.b.WriteByte('"')
}

func jsonEscape(r rune) string {
	if e, ok := jsonEscapes[r]; ok {
		return e
	}
	if r >= 0x10000 {
		hi, lo := utf16.EncodeRune(r)
		return fmt.Sprintf(`\u%04x\u%04x`, hi, lo)
	}
	return fmt.Sprintf(`\u%04x`, r)
}
