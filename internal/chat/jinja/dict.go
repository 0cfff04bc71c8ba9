package jinja

import (
	"fmt"
	"math"
	"math/big"
	"slices"
	"strings"
)

// Dict is a Python dict: it keeps the order in which keys were first set. Once it is given to a render nothing may
// change it.
type Dict struct {
	keys, vals []Value
	index      map[any]int // from hash; nil for a small dict
}

const smallDict = 16

// NewDict builds a Dict from keys and values in turn. The keys must be hashable: None, bool, int64, *big.Int, float64 or
// string.
func NewDict(pairs ...Value) *Dict {
	d := sized(len(pairs) / 2)
	for i := 0; i+1 < len(pairs); i += 2 {
		d.Set(pairs[i], pairs[i+1])
	}
	return d
}

// sized is an empty dict with room for n entries.
func sized(n int) *Dict {
	room := make([]Value, 2*n)
	return &Dict{keys: room[:0:n], vals: room[n:n]}
}

// Len is the number of entries.
func (d *Dict) Len() int { return len(d.keys) }

// All yields the entries in order.
func (d *Dict) All() func(yield func(key, val Value) bool) {
	return func(yield func(key, val Value) bool) {
		for i, k := range d.keys {
			if !yield(k, d.vals[i]) {
				return
			}
		}
	}
}

// Get returns the value at key; ok is false where there is none.
func (d *Dict) Get(key Value) (val Value, ok bool) {
	if i := d.find(key); i >= 0 {
		return d.vals[i], true
	}
	return nil, false
}

// Set adds or replaces an entry; a replaced one keeps its place.
func (d *Dict) Set(key, val Value) {
	if i := d.find(key); i >= 0 {
		d.vals[i] = val
		return
	}
	d.keys = append(d.keys, key)
	d.vals = append(d.vals, val)
	switch {
	case d.index != nil:
		d.index[hash(key)] = len(d.keys) - 1
	case len(d.keys) > smallDict:
		d.index = make(map[any]int, 2*len(d.keys))
		for i, k := range d.keys {
			d.index[hash(k)] = i
		}
	}
}

// Clone returns a shallow copy.
func (d *Dict) Clone() *Dict {
	c := sized(len(d.keys))
	for i, k := range d.keys {
		c.Set(k, d.vals[i])
	}
	return c
}

// find is the index of key, -1 for none.
func (d *Dict) find(key Value) int {
	if s, ok := text(key); ok {
		return d.findText(s)
	}
	h := hash(key)
	if d.index != nil {
		if i, ok := d.index[h]; ok {
			return i
		}
		return -1
	}
	for i, k := range d.keys {
		if hash(k) == h {
			return i
		}
	}
	return -1
}

func (d *Dict) findText(s string) int {
	if d.index != nil {
		if i, ok := d.index[s]; ok {
			return i
		}
		return -1
	}
	for i, k := range d.keys {
		switch t := k.(type) {
		case string:
			if t == s {
				return i
			}
		case markup:
			if string(t) == s {
				return i
			}
		}
	}
	return -1
}

type (
	bigKey       string
	tupleKey     string
	noneKey      struct{}
	undefinedKey struct{}
)

// hash gives equal keys of Python the same key of Go, and unequal ones another.
func hash(v Value) any {
	switch t := v.(type) {
	case string:
		return t
	case markup:
		return string(t)
	case bool:
		if t {
			return int64(1)
		}
		return int64(0)
	case float64:
		if t == math.Trunc(t) && !math.IsInf(t, 0) {
			n, _ := big.NewFloat(t).Int(nil)
			return hash(smallest(n))
		}
	case *big.Int:
		return bigKey(t.String())
	case *undefined:
		return undefinedKey{}
	case nil:
		return noneKey{}
	case *tuple:
		var b strings.Builder
		hashTuple(&b, t, 0)
		return tupleKey(b.String())
	}
	if !hashable(v) {
		fail("TypeError", "unhashable type: '%s'", typeName(v))
	}
	return v
}

func hashTuple(b *strings.Builder, t *tuple, depth int) {
	tooDeep(depth, "hash")
	b.WriteByte('(')
	for _, item := range t.items {
		if inner, ok := item.(*tuple); ok {
			hashTuple(b, inner, depth+1)
		} else {
			h := hash(item)
			fmt.Fprintf(b, "%T:%#v;", h, h)
		}
		if b.Len() > maxTupleKey {
			fail("LimitError", "a tuple of more than %d bytes as a key", maxTupleKey)
		}
	}
	b.WriteByte(')')
}

func hashable(v Value) bool { return hashableAt(v, 0) }

func hashableAt(v Value, depth int) bool {
	tooDeep(depth, "hash")
	switch t := v.(type) {
	case *List, *Dict:
		return false
	case *view:
		return t.part == "values"
	case *tuple:
		return !slices.ContainsFunc(t.items, func(item Value) bool { return !hashableAt(item, depth+1) })
	}
	return true
}
