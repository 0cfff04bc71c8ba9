package answer

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The rules by which an answer is found in a text.
const (
	All         = "all"
	Auto        = "auto"
	LastBoxed   = "last_boxed"
	LastNumber  = "last_number"
	AfterMarker = "after_marker"
	LastLine    = "last_line"
	Fenced      = "fenced"
	Tag         = "tag"
)

// Marker is where GSM8K's solutions put their answer.
const Marker = "####"

// Find cuts the answer out of a text by a rule; ok is false where the rule finds nothing. A text of mathematics is folded
// before. Linear in s.
func Find(s, rule, marker string) (found string, ok bool) {
	switch rule {
	case All:
		return strings.TrimSpace(s), true
	case LastBoxed:
		return lastBoxed(s)
	case LastNumber:
		return lastNumber(s)
	case AfterMarker:
		return afterMarker(s, marker)
	case LastLine:
		return lastLine(s)
	case Fenced:
		return fenced(s)
	case Tag:
		return tagged(s)
	}
	for _, rule := range []func(string) (string, bool){lastBoxed, markedAnswer, lastPhrase, wholeSpan, wholeAnswer, lastSpan, lastNumber} {
		if found, ok := rule(s); ok {
			return found, true
		}
	}
	return "", false
}

// FindNumber is Find with Auto for texts that must hold a number: it looks for no mathematics.
func FindNumber(s string) (found string, ok bool) {
	for _, rule := range []func(string) (string, bool){lastBoxed, markedAnswer, lastPhrase, lastNumber} {
		if found, ok := rule(s); ok {
			return found, true
		}
	}
	return "", false
}

// Target cuts the answer out of a target: its last box, else what follows its last marker, else all of it; folded.
func Target(s string) string {
	s = Fold(s)
	if found, ok := lastBoxed(s); ok {
		return found
	}
	if found, ok := markedAnswer(s); ok {
		return found
	}
	return s
}

func markedAnswer(s string) (string, bool) { return afterMarker(s, Marker) }

// afterMarker is the line after the last marker.
func afterMarker(s, marker string) (string, bool) {
	i := strings.LastIndex(s, marker)
	if i < 0 {
		return "", false
	}
	line, _, _ := strings.Cut(strings.TrimSpace(s[i+len(marker):]), "\n")
	return strings.TrimSpace(line), true
}

func lastLine(s string) (string, bool) {
	s = strings.TrimSpace(s)
	return strings.TrimSpace(s[strings.LastIndexByte(s, '\n')+1:]), s != ""
}

// fenced is the content of the last closed ``` block.
func fenced(s string) (found string, ok bool) {
	from := -1 // of the open block
	for at := 0; at < len(s); {
		end := strings.IndexByte(s[at:], '\n')
		next := at + end + 1
		if end < 0 {
			end, next = len(s)-at, len(s)
		}
		rest, isFence := strings.CutPrefix(strings.TrimLeft(s[at:at+end], " \t"), "```")
		switch {
		case !isFence:
		case from < 0 && !strings.Contains(rest, "`") && next > at+end:
			from = next
		case from >= 0 && strings.Trim(rest, " \t") == "":
			found, ok = strings.TrimRight(s[from:at], "\n"), true
			from = -1
		}
		at = next
	}
	return found, ok
}

// tagged is the content of the last <answer>…</answer>.
func tagged(s string) (found string, ok bool) {
	const start, end = "<answer>", "</answer>"
	for {
		i := strings.Index(s, start)
		if i < 0 {
			return strings.TrimSpace(found), ok
		}
		s = s[i+len(start):]
		j := strings.Index(s, end)
		if j < 0 {
			return strings.TrimSpace(found), ok
		}
		found, ok = s[:j], true
		s = s[j+len(end):]
	}
}

const numberForm = `[-+]?(?:[0-9]{1,3}(?:,[0-9]{3})+(?:\.[0-9]+)?|[0-9]+(?:\.[0-9]+)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?(?:\s*/\s*[0-9]+)?\s*(?:\\?%)?`

var (
	number        = regexp.MustCompile(numberForm)
	numberInFront = regexp.MustCompile(`^\\?[$€£¥]?\s*` + numberForm)
	cue           = regexp.MustCompile(`(?i)\b(?:final\s+answer|answer|result)\b[\s*_"]*(?:is|are|=|:|→)[\s:*_"]*`)
	sentenceEnd   = regexp.MustCompile(`[.!?](?:\s|$)`)
)

// lastNumber is the last number that is not glued to a word or an exponent. It looks at the last line first.
func lastNumber(s string) (string, bool) {
	for s != "" {
		from := strings.LastIndexByte(s, '\n') + 1
		if found, ok := lastNumberOf(s[from:]); ok {
			return found, true
		}
		s = s[:max(from-1, 0)]
	}
	return "", false
}

// lastNumberOf is that of a line. A sign right after a letter, a digit or a closing bracket is a hyphen.
func lastNumberOf(s string) (found string, ok bool) {
	if !strings.ContainsAny(s, "0123456789") {
		return "", false
	}
	for _, m := range number.FindAllStringIndex(s, -1) {
		t, before := strings.TrimSpace(s[m[0]:m[1]]), s[:m[0]]
		last, _ := utf8.DecodeLastRuneInString(before)
		switch {
		case before == "":
		case unicode.IsLetter(last), last == '_', last == '^', strings.HasSuffix(before, "_{"), strings.HasSuffix(before, "^{"):
			continue
		case (t[0] == '+' || t[0] == '-') && (unicode.IsDigit(last) || last == ')' || last == '}'):
			t = t[1:]
		}
		found, ok = t, true
	}
	return found, ok
}

// lastPhrase is what follows the last "the answer is": a math span, or the number of the sentence where it has words, or the
// sentence.
func lastPhrase(s string) (string, bool) {
	all := cue.FindAllStringIndex(s, -1)
	if len(all) == 0 {
		return "", false
	}
	t, _, _ := strings.Cut(s[all[len(all)-1][1]:], "\n\n")
	if !strings.HasPrefix(t, "$$") && !strings.HasPrefix(t, `\[`) {
		t, _, _ = strings.Cut(t, "\n")
	}
	if span, ok := spanInFront(t); ok {
		return span, true
	}
	if end := sentenceEnd.FindStringIndex(t); end != nil {
		t = t[:end[0]]
	}
	t = strings.TrimSpace(t)
	if hasProse(t) {
		if n := numberInFront.FindString(t); n != "" {
			return strings.TrimSpace(n), true
		}
		if ns := number.FindAllString(t, 2); len(ns) == 1 {
			return strings.TrimSpace(ns[0]), true
		}
	}
	return t, t != ""
}
