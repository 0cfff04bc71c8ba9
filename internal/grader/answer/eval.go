package answer

import (
	"math/big"
	"strings"
)

// evaluator computes expressions; the steps of one evaluator are bounded together.
type evaluator struct {
	variables map[string]value
	steps     int
}

// compute is the value of n with the given variables. errTooBig says that a bound was hit, errUnread that there is no value.
func compute(n *node, variables map[string]value) (v value, err error) {
	defer func() {
		// big.Float panics with an ErrNaN where infinities cancel, and says so nowhere else.
		if p := recover(); p != nil {
			if _, ok := p.(big.ErrNaN); !ok {
				panic(p)
			}
			v, err = value{}, errUnread
		}
	}()
	e := &evaluator{variables: variables}
	return e.eval(n)
}

func (e *evaluator) eval(n *node) (value, error) {
	e.steps++
	if e.steps > maxSteps {
		return value{}, errTooBig
	}
	switch n.op {
	case opNumber:
		return literalValue(n.text)
	case opVariable:
		v, ok := e.variables[n.text]
		if !ok {
			return value{}, errUnread
		}
		return v, nil
	case opPi:
		return real(pi()), nil
	case opE:
		return real(exponential(floatOf(1))), nil
	case opI:
		return imaginary, nil
	case opInfinity:
		return real(newFloat().SetInf(false)), nil
	case opDegree:
		return real(newFloat().Quo(pi(), floatOf(180))), nil
	case opBase:
		return e.base(n)
	}
	args := make([]value, len(n.args))
	for i, x := range n.args {
		v, err := e.eval(x)
		if err != nil {
			return value{}, err
		}
		args[i] = v
	}
	v, err := e.apply(n, args)
	if err != nil {
		return value{}, err
	}
	return v, e.pay(v)
}

// pay charges long numbers for the time that they take, and refuses the longest.
func (e *evaluator) pay(v value) error {
	if v.rat == nil {
		e.steps += 16
		return nil
	}
	n := bits(v.rat)
	e.steps += n / 512
	if n > maxBits || e.steps > maxSteps {
		return errTooBig
	}
	return nil
}

const maxDecimalExponent = 20000

func literalValue(text string) (value, error) {
	if len(text) > maxLength {
		return value{}, errTooBig
	}
	if i := strings.IndexAny(text, "eE"); i >= 0 {
		exp, ok := new(big.Int).SetString(strings.TrimPrefix(text[i+1:], "+"), 10)
		if !ok || exp.CmpAbs(big.NewInt(maxDecimalExponent)) > 0 {
			return value{}, errTooBig
		}
	}
	r, ok := new(big.Rat).SetString(text)
	if !ok {
		return value{}, errUnread
	}
	return exact(r), nil
}

// base reads digits in a base from 2 to 10.
func (e *evaluator) base(n *node) (value, error) {
	b, err := e.eval(n.args[1])
	if err != nil {
		return value{}, err
	}
	i, ok := b.integer()
	if !ok || !i.IsInt64() || i.Int64() < 2 || i.Int64() > 10 || n.args[0].op != opNumber || strings.ContainsAny(n.args[0].text, ".eE") {
		return value{}, errUnread
	}
	v, ok := new(big.Int).SetString(n.args[0].text, int(i.Int64()))
	if !ok {
		return value{}, errUnread
	}
	return exact(new(big.Rat).SetInt(v)), nil
}

func (e *evaluator) apply(n *node, args []value) (value, error) {
	switch n.op {
	case opNegate:
		return args[0].negated(), nil
	case opAdd, opSubtract, opMultiply, opDivide, opFraction:
		return arithmetic(n.op, args[0], args[1])
	case opPower:
		return power(args[0], args[1])
	case opRoot:
		return root(args[0], args[1])
	case opFactorial:
		return factorial(args[0])
	case opBinomial:
		return binomial(args[0], args[1])
	case opLogBase:
		b, err := logOf(args[0].complex())
		if err != nil {
			return value{}, err
		}
		x, err := logOf(args[1].complex())
		return quotient(x, b, err)
	}
	return function(n.text, args[0])
}

func arithmetic(kind opKind, x, y value) (value, error) {
	if kind != opDivide && kind != opFraction || !y.isZero() {
		if x.rat == nil || y.rat == nil {
			x, y = x.complex(), y.complex()
		}
	} else {
		return value{}, errUnread
	}
	r := new(big.Rat)
	switch kind {
	case opAdd:
		if x.rat != nil {
			return exact(r.Add(x.rat, y.rat)), nil
		}
		return plus(x, y), nil
	case opSubtract:
		if x.rat != nil {
			return exact(r.Sub(x.rat, y.rat)), nil
		}
		return minusValue(x, y), nil
	case opMultiply:
		if x.rat != nil {
			return exact(r.Mul(x.rat, y.rat)), nil
		}
		return times(x, y), nil
	}
	if x.rat != nil {
		return exact(r.Quo(x.rat, y.rat)), nil
	}
	return over(x, y), nil
}

func power(x, y value) (value, error) {
	if n, ok := y.integer(); ok && x.rat != nil {
		return wholePower(x.rat, n)
	}
	if x.rat != nil && y.rat != nil && x.rat.Sign() > 0 && y.rat.Denom().IsInt64() && y.rat.Denom().Int64() <= maxBits {
		if r, ok := exactRootOf(x.rat, int(y.rat.Denom().Int64())); ok {
			if v, err := wholePower(r, y.rat.Num()); err == nil {
				return v, nil
			}
		}
	}
	cx, cy := x.complex(), y.complex()
	if size(cy).Cmp(floatOf(maxExponent)) > 0 {
		return value{}, errTooBig
	}
	if y.rat != nil && y.rat.Denom().Bit(0) == 1 && cx.im.Sign() == 0 && cx.re.Sign() < 0 {
		v, err := powerOf(cx.negated(), cy) // a root of an odd degree is real
		if err == nil && y.rat.Num().Bit(0) == 1 {
			v = v.negated()
		}
		return v, err
	}
	return powerOf(cx, cy)
}

// wholePower is x^n. 0^0 is 1.
func wholePower(x *big.Rat, n *big.Int) (value, error) {
	one := big.NewRat(1, 1)
	switch {
	case n.Sign() == 0:
		return exact(one), nil
	case x.Sign() == 0 && n.Sign() < 0:
		return value{}, errUnread
	case x.Sign() == 0 || x.Cmp(one) == 0:
		return exact(x), nil
	case x.IsInt() && x.Num().CmpAbs(big.NewInt(1)) == 0: // −1
		if n.Bit(0) == 0 {
			return exact(one), nil
		}
		return exact(x), nil
	case n.BitLen() > 20:
		return value{}, errTooBig
	}
	k := n.Int64()
	if max(k, -k)*int64(bits(x)) > maxBits {
		return value{}, errTooBig
	}
	e := big.NewInt(max(k, -k))
	p, q := new(big.Int).Exp(x.Num(), e, nil), new(big.Int).Exp(x.Denom(), e, nil)
	if k < 0 {
		p, q = q, p
	}
	return exact(new(big.Rat).SetFrac(p, q)), nil
}

const maxRoot = 1000

func root(degree, x value) (value, error) {
	i, ok := degree.integer()
	if !ok || i.Sign() <= 0 || i.Cmp(big.NewInt(maxRoot)) > 0 {
		return value{}, errUnread
	}
	n := int(i.Int64())
	negative := x.isReal() && x.sign() < 0
	if x.rat != nil && (!negative || n%2 == 1) {
		if r, ok := exactRootOf(new(big.Rat).Abs(x.rat), n); ok {
			if negative {
				r.Neg(r)
			}
			return exact(r), nil
		}
	}
	share := exact(big.NewRat(1, int64(n))).complex()
	if negative && n%2 == 1 {
		v, err := powerOf(x.negated().complex(), share)
		if err != nil {
			return value{}, err
		}
		return v.negated(), nil
	}
	return powerOf(x.complex(), share)
}

func factorial(x value) (value, error) {
	n, ok := x.integer()
	if !ok || n.Sign() < 0 || n.Cmp(big.NewInt(maxFactorial)) > 0 {
		return value{}, errTooBig
	}
	return exact(new(big.Rat).SetInt(new(big.Int).MulRange(1, n.Int64()))), nil
}

func binomial(n, k value) (value, error) {
	a, ok := n.integer()
	b, also := k.integer()
	limit := big.NewInt(maxFactorial)
	if !ok || !also || a.Sign() < 0 || b.Sign() < 0 || a.Cmp(limit) > 0 || b.Cmp(limit) > 0 {
		return value{}, errUnread
	}
	if b.Cmp(a) > 0 {
		return whole(0), nil
	}
	return exact(new(big.Rat).SetInt(new(big.Int).Binomial(a.Int64(), b.Int64()))), nil
}

func function(name string, x value) (value, error) {
	switch name {
	case "abs":
		if x.rat != nil {
			return exact(new(big.Rat).Abs(x.rat)), nil
		}
		return real(size(x)), nil
	case "floor", "ceil":
		return rounded(name, x)
	case "sqrt":
		if x.rat != nil {
			if r, ok := exactRootOf(new(big.Rat).Abs(x.rat), 2); ok {
				if x.rat.Sign() >= 0 {
					return exact(r), nil
				}
				return value{re: newFloat(), im: newFloat().SetRat(r)}, nil
			}
		}
		return rootOf(x.complex())
	}
	return transcendental(name, x.complex())
}

func rounded(name string, x value) (value, error) {
	if !x.isReal() || x.isInfinite() {
		return value{}, errUnread
	}
	r := x.rat
	if r == nil {
		if x.re.MantExp(nil) > precision {
			return value{}, errTooBig
		}
		r, _ = x.re.Rat(nil)
	}
	n := new(big.Int)
	if name == "floor" {
		n.Div(r.Num(), r.Denom()) // Euclidean, which is the floor for a positive divisor
	} else {
		n.Neg(n.Div(new(big.Int).Neg(r.Num()), r.Denom()))
	}
	return exact(new(big.Rat).SetInt(n)), nil
}

func transcendental(name string, x value) (value, error) {
	switch name {
	case "ln", "log":
		return logOf(x)
	case "log10":
		ten, err := logOf(whole(10).complex())
		if err != nil {
			return value{}, err
		}
		l, err := logOf(x)
		return quotient(l, ten, err)
	case "exp":
		return expOf(x)
	case "arcsin":
		return arcsinOf(x)
	case "arccos":
		return arccosOf(x)
	case "arctan":
		return arctanOf(x)
	case "sinh", "cosh", "tanh":
		s, c, err := hyperbolic(x)
		return pick(name, "sinh", "cosh", s, c, err)
	case "sin", "cos", "tan", "cot", "sec", "csc":
		s, c, err := trigonometry(x)
		one := whole(1).complex()
		switch name {
		case "cot":
			return quotient(c, s, err)
		case "sec":
			return quotient(one, c, err)
		case "csc":
			return quotient(one, s, err)
		}
		return pick(name, "sin", "cos", s, c, err)
	}
	return value{}, errUnread
}

// pick is the sine, the cosine or their quotient.
func pick(name, sine, cosine string, s, c value, err error) (value, error) {
	switch {
	case err != nil:
		return value{}, err
	case name == sine:
		return s, nil
	case name == cosine:
		return c, nil
	}
	return quotient(s, c, nil)
}
