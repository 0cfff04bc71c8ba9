package jinja

import "math"

// dictMethods are those that leave the dict as it is.
var dictMethods = map[string]*builtin{
	"keys":   views("keys"),
	"values": views("values"),
	"items":  views("items"),
	"get": takes("key default? /", func(x *exec, v Value, p []Value) Value {
		x.scanKey(p[0])
		if found, ok := v.(*Dict).Get(p[0]); ok {
			return found
		}
		return or(p[1], nil)
	}),
	"copy": takesNone(func(x *exec, v Value) Value {
		x.charge(entryBytes * v.(*Dict).Len())
		return v.(*Dict).Clone()
	}),
	"fromkeys": takes("iterable value? /", func(x *exec, _ Value, p []Value) Value {
		d := NewDict()
		for _, k := range x.items(p[0]) {
			x.charge(entryBytes)
			x.scanKey(k)
			d.Set(k, or(p[1], nil))
		}
		return d
	}),
}

func views(part string) *builtin {
	return takesNone(func(_ *exec, v Value) Value { return &view{v.(*Dict), part} })
}

var (
	tupleMethods = map[string]*builtin{
		"count": takes("value /", countItems),
		"index": takes("value start? stop? /", indexItem),
	}
	listMethods = map[string]*builtin{
		"count": tupleMethods["count"],
		"index": tupleMethods["index"],
		"copy":  takesNone(func(_ *exec, v Value) Value { return &List{v.(*List).Items} }),
	}
	floatMethods = map[string]*builtin{
		"is_integer": takesNone(func(_ *exec, v Value) Value {
			f := v.(float64)
			return f == math.Trunc(f) && !math.IsInf(f, 0)
		}),
	}
)

func countItems(x *exec, v Value, p []Value) Value {
	n := int64(0)
	for _, item := range x.items(v) {
		if x.equal(item, p[0]) {
			n++
		}
	}
	return n
}

func indexItem(x *exec, v Value, p []Value) Value {
	items := x.items(v)
	from, to, _ := bounds([3]Value{or(p[1], nil), or(p[2], nil)}, len(items))
	for i := from; i < to; i++ {
		if x.equal(items[i], p[0]) {
			return int64(i)
		}
	}
	fail("ValueError", "the value is not in the %s", typeName(v))
	return nil
}
