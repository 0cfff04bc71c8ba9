package main

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"trainer/internal/grader"
	"trainer/recipe"
)

// TestExamplesOfRewards: each is a recipe's, and scores what it says.
func TestExamplesOfRewards(t *testing.T) {
	for _, k := range grader.Kinds() {
		text := rewardExamples[k.Name]
		if text == "" {
			t.Errorf("%s has no example", k.Name)
			continue
		}
		path := filepath.Join(t.TempDir(), "recipe.yaml")
		head := "base_model: sandbox/bytes-tiny\ndataset: {train: a.jsonl}\nloss: {type: grpo}\nrollout: {sampling_params: {max_tokens: 9}}\nreward:\n"
		if err := os.WriteFile(path, []byte(head+"  "+strings.ReplaceAll(text, "\n", "\n  ")), 0o600); err != nil {
			t.Fatal(err)
		}
		r, err := recipe.Load(path)
		if err != nil {
			t.Errorf("%s: %v", k.Name, err)
			continue
		}
		w := r.Reward[0]
		if g, ok := w.Params.(grader.Opener); ok {
			if err := g.Open("."); err != nil {
				t.Errorf("%s: %v", k.Name, err)
			}
		}
		if _, asks := w.Params.(grader.Outside); !asks && len(w.Tests) == 0 {
			t.Errorf("%s has no tests", k.Name)
		}
		for _, c := range w.Tests {
			hold(t, k.Name, w.Params, c)
		}
	}
}

func hold(t *testing.T, kind string, g grader.Grader, c recipe.RewardTest) {
	target, err := json.Marshal(c.Target)
	if err != nil {
		t.Fatal(err)
	}
	got, err := g.Grade(t.Context(), grader.Completion{Text: c.Completion, Target: target, Open: c.Open})
	if err != nil || got.Unscored != (c.Reward == nil) || c.Reward != nil && math.Abs(got.Value-*c.Reward) > 1e-9 {
		t.Errorf("%s: %q for %q gives %+v, %v", kind, c.Completion, c.Target, got, err)
	}
}
