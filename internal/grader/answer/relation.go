package answer

import (
	"regexp"
	"slices"
	"strings"
)

var (
	// named are the left sides that only name what follows: x, x_1, f(x), (p, q), \text{area}, total cost.
	named = regexp.MustCompile(`^\s*(?:\\?[A-Za-z]+(?:_\{?\w+\}?)?'*|\\?[A-Za-z]'*\s*\(\s*[A-Za-z0-9, ]+\s*\)|(?:\\(?:text|mathrm)\{[^{}]*\})|[A-Za-z][A-Za-z ]*|\(\s*[A-Za-z](?:_\{?\w+\}?)?(?:\s*,\s*[A-Za-z](?:_\{?\w+\}?)?)+\s*\))\s*$`)
	// segmentName are those of geometry: AB, \angle ABC, \frac{AB}{CD}.
	segmentName  = regexp.MustCompile(`^(?:[A-Z]|_\{?\w+\}?|\||:|\\(?:frac|angle|triangle|overline)|[{}\s/])+$`)
	anyCapital   = regexp.MustCompile(`[A-Z]`)
	oneName      = regexp.MustCompile(`^\\?[A-Za-z]+$`)
	variableName = regexp.MustCompile(`^\\?[A-Za-z]+(?:_\{?\w+\}?)?(?:\([A-Za-z]\))?$`)
)

// readRelation reads an equation, or the set of reals that an inequality says; at are the places of its signs.
func readRelation(s string, at [][]int, depth int) (meaning, error) {
	var signs, terms []string
	from := 0
	for _, m := range at {
		terms, signs = append(terms, strings.TrimSpace(s[from:m[0]])), append(signs, s[m[0]:m[1]])
		from = m[1]
	}
	terms = append(terms, strings.TrimSpace(s[from:]))
	if terms[0] == "" && len(terms) == 2 && signs[0] == "=" && terms[1] != "" {
		return read(terms[1], true, depth+1)
	}
	if slices.Contains(terms, "") {
		return meaning{}, errUnread
	}
	isEquation := !slices.ContainsFunc(signs, func(o string) bool { return o != "=" && o != `\approx` })
	switch {
	case isEquation:
		return readEquation(terms, signs, depth)
	case slices.Contains(signs, "≠"):
		if len(signs) != 1 || !oneName.MatchString(terms[0]) {
			return meaning{}, errUnread
		}
		m, err := read(terms[1], true, depth+1)
		if err != nil {
			return meaning{}, err
		}
		return difference(allReals(), meaning{kind: setKind, items: []meaning{m}})
	case slices.Contains(signs, "="):
		return meaning{}, errUnread
	}
	return readInequality(terms, signs)
}

// readEquation takes the ends of a chain; what follows ≈ after an = is a comment.
func readEquation(terms, signs []string, depth int) (meaning, error) {
	if k := slices.Index(signs, `\approx`); k >= 0 && len(signs) > 1 && slices.Contains(signs, "=") {
		terms = terms[:k+1]
	}
	if len(terms) < 2 {
		return meaning{}, errUnread
	}
	left, right := terms[0], terms[len(terms)-1]
	m, err := read(right, true, depth+1)
	if err != nil {
		return meaning{}, err
	}
	simple := named.MatchString(left) || segmentName.MatchString(left) && anyCapital.MatchString(left)
	return meaning{kind: equationKind, left: left, right: &m, rightText: right, simple: simple}, nil
}

func readInequality(terms, signs []string) (meaning, error) {
	isName := make([]bool, len(terms))
	for i, t := range terms {
		isName[i] = variableName.MatchString(t) && t != `\pi` && t != "e"
	}
	open := func(sign string) bool { return sign == "<" || sign == ">" }
	up := func(sign string) bool { return sign == ">" || sign == "≥" }
	switch {
	case len(terms) == 2 && isName[0] != isName[1]:
		bound := terms[1]
		above := up(signs[0])
		if isName[1] {
			bound, above = terms[0], !above
		}
		k, err := expression(bound)
		if err != nil {
			return meaning{}, err
		}
		r := interval{low: k, lowOpen: open(signs[0]), high: infinity, highOpen: true}
		if !above {
			r = interval{low: minusInfinity, lowOpen: true, high: k, highOpen: open(signs[0])}
		}
		return meaning{kind: realsKind, ranges: []interval{r}}, nil
	case len(terms) == 3 && isName[1] && !isName[0] && !isName[2] && up(signs[0]) == up(signs[1]):
		low, lowOpen, high, highOpen := terms[0], open(signs[0]), terms[2], open(signs[1])
		if up(signs[0]) {
			low, lowOpen, high, highOpen = high, highOpen, low, lowOpen
		}
		a, err := expression(low)
		if err != nil {
			return meaning{}, err
		}
		b, err := expression(high)
		return meaning{kind: realsKind, ranges: []interval{{a, lowOpen, b, highOpen}}}, err
	}
	return meaning{}, errUnread
}
