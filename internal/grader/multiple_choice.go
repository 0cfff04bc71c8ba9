package grader

import (
	"context"
	"maps"
	"regexp"
	"strings"
	"unicode/utf8"

	"trainer/internal/grader/answer"
)

// MultipleChoice pays 1 where the chosen letter, or set of letters, is the target's, and 0 otherwise. A letter counts in a box,
// after "the answer is", and as the whole text or last line; letters in prose never do.
type MultipleChoice struct {
	Scope
	// Choices are the letters that can be chosen, 2 to 26 distinct capitals.
	Choices string `yaml:"choices"`
	// Multiple compares sets of letters: AC is "C, A" is "A and C".
	Multiple bool `yaml:"multiple" default:"false"`
}

func newMultipleChoice() *MultipleChoice {
	return &MultipleChoice{Scope: newScope(AfterReasoning), Choices: "ABCD"}
}

// Check implements Checker.
func (g *MultipleChoice) Check() error {
	seen := map[rune]bool{}
	for _, r := range g.Choices {
		if r < 'A' || r > 'Z' || seen[r] {
			return fault("choices", "must be distinct capitals as ABCD, got %q", g.Choices)
		}
		seen[r] = true
	}
	if len(seen) < 2 {
		return fault("choices", "must be at least two letters, got %q", g.Choices)
	}
	return g.Scope.check()
}

// CheckTarget implements Targeted.
func (g *MultipleChoice) CheckTarget(target []byte) error {
	text, ok := Completion{Target: target}.target()
	if !ok {
		return errNoTarget
	}
	if g.wanted(text) == nil {
		return undecidable(text, "a choice of "+g.Choices)
	}
	return nil
}

// wanted is the set of letters of a target; nil for none.
func (g *MultipleChoice) wanted(target string) map[string]bool {
	if g.Multiple {
		return g.several(target)
	}
	return set(g.letter(target))
}

func set(letter string) map[string]bool {
	if letter == "" {
		return nil
	}
	return map[string]bool{letter: true}
}

// Grade implements Grader.
func (g *MultipleChoice) Grade(_ context.Context, c Completion) (Score, error) {
	target, ok := c.target()
	if !ok {
		return unscored(NoTarget), nil
	}
	want := g.wanted(target)
	if want == nil {
		return unscored(BadTarget), nil
	}
	text, open := g.of(c)
	if open {
		return zero(OpenReasoning), nil
	}
	text = answer.Fold(text)
	got := set(g.one(text))
	if g.Multiple {
		got = g.several(severalAnswer(text))
	}
	switch {
	case strings.TrimSpace(text) == "":
		return zero(Empty), nil
	case got == nil:
		return zero(NoAnswer), nil
	}
	return verdict(maps.Equal(got, want)), nil
}

// longestChoice bounds the text that is looked at as one letter with the choice's own words.
const longestChoice = 2000

var (
	choiceWrapper = regexp.MustCompile(`\\(?:text|mathrm|textbf|mathbf|mbox)\s*\{([^{}]*)\}`)
	choiceForm    = regexp.MustCompile(`(?s)^(?:\(([A-Za-z])\)|\[([A-Za-z])\]|([A-Za-z])|([A-Za-z])\s*[).:].*|\(([A-Za-z])\)\s*.*)$`)
	choiceCue     = regexp.MustCompile(`(?i)(?:\b(?:final|correct|best|right)\s+)?\b(?:answer|choice|option)\b\s*(?:\s(?:is|are)\b|:|=)?[\s*_:"$]*` +
		`(?:(?:option|choice|answer)\s+)?(?:\\(?:text|mathrm|textbf|boxed)\s*\{\s*)?(?:\(\s*([A-Za-z])\s*\)|\[\s*([A-Za-z])\s*\]|([A-Za-z])(?:[^A-Za-z0-9'’]|$))`)
	lastLetter    = regexp.MustCompile(`^\(?([A-Za-z])\)?\.?$`)
	wordAfter     = regexp.MustCompile(`^\s+[A-Za-z]`)
	smallWord     = regexp.MustCompile(`^\s+[a-z]+\b`)
	clauseAfter   = regexp.MustCompile(`^\s+(?:because|since|as|is|by|for|which|and|or)\b`)
	secondLetter  = regexp.MustCompile(`^\s*(?:or|/|and)\s*\(?[A-Za-z]\)?(?:[^A-Za-z]|$)`)
	severalCue    = regexp.MustCompile(`(?i)\b(?:answers?|choices?|options?)\b\s*(?:is|are|:|=)[ \t*]*([^\n.]*)`)
	severalFiller = regexp.MustCompile(`\bAND\b|[()\[\],;&\s*$]`)
)

// letter is the choice that a short text is: B, (B), "B) Paris"; "" for none.
func (g *MultipleChoice) letter(s string) string {
	if utf8.RuneCountInString(s) > longestChoice {
		return ""
	}
	s = strings.TrimSpace(choiceWrapper.ReplaceAllString(answer.Unwrap(s), "$1"))
	s = strings.TrimSpace(strings.Trim(strings.Trim(s, "*"), `"'`))
	m := choiceForm.FindStringSubmatch(s)
	if m == nil {
		return ""
	}
	return g.known(strings.Join(m[1:], ""))
}

// known is a letter in capitals, where it can be chosen.
func (g *MultipleChoice) known(letter string) string {
	letter = strings.ToUpper(letter)
	if letter == "" || !strings.Contains(g.Choices, letter) {
		return ""
	}
	return letter
}

// one is the letter that a text chooses.
func (g *MultipleChoice) one(s string) string {
	if box, ok := answer.Find(s, answer.LastBoxed, answer.Marker); ok {
		return g.letter(box)
	}
	if letter, ok := g.cued(s); ok {
		return letter
	}
	s = strings.TrimSpace(s)
	if !strings.Contains(s, "\n") {
		if letter := g.letter(s); letter != "" {
			return letter
		}
	}
	last, _ := answer.Find(s, answer.LastLine, answer.Marker)
	if m := lastLetter.FindStringSubmatch(strings.TrimSpace(strings.Trim(last, "*"))); m != nil {
		return g.known(m[1])
	}
	return ""
}

// cued is the letter after the last cue; two letters there are no answer.
func (g *MultipleChoice) cued(s string) (letter string, ok bool) {
	for _, m := range choiceCue.FindAllStringSubmatchIndex(s, -1) {
		bare := m[6] >= 0
		from, to := m[6], m[7]
		rest := ""
		for k := 2; k <= 4 && !bare; k += 2 {
			if m[k] >= 0 {
				from, to = m[k], m[k+1]
			}
		}
		if rest = s[m[1]:]; bare {
			rest = s[to:]
		}
		found := s[from:to]
		switch {
		case bare && strings.Contains("ai", found) && wordAfter.MatchString(rest): // the article, the pronoun
		case bare && strings.Contains("AI", found) && smallWord.MatchString(rest) && !clauseAfter.MatchString(rest):
		case secondLetter.MatchString(rest):
			letter, ok = "", true
		case g.known(found) != "":
			letter, ok = g.known(found), true
		}
	}
	return letter, ok
}

// severalAnswer is where a text names its letters: its box, what follows the last cue, or all of it.
func severalAnswer(s string) string {
	if box, ok := answer.Find(s, answer.LastBoxed, answer.Marker); ok {
		return box
	}
	if all := severalCue.FindAllStringSubmatch(s, -1); len(all) > 0 {
		return all[len(all)-1][1]
	}
	return s
}

// several is the set of letters of a list; nil where it is none, or names a letter twice.
func (g *MultipleChoice) several(s string) map[string]bool {
	if utf8.RuneCountInString(s) > longestChoice {
		return nil
	}
	s = strings.ToUpper(choiceWrapper.ReplaceAllString(s, "$1"))
	letters := strings.Fields(severalFiller.ReplaceAllString(s, " "))
	if len(letters) == 1 {
		letters = strings.Split(letters[0], "")
	}
	out := map[string]bool{}
	for _, l := range letters {
		if len(l) != 1 || g.known(l) == "" || out[l] {
			return nil
		}
		out[l] = true
	}
	if len(out) == 0 {
		return nil
	}
	return out
}
