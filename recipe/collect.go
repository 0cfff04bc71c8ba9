package recipe

import (
	"reflect"
	"strconv"
	"strings"
)

func (d *decoder) list(n *node, key string, k *Key, v reflect.Value) {
	if n.shape != list {
		hint := ""
		if k.Elem.Kind == Text && n.shape == scalar {
			hint = "; write [" + n.show() + "]"
		}
		d.add(n.pos, key, "must be a list, not %s%s", n.show(), hint)
		return
	}
	if k.Required && len(n.items) == 0 {
		d.add(n.pos, key, "must have at least one entry")
		return
	}
	if v.Kind() == reflect.Array {
		if len(n.items) != v.Len() {
			d.add(n.pos, key, "must have %d entries, has %d", v.Len(), len(n.items))
			return
		}
	} else if len(n.items) > 0 {
		v.Set(reflect.MakeSlice(v.Type(), len(n.items), len(n.items)))
	}
	for i, item := range n.items {
		d.value(item, join(key, strconv.Itoa(i)), k.Elem, v.Index(i))
	}
	if d.sound(key) {
		d.bounds(n, key, k, v)
	}
}

// dict decodes a mapping of any names.
func (d *decoder) dict(n *node, key string, k *Key, v reflect.Value) {
	if n.shape != mapping {
		d.add(n.pos, key, "must be a mapping, not %s", n.show())
		return
	}
	if len(n.pairs) == 0 {
		return
	}
	v.Set(reflect.MakeMap(v.Type()))
	for _, p := range n.pairs {
		full := join(key, p.name)
		elem := reflect.New(v.Type().Elem()).Elem()
		d.value(p.value, full, k.Elem, elem)
		v.SetMapIndex(reflect.ValueOf(p.name), elem)
		if strings.HasSuffix(k.Path, ".headers") && secretName(p.name) && !strings.Contains(p.value.text, "${env:") {
			d.add(p.value.pos, full, "a secret comes from the environment: ${env:NAME}")
		}
	}
}

// anything decodes plain YAML data: text, numbers, true, false, null, lists and mappings.
func (d *decoder) anything(n *node, key string, v reflect.Value) {
	if x := d.plain(n, key); x != nil {
		v.Set(reflect.ValueOf(x))
	}
}

func (d *decoder) plain(n *node, key string) any {
	switch {
	case n.shape == list:
		out := make([]any, len(n.items))
		for i, item := range n.items {
			out[i] = d.plain(item, join(key, strconv.Itoa(i)))
		}
		return out
	case n.shape == mapping:
		out := make(map[string]any, len(n.pairs))
		for _, p := range n.pairs {
			out[p.name] = d.plain(p.value, join(key, p.name))
		}
		return out
	case n.null:
		return nil
	case n.quoted:
		return n.text
	}
	if b, msg := truth(n); msg == "" {
		return b
	}
	if numberForm.MatchString(n.text) || strings.EqualFold(strings.TrimLeft(n.text, "+-"), ".inf") || strings.EqualFold(n.text, ".nan") {
		if i, msg := whole(n); msg == "" {
			return i
		}
		f, msg := number(n)
		if msg != "" {
			d.add(n.pos, key, "%s; quotes make it text", msg)
		}
		return f
	}
	return n.text
}
