package answer

import (
	"strings"
	"unicode/utf8"
)

// delimiters of math spans that open and close with different signs, or with two.
var delimiters = [][2]string{{"$$", "$$"}, {`\(`, `\)`}, {`\[`, `\]`}}

// spanInFront is the math span that a text begins with, with its delimiters.
func spanInFront(s string) (string, bool) {
	for _, d := range delimiters {
		if !strings.HasPrefix(s, d[0]) || len(s) < 4 {
			continue
		}
		if end := strings.Index(s[3:], d[1]); end >= 0 {
			return s[:3+end+2], true
		}
	}
	if len(s) < 3 || s[0] != '$' || isDigit(s[1]) {
		return "", false
	}
	end := strings.IndexByte(s[2:], '$')
	if end < 0 {
		return "", false
	}
	return s[:2+end+1], true
}

// wholeSpan is the content of a text that is one math span.
func wholeSpan(s string) (string, bool) {
	s = strings.TrimSpace(s)
	all := spans(s)
	if len(all) != 1 || all[0].from != 0 || all[0].to != len(s) {
		return "", false
	}
	return all[0].content, true
}

const wholeLength = 200

// wholeAnswer is a short text without prose that reads as mathematics.
func wholeAnswer(s string) (string, bool) {
	s = strings.TrimSpace(s)
	if s == "" || utf8.RuneCountInString(s) > wholeLength || hasProse(s) {
		return "", false
	}
	v, err := read(s, false, 0)
	return s, err == nil && v.kind != wordsKind
}

// maxSpans are tried, from the last, before a text counts as one without a math span that reads.
const maxSpans = 256

// lastSpan is the content of the last math span that reads.
func lastSpan(s string) (string, bool) {
	all := spans(s)
	for tries := 0; len(all) > 0 && tries < maxSpans; tries++ {
		last := all[len(all)-1].content
		if _, err := read(last, false, 0); err == nil {
			return last, true
		}
		all = all[:len(all)-1]
	}
	return "", false
}

type span struct {
	from, to int
	content  string
}

// spans are the math spans of a text in order. One of single dollars is on one line, has no prose, and no digit after it: prices
// are no mathematics. Of nested \( the innermost counts. Each closing sign is looked for once, so the time is linear.
func spans(s string) (all []span) {
	var next [3]int // where the closing sign of delimiters[k] comes next; len(s) for never
	for i := 0; i < len(s); {
		found := span{to: -1}
		for k, d := range delimiters {
			if !strings.HasPrefix(s[i:], d[0]) || i+3 >= len(s) {
				continue
			}
			if next[k] < i+3 {
				next[k] = indexFrom(s, d[1], i+3)
			}
			if end := next[k]; end < len(s) && (k == 0 || indexUpTo(s, d[0], i+2, end) < 0) {
				found = span{i, end + 2, s[i+2 : end]}
			}
		}
		if found.to < 0 && s[i] == '$' && (i == 0 || s[i-1] != '\\') {
			found = dollarSpan(s, i)
		}
		if found.to < 0 {
			i++
			continue
		}
		all = append(all, found)
		i = found.to
	}
	return all
}

// dollarSpan is the span of single dollars that opens at i; its to is −1 for none.
func dollarSpan(s string, i int) span {
	end := strings.IndexAny(s[i+1:], "$\n")
	if end < 1 || s[i+1+end] == '\n' {
		return span{to: -1}
	}
	at := i + 1 + end
	if s[at-1] == '\\' || at+1 < len(s) && isDigit(s[at+1]) || hasProse(s[i+1:at]) {
		return span{to: -1}
	}
	return span{i, at + 1, s[i+1 : at]}
}

func indexFrom(s, sign string, from int) int {
	if i := strings.Index(s[from:], sign); i >= 0 {
		return from + i
	}
	return len(s)
}

// indexUpTo looks no further than the next opening sign, so that openings without an end cost each its own distance.
func indexUpTo(s, sign string, from, to int) int { return strings.Index(s[from:to], sign) }
