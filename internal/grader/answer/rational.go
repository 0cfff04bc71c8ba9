package answer

import (
	"math/big"
	"strings"
	"unicode/utf8"
)

// Number is a text that was read as one real number.
type Number struct {
	Value   *big.Rat // to 50 digits where it is not rational
	Percent bool     // it had a percent sign, which Value has not been divided by
	Unit    string   // canonical, empty for none
}

// Read reads an answer or a target, as Find and Target cut it out, as one closed real number; words with exactly one number
// count as that number.
func Read(s string) (Number, bool) {
	if utf8.RuneCountInString(s) > maxLength {
		return Number{}, false
	}
	p := takeApart(s)
	n := Number{Percent: p.percent, Unit: p.unit}
	m, err := read(p.text, false, 0)
	if err == nil {
		if m.kind == equationKind && m.simple {
			m = *m.right
		}
		if m.kind == ratioKind && len(m.exprs) == 2 {
			m = meaning{kind: numberKind, expr: op(opFraction, m.exprs...)}
		}
		if m.kind == numberKind && m.expr.closed() {
			v, err := compute(m.expr, nil)
			if err != nil || !v.isReal() || v.isInfinite() {
				return n, false
			}
			n.Value = v.rational()
			return n, n.Value != nil
		}
		if m.kind != wordsKind && (m.kind != numberKind || !hasProse(p.text)) {
			return n, false
		}
	}
	found := number.FindAllString(s, 2)
	if len(found) != 1 {
		return n, false
	}
	n.Percent = strings.Contains(found[0], "%")
	e, err := expression(strings.NewReplacer(",", "", "%", "").Replace(clean(found[0])))
	if err != nil {
		return n, false
	}
	v, err := compute(e, nil)
	if err != nil || v.rat == nil {
		return n, false
	}
	n.Value = v.rat
	return n, true
}

// maxRationalBits bounds the exponent of a number that is not rational.
const maxRationalBits = 4096

// rational is a real to 50 digits; nil where it is too large or too small to be written out.
func (v value) rational() *big.Rat {
	if v.rat != nil {
		return v.rat
	}
	if e := v.re.MantExp(nil); e > maxRationalBits || e < -maxRationalBits {
		return nil
	}
	r, ok := new(big.Rat).SetString(v.re.Text('e', 49))
	if !ok {
		return nil
	}
	return r
}
