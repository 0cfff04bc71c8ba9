package grader

import (
	"bufio"
	"encoding/json"
	"os"
	"testing"
)

// TestVerdictsForOthers grades the pairs of a file, {"completion", "target"} a line, by math_equal and writes 1, 0 or null a line:
// .ci/graders/run compares them with another verifier's.
func TestVerdictsForOthers(t *testing.T) {
	in, out := os.Getenv("GRADERS_PAIRS"), os.Getenv("GRADERS_VERDICTS")
	if in == "" || out == "" {
		t.Skip("GRADERS_PAIRS and GRADERS_VERDICTS name no files")
	}
	f, err := os.Open(in)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	var verdicts []byte
	g := newMathEqual()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var pair struct{ Completion, Target string }
		if err := json.Unmarshal(lines.Bytes(), &pair); err != nil {
			t.Fatal(err)
		}
		target, err := json.Marshal(pair.Target)
		if err != nil {
			t.Fatal(err)
		}
		got, err := g.Grade(t.Context(), Completion{Text: pair.Completion, Target: target})
		if err != nil {
			t.Fatal(err)
		}
		verdict := []byte("null")
		if !got.Unscored {
			if verdict, err = json.Marshal(got.Value); err != nil {
				t.Fatal(err)
			}
		}
		verdicts = append(append(verdicts, verdict...), '\n')
	}
	if err := os.WriteFile(out, verdicts, 0o600); err != nil {
		t.Fatal(err)
	}
}
