package jinja

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// hidden are the methods that change their receiver; the immutable sandbox hides them.
var hidden = map[string][]string{
	"list": {"append", "clear", "pop", "reverse", "insert", "sort", "extend", "remove"},
	"dict": {"clear", "pop", "popitem", "setdefault", "update"},
}

// getattr is obj.name: the attribute, else the item.
func (x *exec) getattr(obj Value, name string) Value {
	if v, ok := x.attribute(obj, name); ok {
		return v
	}
	if d, ok := obj.(*Dict); ok {
		if v, ok := d.Get(name); ok {
			return v
		}
	}
	return &undefined{what: noAttribute, owner: typeName(obj), name: name}
}

// plainKey says that a dict has no attribute of this name, nor one that is kept from templates.
func plainKey(name string) bool {
	return !strings.HasPrefix(name, "__") && !slices.Contains(hidden["dict"], name) && !slices.Contains(notBuilt["dict"], name) && dictMethods[name] == nil
}

// attribute is Python's getattr under the rules of the sandbox.
func (x *exec) attribute(obj Value, name string) (Value, bool) {
	if strings.HasPrefix(name, "__") && strings.HasSuffix(name, "__") {
		return &undefined{what: isUnsafe, owner: typeName(obj), name: name}, true
	}
	switch t := obj.(type) {
	case *undefined:
		t.fail()
	case *namespace:
		return t.attrs.Get(name)
	case *loopState:
		return t.attribute(name)
	case *tuple:
		if i := slices.Index(t.names, name); i >= 0 {
			return t.items[i], true
		}
	}
	kind := typeName(obj)
	if slices.Contains(hidden[kind], name) {
		return &undefined{what: isUnsafe, owner: kind, name: name}, true
	}
	if m := x.lib.method(obj, name); m != nil {
		return &callable{name, func(x *exec, a *args) Value { return m.call(x, name, obj, a) }}, true
	}
	if slices.Contains(notBuilt[kind], name) {
		unsupported("the attribute '%s' of a '%s' object", name, kind)
	}
	return nil, false
}

// getitem is obj[key]: the item, else the attribute.
func (x *exec) getitem(obj, key Value) Value {
	switch t := obj.(type) {
	case *undefined:
		t.fail()
	case *Dict:
		x.scanKey(key)
		if hashable(key) {
			if v, ok := t.Get(key); ok {
				return v
			}
		}
	default:
		if i, ok := asInt(key); ok {
			if v, ok := x.index(obj, i); ok {
				return v
			}
		}
	}
	name, ok := text(key)
	if !ok {
		return &undefined{what: noElement, owner: typeName(obj), name: x.brief(key)}
	}
	if v, ok := x.attribute(obj, name); ok {
		return v
	}
	return &undefined{what: noAttribute, owner: typeName(obj), name: name}
}

// brief names a key in a message.
func (x *exec) brief(key Value) string {
	switch key.(type) {
	case bool, int64, float64, nil:
		return scalar(key)
	}
	return "of type " + typeName(key)
}

// index is the item at i of a sequence, from the end where i is negative.
func (x *exec) index(obj Value, i int) (Value, bool) {
	at := func(n int) bool {
		if i < 0 {
			i += n
		}
		return i >= 0 && i < n
	}
	switch t := obj.(type) {
	case *List:
		if at(len(t.Items)) {
			return t.Items[i], true
		}
	case *tuple:
		if at(len(t.items)) {
			return t.items[i], true
		}
	case *rangeValue:
		if at(t.len()) {
			return t.start + int64(i)*t.step, true
		}
	case string, markup:
		s, _ := text(obj)
		x.scan(s)
		if n := utf8.RuneCountInString(s); at(n) {
			return like(obj, substring(s, n, i, i+1)), true
		}
	}
	return nil, false
}

// substring is the characters [from, to) of s, which has n.
func substring(s string, n, from, to int) string {
	if from >= to {
		return ""
	}
	if n == len(s) {
		return s[from:to]
	}
	start, end, i := len(s), len(s), 0
	for at := range s {
		if i == from {
			start = at
		}
		if i == to {
			end = at
			break
		}
		i++
	}
	return s[start:end]
}
