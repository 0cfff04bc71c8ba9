package grader

import (
	"context"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// vector is one case of a kind, from a reference in Python.
type vector struct {
	Name, Completion string
	Target           json.RawMessage
	Params           map[string]json.RawMessage
	Score            *float64
}

// counts are how many vectors each kind has, so that none is lost.
var counts = map[string]int{
	"exact": 30, "contains": 21, "numeric": 52, "regex": 26, "json_schema": 56, "math_equal": 344, "multiple_choice": 41,
	"length": 18, "repetition": 13, "format": 29,
}

func TestScoresOfTheGoldenVectors(t *testing.T) {
	for _, k := range Kinds() {
		if counts[k.Name] == 0 {
			continue // it asks outside: see its own test
		}
		var cases []vector
		golden(t, k.Name, &cases)
		if len(cases) != counts[k.Name] {
			t.Errorf("%s: %d cases, want %d", k.Name, len(cases), counts[k.Name])
		}
		for _, c := range cases {
			t.Run(k.Name+"/"+c.Name, func(t *testing.T) { c.hold(t, k) })
		}
	}
}

func (v vector) hold(t *testing.T, k Kind) {
	g := k.New()
	for name, value := range v.Params {
		if !strings.HasPrefix(name, "_") {
			setParam(t, g, name, value)
		}
	}
	prepare(t, g)
	got, err := g.Grade(context.Background(), v.completion(t))
	if err != nil {
		t.Fatal(err)
	}
	switch {
	case got.Unscored != (v.Score == nil):
		t.Errorf("%q against %s gives %+v, want %v", v.Completion, v.Target, got, v.Score)
	case !got.Unscored && got.Value != *v.Score:
		t.Errorf("%q against %s gives %+v, want %v", v.Completion, v.Target, got, *v.Score)
	case (got.Unscored || got.Value == 0) && got.Why == "" && k.Name != "repetition":
		t.Errorf("no reason for %+v", got)
	}
	if tg, ok := g.(Targeted); ok && (tg.CheckTarget(v.Target) == nil) == got.Unscored && got.Value != 1 { // equal text needs no meaning
		t.Errorf("the target %s is checked as %v, and graded as %+v", v.Target, tg.CheckTarget(v.Target), got)
	}
}

// completion sets what a vector says of the situation: whether the prompt is open, and the tokens, or how many.
func (v vector) completion(t *testing.T) Completion {
	c := Completion{Sample: v.Name, Text: v.Completion, Target: v.Target}
	if raw, ok := v.Params["_opened"]; ok {
		c.Open = string(raw) == "true"
	}
	if raw, ok := v.Params["_tokens"]; ok {
		var n int
		if json.Unmarshal(raw, &n) == nil {
			c.Tokens = make([]int32, n)
		} else if err := json.Unmarshal(raw, &c.Tokens); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// setParam sets the field of a yaml key.
func setParam(t *testing.T, g Grader, name string, value json.RawMessage) {
	t.Helper()
	v := reflect.ValueOf(g).Elem()
	for _, f := range reflect.VisibleFields(v.Type()) {
		if f.Tag.Get("yaml") != name {
			continue
		}
		into := v.FieldByIndex(f.Index).Addr().Interface()
		if err := json.Unmarshal(value, into); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if f.Name == "Schema" { // numbers as the recipe would keep them
			*into.(*any) = exactNumbers(t, value)
		}
		return
	}
	t.Fatalf("no parameter %s", name)
}

func exactNumbers(t *testing.T, raw json.RawMessage) any {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(string(raw)))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

func prepare(t testing.TB, g Grader) {
	t.Helper()
	if c, ok := g.(Checker); ok {
		if err := c.Check(); err != nil {
			t.Fatal(err)
		}
	}
	if o, ok := g.(Opener); ok {
		if err := o.Open(t.TempDir()); err != nil {
			t.Fatal(err)
		}
	}
}

func TestRepliesOfJudges(t *testing.T) {
	var cases []struct {
		Name, Reply string
		Params      struct{ Scale *[2]float64 }
		Score       *float64
	}
	golden(t, "judge", &cases)
	if len(cases) != 17 {
		t.Fatalf("%d cases", len(cases))
	}
	for _, c := range cases {
		g := newJudge()
		if c.Params.Scale != nil {
			g.Scale = *c.Params.Scale
		}
		if got := g.score(c.Reply); got.Unscored != (c.Score == nil) || c.Score != nil && got.Value != *c.Score {
			t.Errorf("%s: %q gives %+v, want %v", c.Name, c.Reply, got, c.Score)
		}
	}
}

func TestRepliesOfStrangers(t *testing.T) {
	var cases []struct {
		Name    string
		Request struct{ Type string }
		Reply   string
		Outcome struct {
			Score    *float64
			Unscored string
			Info     json.RawMessage
		}
	}
	golden(t, "protocol", &cases)
	seen := 0
	for _, c := range cases {
		if c.Request.Type != "score" || c.Outcome.Score == nil && c.Outcome.Unscored == "" {
			continue // the worker's own
		}
		seen++
		got := ScoreOf([]byte(c.Reply))
		switch {
		case got.Unscored != (c.Outcome.Score == nil) || got.Unscored && got.Why != c.Outcome.Unscored,
			!got.Unscored && got.Value != *c.Outcome.Score, !slices.Equal(compact(got.Info), compact(c.Outcome.Info)):
			t.Errorf("%s: %s gives %+v, want %+v", c.Name, c.Reply, got, c.Outcome)
		}
	}
	if seen != 13 {
		t.Errorf("%d cases", seen)
	}
}

func compact(raw json.RawMessage) []byte { return []byte(strings.ReplaceAll(string(raw), " ", "")) }
