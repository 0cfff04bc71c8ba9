package jinja

import (
	"slices"
	"unicode/utf8"
)

// iterate returns a function that yields the items of v one by one. A step is counted for each.
func (x *exec) iterate(v Value) func() (Value, bool) {
	switch t := v.(type) {
	case *List:
		return x.each(t.Items)
	case *tuple:
		return x.each(t.items)
	case *Dict:
		return x.each(t.keys)
	case *view:
		return x.each(x.viewItems(t))
	case *generator:
		return t.next
	case *undefined:
		return x.each(nil)
	case *rangeValue:
		i, n := 0, t.len()
		return func() (Value, bool) {
			if i >= n {
				return nil, false
			}
			x.step(1)
			i++
			return t.start + int64(i-1)*t.step, true
		}
	case string, markup:
		s, _ := text(v)
		return x.characters(s)
	case *loopState:
		unsupported("looping over 'loop' itself")
	}
	fail("TypeError", "'%s' object is not iterable", typeName(v))
	return nil
}

func (x *exec) each(items []Value) func() (Value, bool) {
	i := 0
	return func() (Value, bool) {
		if i >= len(items) {
			return nil, false
		}
		x.step(1)
		i++
		return items[i-1], true
	}
}

// characters yields plain str, also those of a Markup.
func (x *exec) characters(s string) func() (Value, bool) {
	return func() (Value, bool) {
		if s == "" {
			return nil, false
		}
		x.step(1)
		_, n := utf8.DecodeRuneInString(s)
		c := s[:n]
		s = s[n:]
		return c, true
	}
}

// items are those of v; the caller must not change the slice.
func (x *exec) items(v Value) []Value {
	switch t := v.(type) {
	case *List:
		return t.Items
	case *tuple:
		return t.items
	case *Dict:
		return t.keys
	}
	var out []Value
	next := x.iterate(v)
	for item, ok := next(); ok; item, ok = next() {
		x.charge(itemBytes)
		out = append(out, item)
	}
	return out
}

func (x *exec) viewItems(v *view) []Value {
	switch v.part {
	case "keys":
		return v.dict.keys
	case "values":
		return v.dict.vals
	}
	x.charge(entryBytes * v.dict.Len())
	out := make([]Value, v.dict.Len())
	for i, k := range v.dict.keys {
		out[i] = &tuple{items: []Value{k, v.dict.vals[i]}}
	}
	return out
}

// reversed is list(reversed(v)).
func (x *exec) reversed(v Value) []Value {
	if _, ok := v.(*generator); ok || !isIterable(v) {
		fail("TypeError", "'%s' object is not reversible", typeName(v))
	}
	items := x.items(v)
	x.charge(itemBytes * len(items))
	items = slices.Clone(items)
	slices.Reverse(items)
	return items
}

func (x *exec) newGenerator(name string, next func() (Value, bool)) *generator {
	x.charge(2 * itemBytes)
	return &generator{name: name, next: next}
}

// lazy is a generator over v whose start, and the errors of it, wait until the first item is asked for.
func (x *exec) lazy(v Value, start func() func() (Value, bool)) *generator {
	var next func() (Value, bool)
	g := x.newGenerator("generator", func() (Value, bool) {
		if next == nil {
			next = start()
		}
		return next()
	})
	if below, ok := v.(*generator); ok {
		g.depth = below.depth + 1
	}
	tooDeep(g.depth, "filter lazily")
	return g
}
