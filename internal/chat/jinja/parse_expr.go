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
		if t.text == "+" {
			e = added(e, operand(), t.at)
		} else {
			e = &binaryExpr{t.text, e, operand(), t.at}
		}
	}
	return e
}

// added is a + b, the operator being at byte at.
func added(a, b expr, at int) expr {
	s, ok := a.(*sumExpr)
	if !ok {
		s = &sumExpr{terms: []expr{a}}
	}
	s.terms, s.ats = append(s.terms, b), append(s.ats, at)
	return s
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
