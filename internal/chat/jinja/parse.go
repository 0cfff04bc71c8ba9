package jinja

import (
	"slices"
	"strings"
)

// parser is a recursive descent parser over the tokens of one template.
type parser struct {
	tokens []token
	pos    int
	lib    *library
	depth  int // expressions and statements around this one
	chain  int // nodes of the current tag
	ifs    int // ifs around: within one, an unknown filter is an error only when it is reached
	loops  int // loops around that break and continue can end
	inLoop int // loops around, counting those outside of a macro
}

func (p *parser) cur() token { return p.tokens[p.pos] }

// next is the token behind the current one.
func (p *parser) next() token { return p.tokens[min(p.pos+1, len(p.tokens)-1)] }

func (p *parser) fail(format string, a ...any) {
	failAt(p.cur().at, "TemplateSyntaxError", format, a...)
}

func (p *parser) refuse(at int, what string) {
	failAt(at, "Unsupported", "%s is not supported in a chat template", what)
}

func (p *parser) is(kind tokenKind, text string) bool {
	t := p.cur()
	return t.kind == kind && t.text == text
}

func (p *parser) isOp(s string) bool   { return p.is(tokOp, s) }
func (p *parser) isName(s string) bool { return p.is(tokName, s) }

func (p *parser) skip(kind tokenKind, text string) bool {
	if p.is(kind, text) {
		p.pos++
		return true
	}
	return false
}

func (p *parser) skipOp(s string) bool   { return p.skip(tokOp, s) }
func (p *parser) skipName(s string) bool { return p.skip(tokName, s) }

func (p *parser) expectOp(s string) {
	if !p.skipOp(s) {
		p.fail("'%s' is due, not %s", s, p.cur())
	}
}

func (p *parser) expectName() token {
	t := p.cur()
	if t.kind != tokName {
		p.fail("a name is due, not %s", t)
	}
	p.pos++
	return t
}

func (p *parser) expectEnd(k tokenKind) {
	if t := p.cur(); t.kind != k {
		p.fail("the end of the tag is due, not %s", t)
	}
	p.pos++
}

// grow bounds chains such as a+a+a+..., which nest to the left without calling enter.
func (p *parser) grow() {
	if p.chain++; p.chain > maxChain {
		p.fail("this expression has more than %d parts", maxChain)
	}
}

// enter bounds nesting; leave ends it.
func (p *parser) enter() {
	if p.depth++; p.depth > maxNesting {
		p.fail("nested more than %d deep", maxNesting)
	}
}

func (p *parser) leave() { p.depth-- }

// body parses statements up to a tag named in ends, whose name is left unread, or up to the end of the template where
// there are none.
func (p *parser) body(ends ...string) []stmt {
	p.enter()
	defer p.leave()
	var out []stmt
	for {
		t := p.cur()
		switch t.kind {
		case tokEOF:
			if len(ends) > 0 {
				p.fail("the template ends where {%% %s %%} is due", strings.Join(ends, " %} or {% "))
			}
			return out
		case tokText:
			p.pos++
			out = append(out, &textStmt{t.text})
		case tokPrintBegin:
			p.pos++
			p.chain = 0
			at := p.cur().at
			out = append(out, &printStmt{p.tuple(true), at})
			p.expectEnd(tokPrintEnd)
		case tokBlockBegin:
			p.pos++
			p.chain = 0
			if t := p.cur(); t.kind == tokName && slices.Contains(ends, t.text) {
				return out
			}
			out = append(out, p.statement())
		default:
			p.fail("unexpected %s", t)
		}
	}
}

// block parses the end of an opening tag, a body and the whole closing tag.
func (p *parser) block(end string) []stmt {
	p.openBody()
	body := p.body(end)
	p.pos++
	p.expectEnd(tokBlockEnd)
	return body
}

// openBody parses the end of a tag that a body follows; Jinja allows a colon there.
func (p *parser) openBody() {
	p.skipOp(":")
	p.expectEnd(tokBlockEnd)
}
