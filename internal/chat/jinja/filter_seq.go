package jinja

import (
	"slices"
	"strconv"
	"strings"
)

// filters are what may stand behind |.
var filters = map[string]*builtin{
	"abs":        takesNone(absFilter),
	"attr":       takes("name", attrFilter),
	"capitalize": onText(capitalize),
	"count":      takesNone(lengthFilter),
	"d":          takes("default_value? boolean?", defaultFilter),
	"default":    takes("default_value? boolean?", defaultFilter),
	"dictsort":   takes("case_sensitive? by? reverse?", dictsortFilter),
	"e":          takesNone(escapeFilter),
	"escape":     takesNone(escapeFilter),
	"first":      takesNone(firstFilter),
	"float":      takes("default?", floatFilter),
	"format":     takesAny(formatFilter),
	"groupby":    takes("attribute default? case_sensitive?", groupbyFilter),
	"indent":     takes("width? first? blank?", indentFilter),
	"int":        takes("default? base?", intFilter),
	"items":      takesNone(itemsFilter),
	"join":       takes("d? attribute?", joinFilter),
	"last":       takesNone(lastFilter),
	"length":     takesNone(lengthFilter),
	"list":       takesNone(listFilter),
	"lower":      onText(lower),
	"map":        takesAny(mapFilter),
	"max":        takes("case_sensitive? attribute?", extreme(greater, ">")),
	"min":        takes("case_sensitive? attribute?", extreme(less, "<")),
	"reject":     takesAny(choose(false, false)),
	"rejectattr": takesAny(choose(false, true)),
	"replace":    takes("old new count?", replaceFilter),
	"reverse":    takesNone(reverseFilter),
	"round":      takes("precision? method?", roundFilter),
	"safe":       takesNone(safeFilter),
	"select":     takesAny(choose(true, false)),
	"selectattr": takesAny(choose(true, true)),
	"sort":       takes("reverse? case_sensitive? attribute?", sortFilter),
	"string":     takesNone(stringFilter),
	"sum":        takes("attribute? start?", sumFilter),
	"title":      takesNone(titleFilter),
	"tojson":     takes("ensure_ascii? indent? separators? sort_keys?", tojsonFilter),
	"trim":       takes("chars?", trimFilter),
	"unique":     takes("case_sensitive? attribute?", uniqueFilter),
	"upper":      onText(upper),
}

func lengthFilter(x *exec, v Value) Value {
	x.scanValue(v)
	n, ok := length(v)
	if !ok {
		fail("TypeError", "object of type '%s' has no len()", typeName(v))
	}
	return int64(n)
}

func defaultFilter(x *exec, v Value, p []Value) Value {
	if is[*undefined](v) || isTrue(p[1]) && !truth(v) {
		return or(p[0], "")
	}
	return v
}

func firstFilter(x *exec, v Value) Value {
	if item, ok := x.iterate(v)(); ok {
		return item
	}
	return &undefined{what: noSuchValue, name: "there is no first item, the sequence is empty"}
}

func lastFilter(x *exec, v Value) Value {
	items := x.reversed(v)
	if len(items) == 0 {
		return &undefined{what: noSuchValue, name: "there is no last item, the sequence is empty"}
	}
	return items[0]
}

func reverseFilter(x *exec, v Value) Value {
	if s, ok := text(v); ok {
		r := []rune(s)
		x.charge(5 * len(r))
		slices.Reverse(r)
		return like(v, string(r))
	}
	if is[*generator](v) {
		items := x.items(v)
		slices.Reverse(items)
		return &List{items}
	}
	if !isIterable(v) {
		fail("FilterArgumentError", "reverse takes a sequence, not a '%s'", typeName(v))
	}
	return x.newGenerator("reversed", x.each(x.reversed(v)))
}

func listFilter(x *exec, v Value) Value { return &List{x.items(v)} }

func itemsFilter(x *exec, v Value) Value {
	return x.lazy(v, func() func() (Value, bool) {
		if is[*undefined](v) {
			return nothing
		}
		d, ok := v.(*Dict)
		if !ok {
			fail("TypeError", "only a mapping has items, not a '%s'", typeName(v))
		}
		return x.iterate(&view{d, "items"})
	})
}

// nothing yields no item.
func nothing() (Value, bool) { return nil, false }

func attrFilter(x *exec, v Value, p []Value) Value {
	name := stringArg("attr", p[0])
	if r, ok := x.attribute(v, name); ok {
		return r
	}
	return &undefined{what: noAttribute, owner: typeName(v), name: name}
}

// getter looks an attribute up in each item: a dotted path, in which digits are an index; nothing for None. What is not
// there becomes def, unless that is unset or None. post, if not nil, maps the result.
func (x *exec) getter(attr, def Value, post func(*exec, Value) Value) func(Value) Value {
	path := attributePath(attr)
	return func(v Value) Value {
		x.step(1 + len(path))
		x.charge(entryBytes * len(path))
		for _, part := range path {
			v = x.getitem(v, part)
			if is[*undefined](v) && isSet(def) {
				v = def
			}
		}
		if post != nil {
			v = post(x, v)
		}
		return v
	}
}

func attributePath(attr Value) []Value {
	s, ok := text(attr)
	switch {
	case !isSet(attr):
		return nil
	case !ok:
		return []Value{attr}
	}
	var path []Value
	for part := range strings.SplitSeq(s, ".") {
		if n, err := strconv.ParseUint(part, 10, 31); err == nil {
			path = append(path, int64(n))
		} else {
			path = append(path, part)
		}
	}
	return path
}

// fold is a key that does not mind the case, unless the argument asks for it.
func fold(caseSensitive Value) func(*exec, Value) Value {
	if isTrue(caseSensitive) {
		return nil
	}
	return func(x *exec, v Value) Value {
		if s, ok := text(v); ok {
			x.charge(2 * len(s))
			return like(v, lower(s))
		}
		return v
	}
}

func joinFilter(x *exec, v Value, p []Value) Value {
	sep := x.str(or(p[0], ""))
	get := x.getter(p[1], unset, nil)
	var b strings.Builder
	next := x.iterate(v)
	for i := 0; ; i++ {
		item, ok := next()
		if !ok {
			return b.String()
		}
		s := x.str(get(item))
		x.charge(len(s) + len(sep))
		if i > 0 {
			b.WriteString(sep)
		}
		b.WriteString(s)
	}
}

func sumFilter(x *exec, v Value, p []Value) Value {
	total := or(p[1], int64(0))
	if isText(total) {
		fail("TypeError", "sum() can't sum strings")
	}
	get := x.getter(p[0], unset, nil)
	next := x.iterate(v)
	for item, ok := next(); ok; item, ok = next() {
		total = x.arith("+", total, get(item))
	}
	return total
}
