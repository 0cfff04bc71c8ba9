package answer

import (
	"regexp"
	"strings"
)

// functions are the names that stand for a function wherever they are written as a word.
var functions = map[string]bool{
	"sin": true, "cos": true, "tan": true, "cot": true, "sec": true, "csc": true, "arcsin": true, "arccos": true, "arctan": true,
	"sinh": true, "cosh": true, "tanh": true, "ln": true, "log": true, "lg": true, "exp": true, "sqrt": true, "abs": true,
	"asin": true, "acos": true, "atan": true, "floor": true, "ceil": true, "max": true, "min": true, "gcd": true, "lcm": true,
}

var (
	commandAndWords = regexp.MustCompile(`\\[A-Za-z]+(?:\s*\{[A-Za-z ]*\})?`)
	longWord        = regexp.MustCompile(`[A-Za-z]{3,}`)
	textWrapper     = regexp.MustCompile(`\\(?:text|textbf|textit|mathrm|mathbf|mbox|textrm|operatorname|textsc)\s*\{([^{}]*)\}`)
	thinSpace       = regexp.MustCompile(`\\[,;:! ]|~|\\quad`)
	blanks          = regexp.MustCompile(`\s+`)
	bracedLetter    = regexp.MustCompile(`^\(\s*([a-z])\s*\)$`)
)

// hasProse says whether a text has a word of three letters that is no function, unit or "and". Linear in s.
func hasProse(s string) bool {
	for _, w := range longWord.FindAllString(commandAndWords.ReplaceAllString(s, " "), -1) {
		w = strings.ToLower(w)
		if !functions[w] && w != "and" && w != "infinity" && !isUnit.MatchString(w) {
			return true
		}
	}
	return false
}

// plainWords is a text as it is compared: without wrappers, in lower case, one blank between words, no final punctuation, and
// (c) as c.
func plainWords(s string) string {
	s = textWrapper.ReplaceAllString(Unwrap(s), "$1")
	s = thinSpace.ReplaceAllString(s, " ")
	s = strings.ToLower(strings.Trim(strings.TrimSpace(blanks.ReplaceAllString(s, " ")), `"'`))
	if m := bracedLetter.FindStringSubmatch(s); m != nil {
		s = m[1]
	}
	return strings.TrimSpace(strings.TrimRight(s, ".,;:!"))
}
