package jinja

import (
	"slices"
	"strings"
)

// sortBy returns a new slice in the order of the keys; equal ones keep their order.
func (x *exec) sortBy(items []Value, key func(Value) Value, reverse bool) []Value {
	x.charge(4 * itemBytes * len(items))
	type entry struct{ key, item Value }
	entries := make([]entry, len(items))
	for i, item := range items {
		entries[i] = entry{key(item), item}
	}
	slices.SortStableFunc(entries, func(a, b entry) int {
		if reverse {
			a, b = b, a
		}
		switch o := x.compare("<", a.key, b.key); o {
		case unordered:
			unsupported("sorting of NaN")
			return 0
		default:
			return int(o)
		}
	})
	out := make([]Value, len(items))
	for i, e := range entries {
		out[i] = e.item
	}
	return out
}

func sortFilter(x *exec, v Value, p []Value) Value {
	attrs := []Value{p[2]}
	if s, ok := text(p[2]); ok {
		attrs = nil
		for part := range strings.SplitSeq(s, ",") {
			attrs = append(attrs, part)
		}
	}
	gets := make([]func(Value) Value, len(attrs))
	for i, attr := range attrs {
		gets[i] = x.getter(attr, unset, fold(p[1]))
	}
	// The key is a list also for one attribute, so that equal ones need no order: None stands beside None.
	key := func(v Value) Value {
		x.charge(itemBytes * len(gets))
		k := &List{make([]Value, len(gets))}
		for i, get := range gets {
			k.Items[i] = get(v)
		}
		return k
	}
	return &List{x.sortBy(x.items(v), key, isTrue(p[0]))}
}

func dictsortFilter(x *exec, v Value, p []Value) Value {
	by := 0
	switch x.str(or(p[1], "key")) {
	case "key":
	case "value":
		by = 1
	default:
		fail("FilterArgumentError", "dictsort sorts by key or value")
	}
	d, ok := v.(*Dict)
	if !ok {
		mustBeDefined(v)
		fail("AttributeError", "'%s' object has no attribute 'items'", typeName(v))
	}
	post := fold(p[0])
	key := func(v Value) Value {
		k := v.(*tuple).items[by]
		if post != nil {
			k = post(x, k)
		}
		return k
	}
	return &List{x.sortBy(x.viewItems(&view{d, "items"}), key, isTrue(p[2]))}
}

// extreme is min or max: the first item whose key stands as want to the others, which is asked for with op.
func extreme(want order, op string) func(x *exec, v Value, p []Value) Value {
	return func(x *exec, v Value, p []Value) Value {
		get := x.getter(p[1], unset, fold(p[0]))
		next := x.iterate(v)
		best, ok := next()
		if !ok {
			return &undefined{what: noSuchValue, name: "there is no extreme item, the sequence is empty"}
		}
		bestKey := get(best)
		for item, ok := next(); ok; item, ok = next() {
			if k := get(item); x.compare(op, k, bestKey) == want {
				best, bestKey = item, k
			}
		}
		return best
	}
}

func uniqueFilter(x *exec, v Value, p []Value) Value {
	get := x.getter(p[1], unset, fold(p[0]))
	return x.lazy(v, func() func() (Value, bool) {
		next, seen := x.iterate(v), map[any]bool{}
		return func() (Value, bool) {
			for item, ok := next(); ok; item, ok = next() {
				key := get(item)
				x.scanKey(key)
				if k := hash(key); !seen[k] {
					x.charge(entryBytes)
					seen[k] = true
					return item, true
				}
			}
			return nil, false
		}
	})
}

func groupbyFilter(x *exec, v Value, p []Value) Value {
	get := x.getter(p[0], p[1], fold(p[2]))
	shown := x.getter(p[0], p[1], nil)
	var groups []Value
	var items *List
	var key Value
	for _, item := range x.sortBy(x.items(v), get, false) {
		k := get(item)
		if items == nil || !x.equal(k, key) {
			x.charge(4 * itemBytes)
			items, key = &List{}, k
			groups = append(groups, &tuple{items: []Value{shown(item), items}, names: []string{"grouper", "list"}})
		}
		items.Items = append(items.Items, item)
	}
	return &List{groups}
}
