package answer

import (
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// meaningKind says what an answer is.
type meaningKind byte

const (
	numberKind   meaningKind = iota // expr
	wordsKind                       // text
	listKind                        // items, bare or of ±
	setKind                         // items
	tupleKind                       // items, open, close; also an interval
	realsKind                       // ranges
	pointsKind                      // ranges that are computed, of a set difference
	matrixKind                      // rows
	ratioKind                       // exprs
	equationKind                    // left, right
)

// meaning is an answer as it was read.
type meaning struct {
	kind        meaningKind
	expr        *node
	text        string
	items       []meaning
	open, close byte
	ranges      []interval
	points      []segment
	rows        [][]*node
	exprs       []*node
	// left = right. simple says that left only names what right is, so that it may be missing on the other side.
	left, rightText string
	right           *meaning
	simple          bool
}

// maxNesting of structures: sets of tuples of sets.
const maxNesting = 8

var (
	emptySet     = regexp.MustCompile(`^(?:\\(?:emptyset|varnothing)|\\\{\s*\\\}|\{\s*\})$`)
	timeOfDay    = regexp.MustCompile(`^[0-9]{1,2}:[0-5][0-9]\s*(?:[ap]\.?m\.?)?$`)
	timeFiller   = regexp.MustCompile(`[\s.]`)
	onlyText     = regexp.MustCompile(`^\\text(?:bf|it|rm)?\s*\{[^{}]*\}$`)
	onlyNumber   = regexp.MustCompile(`^[-+]?[0-9.,/ ]+$`)
	lowerWords   = regexp.MustCompile(`^[a-z][a-z' -]*$`)
	lowerWord    = regexp.MustCompile(`[a-z]{3,}`)
	commandFirst = regexp.MustCompile(`^\\[a-zA-Z]`)
	conjunction  = regexp.MustCompile(`(?:\s+|([0-9)\]}]))(?:and|or)(?:\s+|([0-9(\[\\-]))`)
	doubleComma  = regexp.MustCompile(`,\s*,`)
	memberOf     = regexp.MustCompile(`^\s*[A-Za-z]\s*\\in([^A-Za-z]|$)\s*`)
	arrayBracket = regexp.MustCompile(`(?s)^[\[(]\s*(\\begin\s*\{array\}.*\\end\s*\{array\})\s*[\])]$`)
	matrixForm   = regexp.MustCompile(`(?s)^\\begin\s*\{([pbvBV]?matrix|array)\}(?:\{[^{}]*\})?(.*)\\end\s*\{([pbvBV]?matrix|array)\}$`)
	rowEnd       = regexp.MustCompile(rowBreak + `(?:\s*\[[^\]]*\])?`)
	thousands    = regexp.MustCompile(`^[-+]?[1-9][0-9]{0,2}(?:,[0-9]{3})+(?:\.[0-9]+)?$`)
	setMinus     = regexp.MustCompile(`\\setminus|\\backslash`)
	relationSign = regexp.MustCompile(`[<>≤≥≠=]|\\approx`)
	plusMinus    = regexp.MustCompile(`\\pm|\\mp|\+/-`)
)

var noSolutions = []string{"no solution", "no solutions", "no real solution", "no real solutions", "empty set", "none"}

// read finds the meaning of an answer; inner says that it stands in brackets or a list, where a comma can't group digits.
func read(s string, inner bool, depth int) (meaning, error) {
	if depth > maxNesting || utf8.RuneCountInString(s) > maxLength {
		return meaning{}, errUnread
	}
	s = clean(s)
	if s == "" {
		return meaning{}, errUnread
	}
	words := plainWords(s)
	if m, ok := readWords(s, words); ok {
		return m, nil
	}
	if !inner {
		s = again(conjunction, s, "$1 , $2")
		s = doubleComma.ReplaceAllString(s, ",")
	}
	s = strings.TrimSpace(memberOf.ReplaceAllString(s, "$1"))
	if s == "ℝ" {
		return allReals(), nil
	}
	if s == "" {
		return meaning{}, errUnread
	}
	if m := arrayBracket.FindStringSubmatch(s); m != nil {
		s = m[1]
	}
	if m := matrixForm.FindStringSubmatch(s); m != nil && m[1] == m[3] {
		return readMatrix(m[1], m[2])
	}
	if !inner && thousands.MatchString(s) {
		s = strings.ReplaceAll(s, ",", "")
	}
	return readStructure(s, inner, depth)
}

// readWords reads answers that are no mathematics.
func readWords(s, words string) (meaning, bool) {
	switch {
	case emptySet.MatchString(s) || slices.Contains(noSolutions, words):
		return meaning{kind: setKind}, true
	case timeOfDay.MatchString(words):
		return meaning{kind: wordsKind, text: strings.TrimLeft(timeFiller.ReplaceAllString(words, ""), "0")}, true
	case onlyText.MatchString(s) && !onlyNumber.MatchString(words),
		lowerWords.MatchString(words) && lowerWord.MatchString(words) && !functions[words] && words != "infinity" && words != "inf" &&
			words != "theta" && !commandFirst.MatchString(s):
		return meaning{kind: wordsKind, text: words}, true
	}
	return meaning{}, false
}

func readMatrix(form, body string) (meaning, error) {
	m := meaning{kind: matrixKind}
	if strings.EqualFold(form, "vmatrix") {
		return m, errUnread // a determinant
	}
	for _, row := range rowEnd.Split(body, -1) {
		if strings.TrimSpace(row) == "" {
			continue
		}
		var entries []*node
		for _, entry := range strings.Split(row, "&") {
			n, err := expression(clean(entry))
			if err != nil {
				return m, err
			}
			entries = append(entries, n)
		}
		m.rows = append(m.rows, entries)
	}
	return m, nil
}

func readStructure(s string, inner bool, depth int) (meaning, error) {
	if setMinus.MatchString(s) {
		parts := splitCommands(s, "setminus", "backslash")
		if len(parts) != 2 {
			return meaning{}, errUnread
		}
		return readDifference(parts[0], parts[1], depth)
	}
	if parts := splitCommands(s, "cup"); len(parts) > 1 {
		union := meaning{kind: realsKind}
		for _, p := range parts {
			m, err := read(p, true, depth+1)
			if err != nil {
				return meaning{}, err
			}
			r, err := m.reals()
			if err != nil {
				return meaning{}, err
			}
			union.ranges = append(union.ranges, r...)
		}
		return union, nil
	}
	if m, ok, err := readBrackets(s, depth); ok || err != nil {
		return m, err
	}
	if parts := splitTop(s); len(parts) > 1 {
		items, err := readAll(dropBlank(parts), depth)
		return meaning{kind: listKind, items: items}, err
	}
	if at := relationSign.FindAllStringIndex(s, -1); at != nil {
		return readRelation(s, at, depth)
	}
	if at := plusMinus.FindAllStringIndex(s, -1); at != nil {
		return readPlusMinus(s, at)
	}
	if strings.Contains(s, ":") && !strings.Contains(s, `\`) {
		return readRatio(s)
	}
	if inner {
		s, _ = splitUnit(s)
	}
	n, err := expression(s)
	return meaning{kind: numberKind, expr: n}, err
}

// readBrackets reads tuples, intervals and sets; ok is false where s is none.
func readBrackets(s string, depth int) (m meaning, ok bool, err error) {
	first, last := s[0], s[len(s)-1]
	switch {
	case len(s) > 1 && strings.IndexByte("([]", first) >= 0 && strings.IndexByte(")][", last) >= 0 && (first == ']' || last == '[' || bracketed(s)):
		return readTuple(s, first, last, depth)
	case strings.HasPrefix(s, `\{`) && strings.HasSuffix(s, `\}`) && bracketed(s):
		items, err := readAll(splitTop(s[2:len(s)-2]), depth)
		return meaning{kind: setKind, items: items}, true, err
	case first == '{' && last == '}' && bracketed(s):
		parts := splitTop(s[1 : len(s)-1])
		if len(parts) == 1 {
			m, err := read(s[1:len(s)-1], true, depth+1)
			return m, true, err
		}
		items, err := readAll(parts, depth)
		return meaning{kind: setKind, items: items}, true, err
	}
	return meaning{}, false, nil
}

func readTuple(s string, first, last byte, depth int) (meaning, bool, error) {
	parts := splitTop(s[1 : len(s)-1])
	outward := first == ']' || last == '['
	if len(parts) == 1 && (outward || first != '[' || last != ']') || outward && len(parts) != 2 {
		return meaning{}, false, nil
	}
	if first == ']' { // ]a,b[ is open
		first = '('
	}
	if last == '[' {
		last = ')'
	}
	items, err := readAll(parts, depth)
	return meaning{kind: tupleKind, items: items, open: first, close: last}, true, err
}

func readAll(parts []string, depth int) ([]meaning, error) {
	items := make([]meaning, len(parts))
	for i, p := range parts {
		m, err := read(p, true, depth+1)
		if err != nil {
			return nil, err
		}
		items[i] = m
	}
	return items, nil
}

func dropBlank(parts []string) []string {
	return slices.DeleteFunc(parts, func(p string) bool { return strings.TrimSpace(p) == "" })
}

// readPlusMinus reads the two values of one ±.
func readPlusMinus(s string, at [][]int) (meaning, error) {
	m := meaning{kind: listKind}
	if len(at) != 1 {
		return m, errUnread
	}
	for _, sign := range []string{"+", "-"} {
		n, err := expression(s[:at[0][0]] + sign + s[at[0][1]:])
		if err != nil {
			return m, err
		}
		m.items = append(m.items, meaning{kind: numberKind, expr: n})
	}
	return m, nil
}

func readRatio(s string) (meaning, error) {
	m := meaning{kind: ratioKind}
	for _, part := range strings.Split(s, ":") {
		n, err := expression(part)
		if err != nil {
			return m, err
		}
		m.exprs = append(m.exprs, n)
	}
	return m, nil
}

// depths calls each with every place of s that is no bracket, the bracket depth there, and how many bytes stand there: a command
// is one. It returns false as soon as each does.
func depths(s string, each func(i, n, depth int) bool) {
	depth := 0
	for i := 0; i < len(s); {
		n := 1
		switch {
		case s[i] == '\\' && i+1 < len(s):
			n = 2
			for isLetter(s[i+1]) && i+n < len(s) && isLetter(s[i+n]) {
				n++
			}
			switch s[i+1] {
			case '{':
				depth++
			case '}':
				depth--
			}
		case strings.IndexByte("([{", s[i]) >= 0:
			depth++
		case strings.IndexByte(")]}", s[i]) >= 0:
			depth--
		}
		if !each(i, n, depth) {
			return
		}
		i += n
	}
}

// splitTop splits at the commas and semicolons outside of brackets.
func splitTop(s string) (parts []string) {
	from := 0
	depths(s, func(i, _, depth int) bool {
		if depth == 0 && (s[i] == ',' || s[i] == ';') {
			parts = append(parts, s[from:i])
			from = i + 1
		}
		return true
	})
	return append(parts, s[from:])
}

// splitCommands splits at commands outside of brackets.
func splitCommands(s string, names ...string) (parts []string) {
	from := 0
	depths(s, func(i, n, depth int) bool {
		if depth == 0 && s[i] == '\\' && slices.Contains(names, s[i+1:i+n]) {
			parts = append(parts, s[from:i])
			from = i + n
		}
		return true
	})
	return append(parts, s[from:])
}

// bracketed says whether the first bracket closes at the end.
func bracketed(s string) (whole bool) {
	depths(s, func(i, n, depth int) bool {
		whole = i+n == len(s) && depth == 0
		return depth != 0
	})
	return whole
}
