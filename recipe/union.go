package recipe

import (
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"trainer/internal/diag"
)

// sources decodes a path, one source, or a list of either.
func (d *decoder) sources(n *node, key string, k *Key, v reflect.Value) {
	items := []*node{n}
	switch {
	case n.shape == list:
		items = n.items
	case n.shape == mapping && len(n.pairs) == 0 || n.word() == "" && n.shape == scalar:
		d.add(n.pos, key, "must be a path, a source, or a list of them, not %s", n.show())
		return
	}
	if k.Required && len(items) == 0 {
		d.add(n.pos, key, "must have at least one source")
		return
	}
	var out []Source
	for i, item := range items {
		at := join(key, strconv.Itoa(i))
		if item.null {
			d.add(item.pos, at, "null is not allowed here; a path or a source is due")
			continue
		}
		s := Source{Key: at}
		m := item
		if item.shape == scalar {
			m = oneSource(item, false)
		}
		d.value(m, at, k.Elem, reflect.ValueOf(&s).Elem())
		if p := m.get("path"); p != nil {
			s.Dir = p.src.dir
		}
		if s.Split == "" {
			s.Split = k.Elem.child("split").Default
		}
		out = append(out, s)
	}
	v.Set(reflect.ValueOf(out))
}

// column decodes a column, several, or {column, regex}.
func (d *decoder) column(n *node, key string, k *Key, v reflect.Value) {
	f := v.Addr().Interface().(*Field)
	cols := k.child("column")
	if n.shape != mapping {
		f.Columns = d.columns(n, key)
		return
	}
	d.strict(n, key, k, k.Keys)
	for _, p := range n.pairs {
		full := join(key, p.name)
		d.trace.note(full, p.value)
		switch p.name {
		case "column":
			f.Columns = d.columns(p.value, full)
		case "regex":
			d.scalar(p.value, full, k.child("regex"), v.FieldByIndex(k.child("regex").index))
			if _, err := regexp.Compile(f.Regex); err != nil {
				d.add(p.value.pos, full, "is not a regular expression (RE2): %s", strings.TrimPrefix(err.Error(), "error parsing regexp: "))
			}
		}
	}
	if n.get("column") == nil {
		d.add(n.pos, join(key, cols.Name), "missing; it names the column, or a list of them")
	}
}

func (d *decoder) columns(n *node, key string) []string {
	items := []*node{n}
	if n.shape == list {
		items = n.items
	}
	if len(items) == 0 {
		d.add(n.pos, key, "must name at least one column")
	}
	var out []string
	for i, item := range items {
		at := key
		if n.shape == list {
			at = join(key, strconv.Itoa(i))
		}
		if name := item.word(); name != "" {
			out = append(out, name)
		} else {
			d.add(item.pos, at, "must be the name of a column, not %s", item.show())
		}
	}
	return out
}

var assertForm = regexp.MustCompile(`^\s*(<=|>=|==|!=|<|>)\s*(\S+)\s*$`)

// moments are what of a metric's history an expectation looks at.
var moments = []string{"first", "best", "gain", "last"}

// asserts decodes {"train/loss": "< 5.0", "reward/mean@gain": ">= 2"}.
func (d *decoder) asserts(n *node, key string, v reflect.Value) {
	if n.shape != mapping {
		d.add(n.pos, key, `must be a mapping as {"train/loss": "< 5.0"}, not %s`, n.show())
		return
	}
	var out []Expectation
	for _, p := range n.pairs {
		full := join(key, p.name)
		d.trace.note(full, p.value)
		e := Expectation{Metric: p.name, At: "last", Key: p.name}
		if i := strings.LastIndexByte(p.name, '@'); i >= 0 {
			e.Metric, e.At = p.name[:i], p.name[i+1:]
			if !slices.Contains(moments, e.At) {
				d.add(p.at, full, "@%s is not one of @first, @best, @gain, @last%s", e.At, diag.DidYouMean(e.At, moments))
				continue
			}
		}
		if e.Metric == "" {
			d.add(p.at, full, "names no metric; write it as train/loss or reward/mean@gain")
			continue
		}
		m := assertForm.FindStringSubmatch(p.value.text)
		if p.value.shape != scalar || m == nil {
			d.add(p.value.pos, full, `must be an operator and a number as "< 5.0" (<, <=, >, >=, ==, !=), not %s`, p.value.show())
			continue
		}
		value, msg := number(&node{text: m[2]})
		if msg != "" {
			d.add(p.value.pos, full, "%s", msg)
			continue
		}
		e.Op, e.Value = m[1], value
		out = append(out, e)
	}
	v.Set(reflect.ValueOf(out))
}
