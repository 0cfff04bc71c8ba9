package grader

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// golden reads the vectors of a kind into cases, and returns how many there are.
func golden(t *testing.T, kind string, cases any) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", kind+".json"))
	if err != nil {
		t.Fatal(err)
	}
	file := struct {
		Cases any `json:"cases"`
	}{cases}
	if err := json.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
}

// fixed gives the same score to everything.
type fixed struct {
	score Score
	err   error
}

func (f fixed) Grade(context.Context, Completion) (Score, error) { return f.score, f.err }

// paidFor counts as a kind that asks outside and must not be asked.
type paidFor struct{ fixed }

func (paidFor) Allowed() bool { return true }

func TestTotalsOfTheGoldenVectors(t *testing.T) {
	var cases []struct {
		Name  string
		Parts []struct {
			Score  json.RawMessage
			Weight *float64
			Clip   *[2]float64
			Gate   *Gate
			On     string `json:"on_unscored"`
		}
		Total *float64
	}
	golden(t, "combine", &cases)
	if len(cases) != 19 {
		t.Fatalf("%d cases", len(cases))
	}
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			var entries []Entry
			for _, p := range c.Parts {
				e := Entry{Type: "fixed", Weight: 1, Clip: p.Clip, Gate: p.Gate, Skip: p.On == "skip"}
				if p.Weight != nil {
					e.Weight = *p.Weight
				}
				var v *float64
				switch err := json.Unmarshal(p.Score, &v); {
				case err != nil:
					e.Grader = paidFor{fixed{err: errors.New("asked after a failed gate")}}
				case v == nil:
					e.Grader = fixed{score: unscored(Null)}
				default:
					e.Grader = fixed{score: paid(*v)}
				}
				entries = append(entries, e)
			}
			got, err := New(entries).Grade(context.Background(), []Completion{{}})
			if err != nil {
				t.Fatal(err)
			}
			switch g := got[0]; {
			case g.Scored != (c.Total != nil):
				t.Errorf("%+v, want %v", g, c.Total)
			case g.Scored && g.Total != *c.Total:
				t.Errorf("total %v, want %v", g.Total, *c.Total)
			}
		})
	}
}

func TestPartsAreNamedByKindAndNumber(t *testing.T) {
	one := Entry{Type: "regex", Grader: fixed{}, Weight: 1}
	if got := New([]Entry{one, {Type: "exact", Grader: fixed{}}, one, one}).Names(); !slices.Equal(got, []string{"regex", "exact", "regex_2", "regex_3"}) {
		t.Error(got)
	}
}

func TestAGraderThatStopsTheRunIsAnError(t *testing.T) {
	s := New([]Entry{{Type: "http", Grader: fixed{err: errors.New("no licence")}, Weight: 1}})
	if _, err := s.Grade(context.Background(), make([]Completion, 3)); err == nil || !strings.Contains(err.Error(), "reward http: no licence") {
		t.Error(err)
	}
}

func TestADoneContextEndsTheGrading(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	s := New([]Entry{{Type: "exact", Grader: fixed{}, Weight: 1}})
	if _, err := s.Grade(ctx, make([]Completion, 100)); err != nil && !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestMoreThanHalfOfABatchWithoutAnswerStopsTheRun(t *testing.T) {
	dead := Graded{Parts: []Part{{Name: "command", Why: Died}}}
	fine := Graded{Scored: true, Parts: []Part{{Name: "command", Scored: true}}}
	noTarget := Graded{Parts: []Part{{Name: "exact", Why: NoTarget}}}
	for name, c := range map[string]struct {
		batch []Graded
		ok    bool
	}{
		"half":                    {[]Graded{dead, fine}, true},
		"more than half":          {[]Graded{dead, dead, fine}, false},
		"rows without a target":   {[]Graded{noTarget, noTarget}, true},
		"an entry that is left":   {[]Graded{{Scored: true, Parts: dead.Parts}}, true},
		"nothing sampled at all":  {nil, true},
		"all of a single group's": {[]Graded{dead}, false},
	} {
		if err := Healthy(c.batch); (err == nil) != c.ok || err != nil && !errors.Is(err, ErrMachinery) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestTargetsAreWhatTheRowSays(t *testing.T) {
	for raw, want := range map[string][]string{
		`"a"`: {"a"}, `72`: {"72"}, `1.50`: {"1.50"}, `true`: {"true"}, `["a", 2]`: {"a", "2"},
		``: nil, `null`: nil, `""`: nil, `" "`: nil, `["a", ""]`: nil, `[]`: nil, `{"a": 1}`: nil, `["a", null]`: nil,
	} {
		if got, ok := (Completion{Target: json.RawMessage(raw)}).targets(); !slices.Equal(got, want) || ok != (want != nil) {
			t.Errorf("%s: %q, %v", raw, got, ok)
		}
	}
}
