package answer

import (
	"regexp"
	"slices"
	"strings"
)

// box is a \boxed{…}: its place in the text, what it holds, and whether the text ends inside it.
type box struct {
	from, to int
	content  string
	cut      bool
}

var (
	boxMark   = regexp.MustCompile(`\\(?:boxed|fbox|framebox)`)
	bareBoxed = regexp.MustCompile(`^[^\s$\\{}.,;]+`)
	joins     = regexp.MustCompile(`^(?:[\s$,;]|\\\)|\\\(|\\\[|\\\]|\\text\{|\}|\band\b|\bor\b|\\quad)*$`)
	separates = regexp.MustCompile(`,|;|and|or`)
)

// group returns what stands in the braces that open at s[i], and where the text goes on; ok is false where they never close.
// An escaped brace does not count.
func group(s string, i int) (content string, end int, ok bool) {
	depth := 0
	for j := i; j < len(s); j++ {
		switch s[j] {
		case '\\':
			j++
		case '{':
			depth++
		case '}':
			if depth--; depth == 0 {
				return s[i+1 : j], j + 1, true
			}
		}
	}
	return "", len(s), false
}

// boxes are the boxes of a text, outermost only, in order.
func boxes(s string) (all []box) {
	for i := 0; ; {
		m := boxMark.FindStringIndex(s[i:])
		if m == nil {
			return all
		}
		from, at := i+m[0], i+m[1]
		if at < len(s) && isLetter(s[at]) {
			i = at
			continue
		}
		for at < len(s) && isBlank(s[at]) {
			at++
		}
		b := box{from: from, to: at}
		if at < len(s) && s[at] == '{' {
			content, end, ok := group(s, at)
			b.content, b.to, b.cut = content, end, !ok
		} else {
			b.content = bareBoxed.FindString(s[at:])
			b.to += len(b.content)
		}
		all = append(all, b)
		i = b.to
	}
}

// lastBoxed is the content of the last box, "" where it is cut or empty. Boxes with only separators between them are one list,
// unless all are equal.
func lastBoxed(s string) (string, bool) {
	all := boxes(s)
	if len(all) == 0 {
		return "", false
	}
	k := len(all) - 1
	if all[k].cut {
		return "", true
	}
	parts := []string{all[k].content}
	for ; k > 0; k-- {
		between := s[all[k-1].to:all[k].from]
		if between == "" || !joins.MatchString(between) || !separates.MatchString(between) {
			break
		}
		parts = append(parts, all[k-1].content)
	}
	slices.Reverse(parts)
	if len(slices.Compact(slices.Clone(parts))) == 1 {
		return parts[0], true
	}
	return strings.Join(parts, ", "), true
}
