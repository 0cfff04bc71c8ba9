package answer

import (
	"errors"
	"strings"
)

// Bounds of what is read and computed; beyond them a side is unreadable.
const (
	maxLength    = 2000 // code points
	maxDepth     = 64
	maxBits      = 65536
	maxFactorial = 5000
	maxSteps     = 20000
)

// errUnread: what an answer means can't be told.
var errUnread = errors.New("unreadable")

// errTooBig: what an answer means is beyond the bounds.
var errTooBig = errors.New("too big")

// opKind is what a node of an expression does.
type opKind byte

const (
	opNumber opKind = iota
	opVariable
	opPi
	opE
	opI
	opInfinity
	opDegree
	opNegate
	opAdd
	opSubtract
	opMultiply
	opDivide
	opFraction // as opDivide, written as a fraction
	opPower
	opRoot // of args: n, x
	opFactorial
	opBinomial
	opBase // digits in a base
	opLogBase
	opFunction
)

// node is an expression. text is the literal, the variable or the function.
type node struct {
	op   opKind
	text string
	args []*node
}

func num(text string) *node { return &node{op: opNumber, text: text} }

func op(kind opKind, args ...*node) *node { return &node{op: kind, args: args} }

func call(name string, x *node) *node { return &node{op: opFunction, text: name, args: []*node{x}} }

// parser reads an expression from its tokens. Its methods return nil once err is set.
type parser struct {
	tokens []token
	at     int
	depth  int
	err    error
}

// expression reads all of s as one expression.
func expression(s string) (*node, error) {
	if len(s) > 4*maxLength {
		return nil, errUnread
	}
	p := &parser{tokens: tokens(s)}
	n := p.sum()
	if p.err == nil && p.at < len(p.tokens) {
		p.fail()
	}
	return n, p.err
}

func (p *parser) fail() *node {
	if p.err == nil {
		p.err = errUnread
	}
	p.at = len(p.tokens)
	return num("0")
}

func (p *parser) peek(ahead int) token {
	if p.at+ahead < len(p.tokens) {
		return p.tokens[p.at+ahead]
	}
	return token{}
}

func (p *parser) next() token {
	t := p.peek(0)
	p.at++
	return t
}

func (p *parser) is(text string) bool {
	t := p.peek(0)
	return (t.kind == signToken || t.kind == commandToken) && t.text == text
}

func (p *parser) eat(text string) bool {
	if p.is(text) {
		p.at++
		return true
	}
	return false
}

func (p *parser) need(text string) {
	if !p.eat(text) {
		p.fail()
	}
}

// enter counts the nesting; the caller leaves with p.depth--.
func (p *parser) enter() bool {
	p.depth++
	if p.depth > maxDepth {
		p.fail()
	}
	return p.err == nil
}

func (p *parser) sum() *node {
	defer func() { p.depth-- }()
	if !p.enter() {
		return num("0")
	}
	n := p.product()
	for p.is("+") || p.is("-") {
		kind := opAdd
		if p.next().text == "-" {
			kind = opSubtract
		}
		n = op(kind, n, p.product())
	}
	return n
}

// notFactors are the commands that end a product.
var notFactors = map[string]bool{
	`\}`: true, `\|`: true, `\in`: true, `\cup`: true, `\cap`: true, `\pm`: true, `\mp`: true, `\rangle`: true, `\rfloor`: true,
	`\rceil`: true, `\setminus`: true, `\end`: true, `\mid`: true, `\cdots`: true, `\ldots`: true, `\dots`: true, `\rvert`: true,
}

// starts says whether a factor begins here.
func (p *parser) starts() bool {
	switch t := p.peek(0); t.kind {
	case numberToken, nameToken:
		return true
	case commandToken:
		return !notFactors[t.text]
	case signToken:
		return t.text == "(" || t.text == "{"
	}
	return false
}

func (p *parser) product() *node {
	n := p.unary()
	for p.err == nil {
		switch {
		case p.eat("*"):
			n = op(opMultiply, n, p.unary())
		case p.eat("/"):
			n = op(opDivide, n, p.unary())
		case p.starts():
			n = p.beside(n, p.power())
		default:
			return n
		}
	}
	return n
}

// beside joins two factors without a sign: a mixed number or a product. Two numbers side by side are neither.
func (p *parser) beside(left, right *node) *node {
	whole := left.op == opNumber && !strings.Contains(left.text, ".")
	switch {
	case whole && right.op == opFraction && right.args[0].op == opNumber && right.args[1].op == opNumber:
		return op(opAdd, left, right)
	case left.op != opNumber || right.op != opNumber:
		return op(opMultiply, left, right)
	case whole && !strings.Contains(right.text, ".") && p.is("/") && p.peek(1).kind == numberToken:
		p.next()
		return op(opAdd, left, op(opFraction, right, p.power()))
	}
	return p.fail()
}

func (p *parser) unary() *node {
	negative := false
	for {
		switch {
		case p.eat("-"):
			negative = !negative
			if n := p.unarySign(); n != nil {
				return n
			}
		case p.eat("+"):
		default:
			n := p.power()
			if negative {
				n = op(opNegate, n)
			}
			return n
		}
	}
}

// unarySign refuses runs of signs beyond the depth, which are no mathematics.
func (p *parser) unarySign() *node {
	for i := range maxDepth {
		if t := p.peek(i); t.text != "-" && t.text != "+" {
			return nil
		}
	}
	return p.fail()
}

func (p *parser) power() *node {
	base := p.postfix(p.atom())
	if !p.eat("^") {
		return base
	}
	switch {
	case p.eat(`\circ`):
		return p.postfix(op(opMultiply, base, op(opDegree)))
	case p.is("{") && p.peek(1) == token{commandToken, `\circ`}:
		p.at += 2
		p.need("}")
		return p.postfix(op(opMultiply, base, op(opDegree)))
	}
	return p.postfix(op(opPower, base, p.argument(true)))
}

func (p *parser) postfix(n *node) *node {
	for p.err == nil {
		switch {
		case p.eat("!"):
			n = op(opFactorial, n)
		case p.eat("%"):
			n = op(opDivide, n, num("100"))
		case p.is("'"):
			return p.fail()
		case n.op == opNumber && p.eat("_"):
			n = op(opBase, n, p.argument(false))
		default:
			return n
		}
	}
	return n
}

// argument is a group or the one thing that a command takes without braces: one digit, or the whole number where raised.
func (p *parser) argument(raised bool) *node {
	if p.eat("{") {
		n := p.sum()
		p.need("}")
		return n
	}
	switch t := p.peek(0); {
	case t.kind == numberToken && !raised && len(t.text) > 1 && !strings.ContainsAny(t.text, ".eE"):
		// The rest stays a token of its own; the slice is this parser's.
		p.tokens[p.at].text = t.text[1:]
		return num(t.text[:1])
	case t.kind == numberToken:
		return num(p.next().text)
	case raised && p.eat("-"):
		if !p.enter() {
			return num("0")
		}
		defer func() { p.depth-- }()
		return op(opNegate, p.argument(raised))
	case t.kind == nameToken:
		return p.symbol(p.next().text)
	}
	return p.atom()
}

// symbol is a variable with its index, or one of the constants e and i.
func (p *parser) symbol(name string) *node {
	switch {
	case p.eat("_"):
		name += "_" + p.index()
	case name == "e":
		return op(opE)
	case name == "i":
		return op(opI)
	}
	return &node{op: opVariable, text: name}
}

func (p *parser) index() string {
	if !p.eat("{") {
		return p.next().text
	}
	var b strings.Builder
	for !p.eat("}") {
		t := p.next()
		if t.kind == endToken {
			p.fail()
			break
		}
		b.WriteString(t.text)
	}
	return b.String()
}

var closing = map[string]string{"(": ")", "{": "}", "[": "]"}

func (p *parser) atom() *node {
	defer func() { p.depth-- }()
	if !p.enter() {
		return num("0")
	}
	switch t := p.next(); t.kind {
	case numberToken:
		return num(t.text)
	case nameToken:
		if strings.Contains("fgh", t.text) && p.is("(") {
			return p.fail() // a function that nobody has given
		}
		return p.symbol(t.text)
	case signToken:
		if end := closing[t.text]; end != "" {
			n := p.sum()
			p.need(end)
			return n
		}
		if t.text == "|" {
			n := p.sum()
			p.need("|")
			return call("abs", n)
		}
	case commandToken:
		return p.command(t.text[1:])
	}
	return p.fail()
}

var greek = func() map[string]bool {
	m := map[string]bool{}
	for _, w := range strings.Fields(`alpha beta gamma delta epsilon varepsilon zeta eta theta vartheta iota kappa lambda mu nu xi rho
		sigma tau phi varphi chi psi omega Gamma Delta Theta Lambda Sigma Phi Psi Omega`) {
		m[w] = true
	}
	return m
}()

func (p *parser) command(name string) *node {
	switch name {
	case "frac":
		a := p.argument(false)
		return op(opFraction, a, p.argument(false))
	case "binom":
		a := p.argument(false)
		return op(opBinomial, a, p.argument(false))
	case "sqrt":
		if p.eat("[") {
			n := p.sum()
			p.need("]")
			return op(opRoot, n, p.argument(false))
		}
		return call("sqrt", p.argument(false))
	case "pi":
		return op(opPi)
	case "infty", "infinity", "inf":
		return op(opInfinity)
	case "lvert", "vert", "|":
		n := p.sum()
		if !p.eat(`\rvert`) && !p.eat(`\vert`) && !p.eat(`\|`) {
			return p.fail()
		}
		return call("abs", n)
	case "lfloor":
		n := p.sum()
		p.need(`\rfloor`)
		return call("floor", n)
	case "lceil":
		n := p.sum()
		p.need(`\rceil`)
		return call("ceil", n)
	}
	switch {
	case functions[name]:
		return p.function(name)
	case greek[name]:
		return p.symbol(`\` + name)
	}
	return p.fail()
}

// sameFunctions have two names.
var sameFunctions = map[string]string{"asin": "arcsin", "acos": "arccos", "atan": "arctan", "lg": "log10"}

// function reads what follows a function's name: a power, an index, the argument.
func (p *parser) function(name string) *node {
	var power, base *node
	for range 2 {
		if p.eat("^") {
			power = p.argument(true)
		} else if p.eat("_") {
			base = p.argument(false)
		}
	}
	var x *node
	switch {
	case p.is("("):
		x = p.atom()
	case p.is("{"):
		x = p.argument(false)
	default:
		x = p.bareArgument()
	}
	if same := sameFunctions[name]; same != "" {
		name = same
	}
	if power != nil && power.op == opNegate && power.args[0].text == "1" && (name == "sin" || name == "cos" || name == "tan") {
		return call("arc"+name, x)
	}
	n := call(name, x)
	if base != nil {
		n = op(opLogBase, base, x)
	}
	if power != nil {
		n = op(opPower, n, power)
	}
	return n
}

// bareArgument is a function's argument without brackets: the product up to a sign or another function.
func (p *parser) bareArgument() *node {
	n := p.signed()
	for p.err == nil {
		t := p.peek(0)
		name := strings.TrimPrefix(t.text, `\`)
		if t.kind != nameToken && t.kind != numberToken && (t.kind != commandToken || !greek[name] && name != "pi" && name != "frac" && name != "sqrt") {
			return n
		}
		n = op(opMultiply, n, p.power())
	}
	return n
}

func (p *parser) signed() *node {
	if p.is("-") {
		return p.unary()
	}
	return p.power()
}

// variables adds the names of those in n.
func (n *node) variables(all map[string]bool) {
	if n.op == opVariable {
		all[n.text] = true
	}
	for _, x := range n.args {
		x.variables(all)
	}
}

func (n *node) closed() bool {
	all := map[string]bool{}
	n.variables(all)
	return len(all) == 0
}

func (n *node) infinite() bool {
	return n.op == opInfinity || n.op == opNegate && n.args[0].op == opInfinity
}
