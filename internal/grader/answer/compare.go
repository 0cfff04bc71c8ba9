package answer

import (
	"errors"
	"regexp"
	"strings"
	"unicode/utf8"
)

// Result is what a comparison came to.
type Result string

// The results; all but Same and BadTarget are an answer that is not paid.
const (
	Same      Result = ""
	Wrong     Result = "wrong"
	Empty     Result = "empty"
	TooLong   Result = "too_long"
	Unparsed  Result = "unparsed"
	BadTarget Result = "undecidable_target" // the target says nothing that an answer could be held to
)

// Options say how strictly answers are compared.
type Options struct {
	// Digits is the number of significant digits from which on a decimal equals what rounds to it; 0: never.
	Digits int
	// Units is lenient (one side may lack it), strict, or ignore.
	Units string
	// Percent is lenient (a missing sign may mean the same number) or strict.
	Percent string
	// Ordered compares bare lists in order.
	Ordered bool
	// Literal wants a number written out where the target is one.
	Literal bool
}

// Compare says whether an answer, as Find cut it out, means what a target means, as Target cut it out. Equal text is the same
// whatever it means.
func Compare(answer, target string, o Options) Result {
	switch {
	case strings.TrimSpace(target) == "" || utf8.RuneCountInString(target) > maxLength:
		return BadTarget
	case strings.TrimSpace(answer) == "":
		return Empty
	case utf8.RuneCountInString(answer) > maxLength:
		return TooLong
	case sameText(answer, target):
		return Same
	}
	a, b := takeApart(answer), takeApart(target)
	if o.Units != "strict" {
		a.takeLetter(b.text)
		b.takeLetter(a.text)
	}
	if o.Units == "lenient" && a.unit != "" && b.unit != "" && a.unit != b.unit || o.Units == "strict" && a.unit != b.unit {
		return Wrong
	}
	a.text, b.text = decimalComma(a.text, b.text), decimalComma(b.text, a.text)
	if r, ok := sameBase(a, b); ok {
		return r
	}
	return compareParts(a, b, o)
}

func sameText(a, b string) bool {
	key := func(s string) string { return strings.Join(strings.Fields(clean(s)), "") }
	if k := key(a); k != "" && k == key(b) {
		return true
	}
	w := plainWords(a)
	return w != "" && w == plainWords(b)
}

func compareParts(a, b side, o Options) Result {
	target, err := read(b.text, false, 0)
	if err != nil || target.check() != nil {
		return BadTarget
	}
	given, err := read(a.text, false, 0)
	if err != nil {
		return Unparsed
	}
	if o.Literal && target.literal() && !given.literal() {
		return Wrong
	}
	c := &comparison{digits: o.Digits, ordered: o.Ordered}
	equal := false
	if a.percent != b.percent && given.kind == numberKind && target.kind == numberKind {
		x, y := given, target
		if a.percent {
			x.expr = op(opDivide, x.expr, num("100"))
		} else {
			y.expr = op(opDivide, y.expr, num("100"))
		}
		equal, err = c.equal(x, y)
		if err == nil && !equal && o.Percent == "lenient" {
			equal, err = c.equal(given, target)
		}
	} else {
		equal, err = c.equal(given, target)
	}
	switch {
	case err != nil:
		return Unparsed
	case equal:
		return Same
	}
	return Wrong
}

// Decidable returns nil where a target, as Target cut it out, can be compared with answers that are written otherwise.
func Decidable(target string) error {
	if strings.TrimSpace(target) == "" {
		return errors.New("empty")
	}
	if utf8.RuneCountInString(target) > maxLength {
		return errTooBig
	}
	b := takeApart(target)
	m, err := read(b.text, false, 0)
	if err == nil {
		err = m.check()
	}
	return err
}

// side is an answer without its unit and its percent sign.
type side struct {
	text, unit   string
	percent      bool
	digits, base string // 2516 and 8 of 2516_8
}

var (
	percentSign = regexp.MustCompile(`^(.*\S)\s*(?:%|\\?(?:text|mathrm)?\s*\{?\s*(?:percentage|percent|per cent)\s*\}?)$`)
	countEnd    = regexp.MustCompile(`[0-9)}]$`)
	inBase      = regexp.MustCompile(`^([0-9]+)_\{?([0-9]+)\}?$`)
	commaNumber = regexp.MustCompile(`^-?[0-9]+,[0-9]+$`)
	pointNumber = regexp.MustCompile(`^-?[0-9]*\.[0-9]+$`)
	allDigits   = regexp.MustCompile(`^[0-9]+$`)
)

func takeApart(s string) side {
	p := side{text: clean(s)}
	for {
		if m := percentSign.FindStringSubmatch(p.text); m != nil && !p.percent && countEnd.MatchString(m[1]) {
			p.text, p.percent = m[1], true
			continue
		}
		rest, unit := splitUnit(p.text)
		if unit == "" || p.unit != "" {
			break
		}
		p.text, p.unit = clean(rest), unit
	}
	if m := inBase.FindStringSubmatch(p.text); m != nil {
		p.digits, p.base = m[1], m[2]
	}
	return p
}

// takeLetter reads a letter glued to a number as its unit, unless the other side has that letter.
func (p *side) takeLetter(other string) {
	if m := gluedUnit.FindStringSubmatch(p.text); m != nil && p.unit == "" && !strings.Contains(other, m[2]) {
		p.text, p.unit = m[1], canonicalUnit(m[2])
	}
}

// decimalComma reads a comma that can't group digits as a point, against a decimal.
func decimalComma(s, other string) string {
	if commaNumber.MatchString(s) && !thousands.MatchString(s) && pointNumber.MatchString(other) {
		return strings.Replace(s, ",", ".", 1)
	}
	return s
}

// sameBase compares digits where one side names a base and the other is plain digits.
func sameBase(a, b side) (Result, bool) {
	if a.base == "" {
		a, b = b, a
	}
	if a.base == "" || b.base != "" || !allDigits.MatchString(b.text) {
		return "", false
	}
	if a.digits == b.text {
		return Same, true
	}
	return Wrong, true
}

// literal says whether m is written out: a number, a fraction, a mixed number, or a × 10^n.
func (m meaning) literal() bool {
	if m.kind == equationKind && m.simple {
		m = *m.right
	}
	if m.kind != numberKind {
		return false
	}
	n := m.expr
	for n.op == opNegate {
		n = n.args[0]
	}
	signed := func(x *node) bool { return x.op == opNumber || x.op == opNegate && x.args[0].op == opNumber }
	switch n.op {
	case opNumber:
		return true
	case opFraction, opDivide:
		return signed(n.args[0]) && signed(n.args[1])
	case opAdd:
		return n.args[0].op == opNumber && n.args[1].op == opFraction && signed(n.args[1].args[0]) && signed(n.args[1].args[1])
	case opMultiply:
		return n.args[0].op == opNumber && n.args[1].op == opPower && n.args[1].args[0].op == opNumber && n.args[1].args[0].text == "10"
	}
	return false
}

// check computes every closed expression of a target: one without a value is no target.
func (m meaning) check() error {
	switch m.kind {
	case numberKind:
		if m.expr.closed() {
			_, err := compute(m.expr, nil)
			return err
		}
	case listKind, setKind, tupleKind:
		for _, x := range m.items {
			if err := x.check(); err != nil {
				return err
			}
		}
	case equationKind:
		return m.right.check()
	}
	return nil
}
