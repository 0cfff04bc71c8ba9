package answer

import (
	"math/big"
	"strings"
)

// decimal is a literal with a point: its value, how many digits stand after the point, and how many are significant.
type decimal struct {
	value               *big.Rat
	places, significant int
}

// asDecimal is n where it is a decimal literal, with or without a sign.
func asDecimal(n *node) (decimal, bool) {
	negative := false
	for n.op == opNegate {
		n, negative = n.args[0], !negative
	}
	if n.op != opNumber || !strings.Contains(n.text, ".") || strings.ContainsAny(n.text, "eE") {
		return decimal{}, false
	}
	v, err := literalValue(n.text)
	if err != nil {
		return decimal{}, false
	}
	if negative {
		v = v.negated()
	}
	_, fraction, _ := strings.Cut(n.text, ".")
	significant := len(strings.TrimLeft(strings.Replace(n.text, ".", "", 1), "0"))
	return decimal{v.rat, len(fraction), significant}, true
}

// roundsTo says whether the decimal literal a has enough digits and stands for b: b is within half a unit of its last digit. Of
// two decimals the coarser decides.
func (c *comparison) roundsTo(a, b *node) (bool, error) {
	d, ok := asDecimal(a)
	if !ok || d.significant < c.digits {
		return false, nil
	}
	if other, ok := asDecimal(b); ok && other.places < d.places {
		return false, nil
	}
	v, err := compute(b, nil)
	if err != nil || !v.isReal() || v.isInfinite() {
		return false, err
	}
	half := new(big.Rat).SetFrac(big.NewInt(1), new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(d.places)), nil))
	half.Mul(half, big.NewRat(1, 2))
	if v.rat != nil {
		gap := new(big.Rat).Sub(v.rat, d.value)
		return gap.Abs(gap).Cmp(half) <= 0, nil
	}
	gap := newFloat().Sub(v.re, newFloat().SetRat(d.value))
	return gap.Abs(gap).Cmp(newFloat().SetRat(half)) <= 0, nil
}
