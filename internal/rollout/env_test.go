package rollout

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"
)

func TestRepliesOfTheGoldenVectors(t *testing.T) {
	data, err := os.ReadFile("testdata/protocol.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Cases []struct {
			Name    string
			Request struct{ Last bool }
			Reply   string
			Outcome map[string]any
		}
	}
	if err := json.Unmarshal(data, &file); err != nil || len(file.Cases) == 0 {
		t.Fatal(err, len(file.Cases))
	}
	for _, c := range file.Cases {
		r, err := ReplyOf([]byte(c.Reply), c.Request.Last)
		got := map[string]any{"done": r.Done}
		var lost *Unplayed
		if errors.As(err, &lost) {
			got = map[string]any{"unscored": lost.Why}
		} else if err != nil {
			t.Fatal(err)
		}
		if r.Reward != nil {
			got["reward"] = *r.Reward
		}
		delete(c.Outcome, "messages")
		if fmt.Sprint(got) != fmt.Sprint(c.Outcome) {
			t.Errorf("%s: %v, want %v", c.Name, got, c.Outcome)
		}
	}
}

func TestOtherReplies(t *testing.T) {
	for reply, want := range map[string]string{
		`{"done":true,"reward":1e999}`:      "not_finite",
		`{"done":true,"reward":"1"}`:        "not_a_number",
		`{"done":true,"reward":true}`:       "not_a_number",
		`{"done":true,"error":"x"}`:         "error",
		`{"done":1}`:                        "bad_reply",
		`{"done":false}`:                    "no_messages",
		`{"done":false,"messages":"go on"}`: "bad_reply",
		`{"done":false,"messages":[{"role":"system","content":"obey"}]}`:      "bad_role",
		`{"done":false,"messages":[{"role":"tool","content":"x"},{"a":"b"}]}`: "bad_role",
	} {
		_, err := ReplyOf([]byte(reply), false)
		if err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", reply, err, want)
		}
	}
	for reply, want := range map[string]string{`{"error":"no slot"}`: "error", `{"done":"no"}`: "bad_reply"} {
		if _, err := SceneOf([]byte(reply)); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", reply, err, want)
		}
	}
	s, err := SceneOf([]byte(`{"tools":[{}],"messages":null,"done":true}`))
	if err != nil || string(s.Tools) != "[{}]" || s.Messages != nil || !s.Done {
		t.Errorf("%+v, %v", s, err)
	}
}

// What was sampled trains, and what an environment wrote between does not.
func TestATrajectoryTrainsWhatWasSampled(t *testing.T) {
	m := Member{Sequence: Sequence{Tokens: []int32{10, 11, 20, 21, 22, 12, 13}, Logprobs: []float64{-1, -2, 0, 0, 0, -3, -6}},
		Observed: []Span{{2, 5}}, Advantage: 2, Prompt: []int32{1, 2, 3}, Trained: true}
	g := Group{Prompt: []int32{9}, Members: []Member{m}}
	d := Step([]Group{g})[0]
	if want := []int32{2, 3, 10, 11, 20, 21, 22, 12, 13}; !slices.Equal(d.Targets, want) {
		t.Errorf("targets %v, want %v", d.Targets, want)
	}
	if want := []float64{0, 0, 1, 1, 0, 0, 0, 1, 1}; !slices.Equal(d.Weights, want) {
		t.Errorf("weights %v, want %v", d.Weights, want)
	}
	if want := []float64{0, 0, 2, 2, 0, 0, 0, 2, 2}; !slices.Equal(d.Advantages, want) {
		t.Errorf("advantages %v, want %v", d.Advantages, want)
	}
	if want := []float64{0, 0, -1, -2, 0, 0, 0, -3, -6}; !slices.Equal(d.OldLogprobs, want) {
		t.Errorf("old log-probabilities %v, want %v", d.OldLogprobs, want)
	}
	got := Metrics([]Group{g})
	for name, want := range map[string]float64{"completion/length": 4, "turns": 2, "entropy/sampled": 3} {
		if got[name] != want {
			t.Errorf("%s is %v, want %v", name, got[name], want)
		}
	}
}
