package jinja

func (n *constExpr) eval(x *exec, e *env) Value { return n.v }

func (n *nameExpr) eval(x *exec, e *env) Value {
	v := n.value(e)
	x.at = n.at
	return v
}

// value is that of the variable, undefined where it has none.
func (n *nameExpr) value(e *env) Value {
	if v := e.get(n.ref); v != missing {
		return v
	}
	return n.undef
}

func (x *exec) evalAll(list []expr, e *env) []Value {
	x.charge(itemBytes * len(list))
	out := make([]Value, len(list))
	for i, item := range list {
		out[i] = item.eval(x, e)
	}
	return out
}

func (n *listExpr) eval(x *exec, e *env) Value { return &List{x.evalAll(n.items, e)} }

func (n *tupleExpr) eval(x *exec, e *env) Value { return &tuple{items: x.evalAll(n.items, e)} }

func (n *dictExpr) eval(x *exec, e *env) Value {
	x.charge(entryBytes * len(n.keys))
	d := &Dict{}
	for i, k := range n.keys {
		key := k.eval(x, e)
		val := n.vals[i].eval(x, e)
		x.scanKey(key)
		d.Set(key, val)
	}
	return d
}

func (n *attrExpr) eval(x *exec, e *env) Value {
	obj := n.obj.eval(x, e)
	x.at = n.at
	if d, ok := obj.(*Dict); ok && n.plain {
		if i := d.findText(n.name); i >= 0 {
			return d.vals[i]
		}
	}
	return x.getattr(obj, n.name)
}

func (n *itemExpr) eval(x *exec, e *env) Value {
	obj := n.obj.eval(x, e)
	key := n.key.eval(x, e)
	x.at = n.at
	return x.getitem(obj, key)
}

func (n *sliceExpr) eval(x *exec, e *env) Value {
	obj := n.obj.eval(x, e)
	var part [3]Value
	for i, p := range n.part {
		if p != nil {
			part[i] = p.eval(x, e)
		}
	}
	x.at = n.at
	if n.foldsToNothing(obj, part) {
		return &undefined{what: noElement, owner: typeName(obj), name: "of type slice"}
	}
	return x.slice(obj, part)
}

func (n *callExpr) eval(x *exec, e *env) Value {
	at, ok := n.fn.(*attrExpr)
	if !ok {
		fn := n.fn.eval(x, e)
		a := x.args(&n.args, e)
		x.at = n.at
		return x.call(fn, a)
	}
	obj := at.obj.eval(x, e)
	x.at = at.at
	if m := x.lib.method(obj, at.name); m != nil { // without making the bound method
		a := x.args(&n.args, e)
		x.at = at.at
		return m.call(x, at.name, obj, a)
	}
	fn := x.getattr(obj, at.name)
	a := x.args(&n.args, e)
	x.at = at.at
	return x.call(fn, a)
}

func (n *filterExpr) eval(x *exec, e *env) Value {
	v := x.body
	if n.obj != nil {
		v = n.obj.eval(x, e)
	}
	if n.fn == nil {
		x.lib.noFilter(n.name, n.at)
	}
	a := x.args(&n.args, e)
	x.at = n.at
	return n.fn.call(x, n.name, v, a)
}

func (n *testExpr) eval(x *exec, e *env) Value {
	v := n.obj.eval(x, e)
	if n.fn == nil {
		x.lib.noTest(n.name, n.at)
	}
	a := x.args(&n.args, e)
	x.at = n.at
	return truth(n.fn.call(x, n.name, v, a)) != n.not
}

func (n *binaryExpr) eval(x *exec, e *env) Value {
	a := n.a.eval(x, e)
	b := n.b.eval(x, e)
	x.at = n.at
	return x.arith(n.op, a, b)
}

func (n *unaryExpr) eval(x *exec, e *env) Value {
	v := n.a.eval(x, e)
	x.at = n.at
	return sign(n.op, v)
}

func (n *notExpr) eval(x *exec, e *env) Value { return !truth(n.a.eval(x, e)) }

func (n *andExpr) eval(x *exec, e *env) Value {
	if v := n.a.eval(x, e); !truth(v) {
		return v
	}
	return n.b.eval(x, e)
}

func (n *orExpr) eval(x *exec, e *env) Value {
	if v := n.a.eval(x, e); truth(v) {
		return v
	}
	return n.b.eval(x, e)
}

func (n *concatExpr) eval(x *exec, e *env) Value {
	var buf []byte
	for _, p := range n.parts {
		s := x.str(p.eval(x, e))
		x.charge(len(s))
		buf = append(buf, s...)
	}
	return string(buf)
}

func (n *compareExpr) eval(x *exec, e *env) Value {
	a := n.first.eval(x, e)
	for i, op := range n.ops {
		b := n.rest[i].eval(x, e)
		x.at = n.at
		if !x.compareOp(op, a, b) {
			return false
		}
		a = b
	}
	return true
}

var noElse = &undefined{what: noSuchValue, name: "the inline if is false and has no else"}

func (n *condExpr) eval(x *exec, e *env) Value {
	switch {
	case truth(n.cond.eval(x, e)):
		return n.yes.eval(x, e)
	case n.no == nil:
		return noElse
	}
	return n.no.eval(x, e)
}
