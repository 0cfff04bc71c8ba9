package jinja

import "slices"

func (p *parser) statement() stmt {
	t := p.expectName()
	switch t.text {
	case "if":
		return p.ifStmt()
	case "for":
		return p.forStmt(t.at)
	case "set":
		return p.setStmt(t.at)
	case "with":
		return p.withStmt()
	case "macro":
		name := p.expectName()
		def := &macroDef{name: name.text, at: t.at}
		p.signature(def)
		p.macroBody(def, "endmacro")
		return &macroStmt{newName(name), def}
	case "call":
		return p.callStmt(t.at)
	case "filter":
		f := p.filters(p.filter(nil))
		return &filterStmt{filter: f, body: p.block("endfilter")}
	case "generation":
		def := &macroDef{name: "caller", at: t.at}
		p.macroBody(def, "endgeneration")
		return &generationStmt{def}
	case "break", "continue":
		return p.flowStmt(t)
	case "include", "import", "from", "extends", "block", "autoescape", "print":
		p.refuse(t.at, "{% "+t.text+" %}")
	}
	failAt(t.at, "TemplateSyntaxError", "'%s' is not a tag that is known here", t.text)
	return nil
}

func (p *parser) flowStmt(t token) stmt {
	if p.loops == 0 {
		failAt(t.at, "SyntaxError", "'%s' outside of a loop", t.text)
	}
	p.expectEnd(tokBlockEnd)
	if t.text == "break" {
		return &flowStmt{flowBreak}
	}
	return &flowStmt{flowContinue}
}

func (p *parser) ifStmt() stmt {
	s := &ifStmt{}
	p.ifs++
	defer func() { p.ifs-- }()
	for {
		s.conds = append(s.conds, p.tuple(false))
		p.openBody()
		s.bodies = append(s.bodies, p.body("elif", "else", "endif"))
		switch p.expectName().text {
		case "elif":
			continue
		case "else":
			s.other = p.block("endif")
		default:
			p.expectEnd(tokBlockEnd)
		}
		return s
	}
}

func (p *parser) forStmt(at int) stmt {
	f := &forStmt{at: at, loopSlot: -1}
	p.inLoop++
	f.target = p.target(false)
	if !p.skipName("in") {
		p.fail("'in' is due, not %s", p.cur())
	}
	f.in = p.tuple(false)
	if p.skipName("if") {
		f.cond = p.expression(true)
	}
	if p.isName("recursive") {
		p.refuse(p.cur().at, "a recursive loop")
	}
	p.openBody()
	p.loops++
	f.body = p.body("else", "endfor")
	p.loops--
	if p.expectName().text == "else" {
		f.other = p.block("endfor")
	} else {
		p.expectEnd(tokBlockEnd)
	}
	p.inLoop--
	return f
}

// target parses what is assigned to, up to what ends it; attr allows ns.name.
func (p *parser) target(attr bool) *target {
	var items []*target
	comma := false
	for !p.isName("in") && !p.isOp("=") && !p.isOp(")") && p.cur().kind != tokBlockEnd {
		items = append(items, p.oneTarget(attr))
		if comma = p.skipOp(","); !comma {
			break
		}
	}
	switch {
	case len(items) == 0:
		p.fail("a name to assign to is due, not %s", p.cur())
	case len(items) == 1 && !comma:
		return items[0]
	}
	return &target{items: items}
}

func (p *parser) oneTarget(attr bool) *target {
	if p.skipOp("(") {
		p.enter()
		defer p.leave()
		t := p.target(false)
		p.expectOp(")")
		return t
	}
	name := p.expectName()
	t := &target{name: newName(name)}
	switch {
	case isConst(name.text):
		failAt(name.at, "TemplateSyntaxError", "cannot assign to '%s'", name.text)
	case attr && p.skipOp("."):
		t.attr = p.expectName().text
	case name.text == "loop" && p.inLoop > 0:
		failAt(name.at, "TemplateAssertionError", "cannot assign to 'loop' in a loop")
	}
	return t
}

func isConst(name string) bool {
	return slices.Contains([]string{"true", "false", "none", "True", "False", "None"}, name)
}

func newName(t token) *nameExpr {
	return &nameExpr{name: t.text, at: t.at, undef: &undefined{name: t.text, what: isUndefined}}
}

func (p *parser) setStmt(at int) stmt {
	t := p.target(true)
	if p.skipOp("=") {
		s := &setStmt{t, p.tuple(true), at}
		p.expectEnd(tokBlockEnd)
		return s
	}
	s := &setBlockStmt{target: t, at: at}
	if p.isOp("|") {
		s.filter = p.filters(nil)
	}
	s.body = p.block("endset")
	return s
}

func (p *parser) withStmt() stmt {
	w := &withStmt{}
	for p.cur().kind != tokBlockEnd {
		if len(w.names) > 0 {
			p.expectOp(",")
		}
		t := p.oneTarget(false)
		if t.name == nil {
			p.fail("a name to assign to is due")
		}
		w.names = append(w.names, t.name)
		p.expectOp("=")
		w.vals = append(w.vals, p.expression(true))
	}
	w.body = p.block("endwith")
	return w
}

func (p *parser) callStmt(at int) stmt {
	def := &macroDef{name: "caller", at: at}
	if p.isOp("(") {
		p.signature(def)
	}
	call, ok := p.expression(true).(*callExpr)
	if !ok {
		failAt(at, "TemplateSyntaxError", "a call is due behind {%% call")
	}
	p.macroBody(def, "endcall")
	return &callStmt{call, def}
}

// signature parses (a, b=1).
func (p *parser) signature(def *macroDef) {
	p.expectOp("(")
	for !p.isOp(")") {
		if len(def.params) > 0 {
			p.expectOp(",")
		}
		name := p.expectName()
		if isConst(name.text) {
			failAt(name.at, "TemplateSyntaxError", "cannot assign to '%s'", name.text)
		}
		def.params = append(def.params, newName(name))
		switch {
		case p.skipOp("="):
			def.defaults = append(def.defaults, p.expression(true))
		case len(def.defaults) > 0:
			p.fail("a parameter without a default behind one with a default")
		}
	}
	p.pos++
}

// macroBody parses a body that is a function of its own, which no break or continue leaves.
func (p *parser) macroBody(def *macroDef, end string) {
	loops := p.loops
	p.loops = 0
	def.body = p.block(end)
	p.loops = loops
}
