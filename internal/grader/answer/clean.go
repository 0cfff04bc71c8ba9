package answer

import (
	"regexp"
	"strings"
)

var (
	wrapper = regexp.MustCompile(`^\\(?:boxed|fbox|displaystyle|mathbf|boldsymbol|bm)\s*\{`)

	doubledBackslash = regexp.MustCompile(`\\\\([A-Za-z])`)
	gluedQuad        = regexp.MustCompile(`\\q?quad([A-Za-z])`)
	plainText        = regexp.MustCompile(`\\(?:textnormal|textsf|texttt|textup|textmd|textbf|textit|emph)\s*\{`)
	groupByBraces    = regexp.MustCompile(`([0-9])\{,\}([0-9]{3})`)
	groupBySpace     = regexp.MustCompile(`([0-9]),?\\[!, ;]\s*([0-9]{3})([^0-9]|$)`)
	groupByMark      = regexp.MustCompile(`([0-9])['_]([0-9]{3})([^0-9]|$)`)
	groupByBlank     = regexp.MustCompile(`^([-+]?\s*)([0-9]{1,3}(?: [0-9]{3})+)((?:\.[0-9]+)?(?:\s*\\?[%A-Za-z].*)?)$`)
	spacing          = regexp.MustCompile(`\\[,;:!]|~|\\ `)
	realNumbers      = regexp.MustCompile(`\\(?:mathbb|mathbf|Bbb)\s*\{?\s*R\s*\}?`)
	wrappedAnd       = regexp.MustCompile(`\\(?:text|mathrm|mbox|textrm|operatorname)\s*\{\s*,?\s*(?:and|or)\s*,?\s*\}`)
)

// Unwrap takes off what stands around an answer: dollars, bold marks, quotes, boxes, final punctuation.
func Unwrap(s string) string {
	for {
		before := s
		s = strings.TrimSpace(strings.Trim(strings.TrimSpace(s), "`"))
		for _, d := range [][2]string{{"$$", "$$"}, {"$", "$"}, {`\(`, `\)`}, {`\[`, `\]`}, {"**", "**"}, {"__", "__"}, {`"`, `"`}} {
			inner, opens := strings.CutPrefix(s, d[0])
			inner, closes := strings.CutSuffix(inner, d[1])
			if opens && closes && inner != "" && !strings.Contains(inner, d[0]) {
				s = strings.TrimSpace(inner)
			}
		}
		s = strings.TrimSuffix(strings.TrimPrefix(s, "**"), "**")
		if m := wrapper.FindString(s); m != "" {
			if content, end, ok := group(s, len(m)-1); ok && end == len(s) {
				s = content
			}
		}
		s = strings.TrimSuffix(trimPunctuation(strings.TrimSpace(s)), `\`)
		if s == before {
			return s
		}
	}
}

// trimPunctuation takes off what ends a sentence, but for the sign of a spacing command as in "\,".
func trimPunctuation(s string) string {
	bare := strings.TrimRight(s, ".,;:")
	if bare != s && strings.HasSuffix(bare, `\`) {
		bare = s[:len(bare)+1]
	}
	return bare
}

// rowBreak stands for \\ in a cleaned text.
const rowBreak = "\x02"

// layoutCommands say nothing of the value; the blanks after them go too.
var layoutCommands = map[string]string{
	"left": "", "right": "", "big": "", "bigl": "", "bigr": "", "Big": "", "Bigl": "", "Bigr": "", "bigg": "", "biggl": "", "biggr": "",
	"Bigg": "", "Biggl": "", "Biggr": "", "displaystyle": "", "limits": "", "textstyle": "", "nolimits": "",
}

var sameCommands = map[string]string{"dfrac": `\frac`, "tfrac": `\frac`, "cfrac": `\frac`, "dbinom": `\binom`, "tbinom": `\binom`}

var signCommands = map[string]string{
	"quad": " ", "qquad": " ", "le": " ≤ ", "leq": " ≤ ", "leqslant": " ≤ ", "ge": " ≥ ", "geq": " ≥ ", "geqslant": " ≥ ", "ne": " ≠ ", "neq": " ≠ ",
	"lt": "<", "gt": ">", "cdot": " * ", "times": " * ", "ast": " * ", "bullet": " * ", "div": " / ", "lbrace": `\{`, "rbrace": `\}`,
}

// rewrite replaces the commands that a table has, each with all of its letters; bare says that blanks after them go.
func rewrite(s string, table map[string]string, bare bool) string {
	var b strings.Builder
	for i := 0; i < len(s); {
		j := i + 1
		if s[i] == '\\' {
			for j < len(s) && isLetter(s[j]) {
				j++
			}
		}
		text, ok := table[s[i+1:j]]
		if s[i] != '\\' || !ok {
			b.WriteString(s[i:j])
			i = j
			continue
		}
		b.WriteString(text)
		for i = j; bare && i < len(s) && isBlank(s[i]); i++ {
		}
	}
	return b.String()
}

// again replaces until nothing is left to be: a digit can end one group and begin the next.
func again(re *regexp.Regexp, s, with string) string {
	for {
		next := re.ReplaceAllString(s, with)
		if next == s {
			return s
		}
		s = next
	}
}

// clean writes an answer in the one form that is read: no layout, no text wrappers but \text, plain signs for relations, digits
// without separators of thousands but commas, which may be those of a list.
func clean(s string) string {
	s = Unwrap(s)
	if n := countDollars(s); n >= 4 && n%2 == 0 {
		s = strings.TrimSpace(dropDollars(s))
	}
	if !strings.Contains(s, `\begin`) {
		s = doubledBackslash.ReplaceAllString(s, `\$1`)
	}
	s = gluedQuad.ReplaceAllString(s, " $1")
	s = strings.ReplaceAll(s, `\\`, rowBreak)
	s = plainText.ReplaceAllString(s, `\text{`)
	s = rewrite(rewrite(s, layoutCommands, true), sameCommands, false)
	s = again(groupByBraces, s, "$1$2")
	s = again(groupBySpace, s, "$1$2$3")
	s = again(groupByMark, s, "$1$2$3")
	if m := groupByBlank.FindStringSubmatch(s); m != nil {
		s = m[1] + strings.ReplaceAll(m[2], " ", "") + m[3]
	}
	s = strings.ReplaceAll(s, `\%`, "%")
	s = spacing.ReplaceAllString(s, " ")
	s = realNumbers.ReplaceAllString(s, " ℝ ")
	s = rewrite(s, signCommands, false)
	s = strings.NewReplacer("≈", `\approx `, "<=", "≤", ">=", "≥", "!=", "≠").Replace(s)
	s = wrappedAnd.ReplaceAllString(s, " , ")
	return strings.TrimSpace(s)
}

func countDollars(s string) (n int) {
	for i := range len(s) {
		if s[i] == '$' && (i == 0 || s[i-1] != '\\') {
			n++
		}
	}
	return n
}

func dropDollars(s string) string {
	b := []byte(s)
	for i := range b {
		if b[i] == '$' && (i == 0 || b[i-1] != '\\') {
			b[i] = ' '
		}
	}
	return string(b)
}
