package grader

import (
	"context"
	"encoding/json"
	"math"
	"strings"
	"testing"
)

// long is what a completion of tens of thousands of tokens has.
const long = 1 << 16

// hostile are completions that cost a careless reader minutes or its stack.
var hostile = map[string]string{
	"one letter very often":    strings.Repeat("a", long),
	"digits":                   strings.Repeat("7", long),
	"numbers":                  strings.Repeat("1 ", long/2),
	"commas":                   strings.Repeat("1,234,", long/6),
	"blanks":                   "answer is" + strings.Repeat(" ", long),
	"open boxes":               strings.Repeat(`\boxed{`, long/7),
	"nested boxes":             strings.Repeat(`\boxed{`, long/16) + "1" + strings.Repeat("}", long/16),
	"empty boxes":              strings.Repeat(`\boxed{},`, long/9),
	"deep fractions":           `\boxed{` + strings.Repeat(`\frac{1}{`, 900) + "2" + strings.Repeat("}", 900) + "}",
	"deep brackets":            `\boxed{` + strings.Repeat("(", 990) + "1" + strings.Repeat(")", 990) + "}",
	"many brackets":            strings.Repeat("(", long),
	"signs":                    `\boxed{` + strings.Repeat("-", 1900) + "1}",
	"tower of powers":          `\boxed{9^{9^{9^{9^{9}}}}}`,
	"huge exponent":            `\boxed{1e999999999}`,
	"huge power":               `\boxed{2^{999999999999999999999}}`,
	"factorials":               `\boxed{` + strings.Repeat("5000!+", 300) + "1}",
	"long fractions":           `\boxed{` + strings.Repeat("1/99991+1/99989+", 120) + "1}",
	"iterated exponentials":    `\boxed{e^{e^{e^{e^{10}}}}}`,
	"sine of the huge":         `\boxed{\sin(10^{5000})}`,
	"many cosines":             `\boxed{` + strings.Repeat(`\cos1`, 390) + "}",
	"cancelling infinities":    `\boxed{\infty-\infty}`,
	"infinite sine":            `\boxed{\sin\infty}`,
	"many variables":           `\boxed{` + strings.Repeat("x", 1900) + "}",
	"a list of everything":     `\boxed{` + strings.Repeat("1,", 990) + "2}",
	"a set of roots":           `\boxed{\{` + strings.Repeat(`\sqrt2,`, 270) + `3\}}`,
	"spans":                    strings.Repeat("$1$ ", long/4),
	"open spans":               strings.Repeat(`\(`, long/2) + `\)`,
	"dollars":                  strings.Repeat("$", long),
	"prose in dollars":         strings.Repeat("$some words$", long/12),
	"quotes":                   strings.Repeat(`"`, long),
	"fences":                   strings.Repeat("```\n", long/4),
	"tags":                     strings.Repeat("<answer>", long/8),
	"open reasoning":           strings.Repeat("<think>", long/7),
	"cues":                     strings.Repeat("answer is ", long/10),
	"choices":                  strings.Repeat("answer A or B ", long/14),
	"JSON arrays":              strings.Repeat("[", long/2),
	"JSON objects":             strings.Repeat(`{"a":`, long/5),
	"JSON of a huge exponent":  `{"a": 1e999999999}`,
	"JSON of many numbers":     "[" + strings.Repeat("1,", long/2-2) + "1]",
	"invalid UTF-8":            strings.Repeat("\xff\xfe", long/2),
	"full-width digits":        strings.Repeat("７", long/3),
	"roots":                    strings.Repeat("√", long/3),
	"a matrix":                 `\boxed{\begin{pmatrix}` + strings.Repeat(`1&`, 900) + `1\end{pmatrix}}`,
	"control characters":       strings.Repeat("\x00\x02\x1b", long/3),
	"a number with many zeros": "0." + strings.Repeat("0", long) + "1",
}

// examples are a grader of each kind that asks nobody, ready to grade, with a target.
func examples(t testing.TB) map[string]struct {
	g      Grader
	target string
} {
	type example = struct {
		g      Grader
		target string
	}
	group := 1
	longest := 100
	all := map[string]example{
		"exact": {newExact(), `"72"`}, "exact, auto": {&Exact{Scope: newScope(AfterReasoning), Cut: Cut{"auto", "####"}}, `"72"`},
		"contains": {&Contains{Scope: newScope(FullText), Mode: "any", WholeWord: true}, `"aa"`}, "numeric": {newNumeric(), `"72"`},
		"regex":      {&Regex{Scope: newScope(FullText), Pattern: `(a+)+$`, Mode: "search", Group: &group}, `"72"`},
		"schema":     {&JSONSchema{Scope: newScope(AfterReasoning), Extract: "auto", Schema: map[string]any{"uniqueItems": true, "multipleOf": 0.1}}, ``},
		"math_equal": {newMathEqual(), `"\\frac{x^2}{2}"`}, "math_equal, set": {newMathEqual(), `"\\{1, 2, \\sqrt2\\}"`}, "math_equal, interval": {newMathEqual(), `"(1, 2]"`},
		"math_equal, decimal": {newMathEqual(), `"0.333333"`}, "choice": {newMultipleChoice(), `"B"`},
		"choices": {&MultipleChoice{Scope: newScope(FullText), Choices: "ABCD", Multiple: true}, `"AB"`},
		"length":  {&Length{Scope: newScope(FullText), Unit: Words, Max: &longest, Ramp: 10}, ``}, "repetition": {&Repetition{Scope: newScope(FullText), Unit: Words, NGram: 100}, ``},
		"format": {newFormat(), ``},
	}
	for _, e := range all {
		prepare(t, e.g)
	}
	return all
}

// Whatever was sampled has a score that is finite, or a reason for none, at a cost that the test itself would show.
func TestHostileCompletionsAreScored(t *testing.T) {
	if testing.Short() {
		t.Skip("long texts, and no two goroutines")
	}
	for kind, e := range examples(t) {
		for name, text := range hostile {
			held(t, kind+" of "+name, e.g, Completion{Text: text, Target: json.RawMessage(e.target)})
		}
	}
}

func held(t testing.TB, name string, g Grader, c Completion) {
	t.Helper()
	got, err := g.Grade(context.Background(), c)
	again, _ := g.Grade(context.Background(), c)
	switch {
	case err != nil:
		t.Errorf("%s: %v", name, err)
	case math.IsNaN(got.Value) || got.Value < -1 || got.Value > 1 || got.Unscored && got.Why == "":
		t.Errorf("%s: %+v", name, got)
	case again.Value != got.Value || again.Why != got.Why:
		t.Errorf("%s: %+v, and again %+v", name, got, again)
	}
}

func FuzzGraders(f *testing.F) {
	for _, text := range []string{`\boxed{\frac{1}{2}}`, "The answer is $x=3$.", "#### 1,234", "<think>a</think>B) Paris", `{"a": [1.0]}`, `x \in (1,2] \cup \{3\}`, "50\\%", "√(2)"} {
		f.Add(text, text)
	}
	all := examples(f)
	f.Fuzz(func(t *testing.T, text, target string) {
		if len(text) > 4000 || len(target) > 4000 {
			return
		}
		raw, err := json.Marshal(target)
		if err != nil {
			t.Skip()
		}
		for kind, e := range all {
			held(t, kind, e.g, Completion{Text: text, Target: raw})
		}
	})
}
