package jinja

import "slices"

// postfix parses .name, [key] and (arguments) behind an operand.
func (p *parser) postfix(e expr) expr {
	for {
		t := p.cur()
		switch {
		case p.skipOp("."):
			e = p.attribute(e)
		case p.skipOp("["):
			e = p.subscript(e, t.at)
		case p.isOp("("):
			e = p.call(e)
		default:
			return e
		}
		p.grow()
	}
}

func (p *parser) attribute(e expr) expr {
	t := p.cur()
	p.pos++
	switch t.kind {
	case tokName:
		return &attrExpr{e, t.text, plainKey(t.text), t.at}
	case tokInt:
		return &itemExpr{e, &constExpr{t.num}, t.at}
	}
	failAt(t.at, "TemplateSyntaxError", "a name or a number is due behind the dot, not %s", t)
	return nil
}

// subscript parses what follows [.
func (p *parser) subscript(e expr, at int) expr {
	var items []expr
	for !p.isOp("]") {
		if len(items) > 0 {
			p.expectOp(",")
		}
		item, slice := p.subscribed(e, at)
		if slice != nil {
			if len(items) > 0 || !p.isOp("]") {
				p.refuse(at, "a slice among several subscripts")
			}
			p.pos++
			return slice
		}
		items = append(items, item)
	}
	p.pos++
	if len(items) == 1 {
		return &itemExpr{e, items[0], at}
	}
	return &itemExpr{e, &tupleExpr{items}, at}
}

// subscribed parses one subscript: an expression, or from:to:step.
func (p *parser) subscribed(e expr, at int) (item expr, slice expr) {
	s := &sliceExpr{obj: e, at: at}
	if !p.isOp(":") {
		s.part[0] = p.expression(true)
		if !p.isOp(":") {
			return s.part[0], nil
		}
	}
	for i := 1; i < 3 && p.skipOp(":"); i++ {
		if !p.isOp(":") && !p.isOp("]") && !p.isOp(",") {
			s.part[i] = p.expression(true)
		}
	}
	return nil, s
}

// call parses the arguments of fn. An error of the call points at its name, where it has one.
func (p *parser) call(fn expr) expr {
	at := p.cur().at
	switch n := fn.(type) {
	case *nameExpr:
		at = n.at
	case *attrExpr:
		at = n.at
	}
	return &callExpr{fn, p.callArgs(), at}
}

// filters parses |name, |name(arguments) as often as they come.
func (p *parser) filters(e expr) expr {
	for p.skipOp("|") {
		p.grow()
		e = p.filter(e)
	}
	return e
}

func (p *parser) filter(e expr) expr {
	name, at := p.dottedName()
	f := &filterExpr{obj: e, name: name, fn: p.lib.filters[name], at: at}
	if f.fn == nil && p.ifs == 0 {
		p.lib.noFilter(name, at)
	}
	if p.isOp("(") {
		f.args = p.callArgs()
	}
	return f
}

func (p *parser) dottedName() (name string, at int) {
	t := p.expectName()
	name = t.text
	for p.skipOp(".") {
		name += "." + p.expectName().text
	}
	return name, t.at
}

// test parses what follows `is`; an argument may stand bare, as in x is divisibleby 3.
func (p *parser) test(e expr) expr {
	t := &testExpr{obj: e, not: p.skipName("not")}
	t.name, t.at = p.dottedName()
	t.fn = p.lib.tests[t.name]
	if t.fn == nil && p.ifs == 0 {
		p.lib.noTest(t.name, t.at)
	}
	switch c := p.cur(); {
	case p.isOp("("):
		t.args = p.callArgs()
	case c.kind == tokName && (c.text == "else" || c.text == "or" || c.text == "and"):
	case c.kind == tokName && c.text == "is":
		p.fail("tests cannot follow each other without and")
	case c.kind == tokName, c.kind == tokString, c.kind == tokInt, c.kind == tokFloat, p.isOp("["), p.isOp("{"):
		t.args.pos = []expr{p.postfix(p.primary())}
	}
	return t
}

// callArgs parses (a, b, name=c, *d, **e).
func (p *parser) callArgs() callArgs {
	var a callArgs
	p.expectOp("(")
	p.commas(")", func() {
		next := p.next()
		switch {
		case p.isOp("**"):
			p.argOrder(a.double == nil)
			p.pos++
			a.double = p.expression(true)
		case p.isOp("*"):
			p.argOrder(a.star == nil && a.double == nil)
			p.pos++
			a.star = p.expression(true)
		case p.cur().kind == tokName && next.kind == tokOp && next.text == "=":
			p.argOrder(a.double == nil)
			name := p.expectName()
			p.pos++
			if slices.Contains(a.names, name.text) {
				failAt(name.at, "SyntaxError", "the argument '%s' is given twice", name.text)
			}
			a.names = append(a.names, name.text)
			a.named = append(a.named, p.expression(true))
		default:
			p.argOrder(a.star == nil && a.double == nil && len(a.names) == 0)
			a.pos = append(a.pos, p.expression(true))
		}
	})
	return a
}

func (p *parser) argOrder(ok bool) {
	if !ok {
		p.fail("this argument cannot stand behind those before it")
	}
}
