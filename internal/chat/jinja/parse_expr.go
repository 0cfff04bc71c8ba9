package jinja

import (
	"slices"
)

// expression parses one expression; cond allows a if b else c.
func (p *parser) expression(cond bool) expr {
	p.enter()
	defer p.leave()
	e := p.or()
	for cond && p.skipName("if") {
		p.grow()
		p.ifs++
		c := &condExpr{yes: e, cond: p.or()}
		if p.skipName("else") {
			c.no = p.expression(true)
		}
		p.ifs--
		e = c
	}
	return e
}

// tuple parses expressions with commas between them; one without a comma stands for itself.
func (p *parser) tuple(cond bool) expr {
	items, comma := p.tupleItems(cond)
	switch {
	case comma:
		return &tupleExpr{items}
	case len(items) == 0:
		p.fail("an expression is due, not %s", p.cur())
	}
	return items[0]
}

func (p *parser) tupleItems(cond bool) (items []expr, comma bool) {
	for !p.atTupleEnd() {
		items = append(items, p.expression(cond))
		if !p.skipOp(",") {
			break
		}
		comma = true
		p.grow()
	}
	return items, comma
}

func (p *parser) atTupleEnd() bool {
	k := p.cur().kind
	return k == tokPrintEnd || k == tokBlockEnd || p.isOp(")")
}

func (p *parser) or() expr {
	e := p.and()
	for p.skipName("or") {
		p.grow()
		e = &orExpr{e, p.and()}
	}
	return e
}

func (p *parser) and() expr {
	e := p.not()
	for p.skipName("and") {
		p.grow()
		e = &andExpr{e, p.not()}
	}
	return e
}

func (p *parser) not() expr {
	if p.skipName("not") {
		p.enter()
		defer p.leave()
		return &notExpr{p.not()}
	}
	return p.compare()
}

var comparisons = []string{"==", "!=", "<", "<=", ">", ">="}

// compare parses a chain such as a < b <= c.
func (p *parser) compare() expr {
	c := &compareExpr{at: p.cur().at, first: p.sum()}
	for {
		op := p.comparison()
		switch {
		case op == "" && c.ops == nil:
			return c.first
		case op == "":
			return c
		}
		p.grow()
		c.ops = append(c.ops, op)
		c.rest = append(c.rest, p.sum())
	}
}

// comparison takes a comparing operator, "" if there is none.
func (p *parser) comparison() string {
	switch t := p.cur(); {
	case t.kind == tokOp && slices.Contains(comparisons, t.text):
		p.pos++
		return t.text
	case p.skipName("in"):
		return "in"
	case p.isName("not") && p.next().kind == tokName && p.next().text == "in":
		p.pos += 2
		return "not in"
	}
	return ""
}

// binary parses a level of operators that bind to the left.
func (p *parser) binary(operand func() expr, ops ...string) expr {
	e := operand()
	for p.cur().kind == tokOp && slices.Contains(ops, p.cur().text) {
		t := p.cur()
		p.pos++
		p.grow()
		e = &binaryExpr{t.text, e, operand(), t.at}
	}
	return e
}

func (p *parser) sum() expr     { return p.binary(p.concat, "+", "-") }
func (p *parser) product() expr { return p.binary(p.power, "*", "/", "//", "%") }
func (p *parser) power() expr   { return p.binary(p.filtered, "**") }

// concat parses a ~ b, which binds tighter than a + b.
func (p *parser) concat() expr {
	parts := []expr{p.product()}
	for p.skipOp("~") {
		p.grow()
		parts = append(parts, p.product())
	}
	if len(parts) == 1 {
		return parts[0]
	}
	return &concatExpr{parts}
}

// filtered parses an operand with its filters and tests: -1|abs filters the negated value.
func (p *parser) filtered() expr {
	e := p.signed()
	for {
		switch {
		case p.isOp("|"):
			e = p.filters(e)
		case p.skipName("is"):
			e = p.test(e)
		case p.isOp("("):
			e = p.call(e)
		default:
			return e
		}
		p.grow()
	}
}

func (p *parser) signed() expr {
	t := p.cur()
	if !p.isOp("-") && !p.isOp("+") {
		return p.postfix(p.primary())
	}
	p.pos++
	p.enter()
	defer p.leave()
	return p.postfix(&unaryExpr{t.text, p.signed(), t.at})
}

func (p *parser) primary() expr {
	t := p.cur()
	p.pos++
	switch t.kind {
	case tokName:
		switch t.text {
		case "true", "True":
			return &constExpr{true}
		case "false", "False":
			return &constExpr{false}
		case "none", "None":
			return &constExpr{nil}
		}
		return newName(t)
	case tokString:
		s := t.text
		for p.cur().kind == tokString { // "a" "b" is one string
			s += p.cur().text
			p.pos++
		}
		return &constExpr{s}
	case tokInt, tokFloat:
		return &constExpr{t.num}
	case tokOp:
		switch t.text {
		case "(":
			return p.parenthesis()
		case "[":
			return p.list()
		case "{":
			return p.dict()
		}
	}
	failAt(t.at, "TemplateSyntaxError", "unexpected %s", t)
	return nil
}

// parenthesis parses what follows (: an expression, a tuple, or the empty tuple.
func (p *parser) parenthesis() expr {
	items, comma := p.tupleItems(true)
	p.expectOp(")")
	if len(items) == 1 && !comma {
		return items[0]
	}
	return &tupleExpr{items}
}

// commas calls item for each element up to end, which it takes; a comma before end is allowed.
func (p *parser) commas(end string, item func()) {
	for first := true; !p.skipOp(end); first = false {
		if !first {
			p.expectOp(",")
			if p.skipOp(end) {
				return
			}
		}
		item()
	}
}

func (p *parser) list() expr {
	l := &listExpr{}
	p.commas("]", func() { l.items = append(l.items, p.expression(true)) })
	return l
}

func (p *parser) dict() expr {
	d := &dictExpr{}
	p.commas("}", func() {
		d.keys = append(d.keys, p.expression(true))
		p.expectOp(":")
		d.vals = append(d.vals, p.expression(true))
	})
	return d
}

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
		return &attrExpr{e, t.text, t.at}
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
