package loss

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
)

// program answers as one would whose loss is l: it knows what the question says and no more.
func program(l Loss) func(context.Context, []byte) ([]byte, error) {
	return func(_ context.Context, question []byte) ([]byte, error) {
		var q struct{ Rows []sequence }
		if err := json.Unmarshal(question, &q); err != nil {
			return nil, err
		}
		var now [][]float64
		var step []Datum
		for _, s := range q.Rows {
			d := Datum{Input: s.Input, Targets: s.Targets, Weights: s.Weights, RefLogprobs: s.RefLogprobs, Group: s.Group}
			if s.Desirable != nil {
				d.Desirable = *s.Desirable
			}
			now, step = append(now, s.Logprobs), append(step, d)
		}
		r, err := l.Eval(now, step)
		if err != nil {
			return json.Marshal(map[string]string{"error": err.Error()})
		}
		return json.Marshal(map[string]any{"loss": r.Value, "grads": r.Grads, "metrics": r.Metrics})
	}
}

// asking is a loss by a program.
func asking(rows string, reference bool, call func(context.Context, []byte) ([]byte, error)) *Command {
	l := newCommand()
	l.Command, l.Rows, l.Reference, l.Call = []string{"program"}, rows, reference, call
	return l
}

// What goes out and what comes back is whole: a program with the formula of a loss is that loss, to the bit.
func TestAProgramWithAFormulaIsThatLoss(t *testing.T) {
	for name, c := range map[string]struct {
		l         Loss
		rows      string
		reference bool
	}{
		"dpo":           {newDPO(), Pairs, true},
		"simpo":         {newSimPO(), Pairs, false},
		"cross_entropy": {&CrossEntropy{}, Examples, false},
		"kto":           {newKTO(), Labelled, true},
	} {
		now, step := fullStep(rand.New(rand.NewPCG(21, 22)), 6)
		for i := range step {
			step[i].Input, step[i].Targets = make([]int32, len(now[i])), make([]int32, len(now[i]))
		}
		want, err := c.l.Eval(now, step)
		if err != nil {
			t.Fatal(err)
		}
		poisonedNow, poisonedStep := poisoned(now, step, math.NaN())
		for i := range poisonedStep {
			poisonedStep[i].Input, poisonedStep[i].Targets = step[i].Input, step[i].Targets
		}
		got, err := asking(c.rows, c.reference, program(c.l)).Eval(poisonedNow, poisonedStep)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %v, %v; want %v", name, got, err, want)
		}
	}
}

func TestTheQuestionSaysWhatForAndWhatOf(t *testing.T) {
	var asked string
	call := func(_ context.Context, q []byte) ([]byte, error) {
		asked = string(q)
		return []byte(`{"loss":0.5,"grads":[[0,0.25]],"metrics":{"a/b":2}}`), nil
	}
	now, step := [][]float64{{-3, -0.5}}, []Datum{{Input: []int32{7, 8}, Targets: []int32{8, 9}, Weights: []float64{0, 2}, RefLogprobs: []float64{-4, -1}, Group: 5, Desirable: true}}
	for want, l := range map[string]*Command{
		`{"use":"train","step":3,"rows":[{"input":[7,8],"targets":[8,9],"weights":[0,2],"logprobs":[0,-0.5],"group":5}]}`:                                        asking(Examples, false, call),
		`{"use":"train","step":3,"rows":[{"input":[7,8],"targets":[8,9],"weights":[0,2],"logprobs":[0,-0.5],"ref_logprobs":[0,-1],"group":5,"desirable":true}]}`: asking(Labelled, true, call),
	} {
		got, err := l.Ask(t.Context(), Question{Use: ToTrain, Step: 3}, now, step)
		if err != nil || asked != want || !reflect.DeepEqual(got, Result{0.5, [][]float64{{0, 0.25}}, map[string]float64{"a/b": 2}}) {
			t.Errorf("asked %s, want %s; got %v, %v", asked, want, got, err)
		}
	}
}

func TestAnswersThatAreNone(t *testing.T) {
	many := make([]string, maxMetrics+1)
	for i := range many {
		many[i] = fmt.Sprintf(`"m%d":1`, i)
	}
	for answer, says := range map[string]string{
		`{}`:                               "no loss",
		`[]`:                               "can't be read",
		`{"loss":"1","grads":[[0,1]]}`:     "can't be read",
		`{"loss":1e999,"grads":[[0,1]]}`:   "can't be read",
		`{"loss":null,"grads":[[0,1]]}`:    "no loss",
		`{"loss":1}`:                       "grads of 0 rows for a step of 1",
		`{"loss":1,"grads":[[0,1],[0,1]]}`: "grads of 2 rows for a step of 1",
		`{"loss":1,"grads":[[1]]}`:         "grads[0] of its answer has 1 numbers for 2 positions",
		`{"loss":1,"grads":[null]}`:        "grads[0] of its answer has 0 numbers",
		`{"loss":1,"grads":[[0,null]]}`:    "grads[0][1] of its answer is null",
		`{"loss":1,"grads":[[1,1]]}`:       "grads[0][0] of its answer is 1 where the weight is 0",
		`{"loss":1,"grads":[[0,1]],"metrics":{"a b":1}}`:                         `the metric "a b"`,
		`{"loss":1,"grads":[[0,1]],"metrics":{"":1}}`:                            `the metric ""`,
		`{"loss":1,"grads":[[0,1]],"metrics":{"a":null}}`:                        "null for the metric a",
		`{"loss":1,"grads":[[0,1]],"metrics":{"a":"1"}}`:                         "can't be read",
		`{"loss":1,"grads":[[0,1]],"metrics":{` + strings.Join(many, ",") + `}}`: "65 metrics",
		`{"error":"KeyError: 'beta'","loss":1,"grads":[[0,1]]}`:                  "the program says: \"KeyError: 'beta'\"",
		`{"error":{"a":1}}`:                             "the program says",
		`{"error":"` + strings.Repeat("x", 5000) + `"}`: "x…",
	} {
		l := asking(Examples, false, func(context.Context, []byte) ([]byte, error) { return []byte(answer), nil })
		_, err := l.Eval([][]float64{{-1, -1}}, []Datum{{Weights: []float64{0, 1}}})
		if !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), says) || len(err.Error()) > 2200 {
			t.Errorf("%.200s: got %v, want it to say %q", answer, err, says)
		}
	}
	for _, answer := range []string{`{"loss":1e39,"grads":[[0,1]]}`, `{"loss":1,"grads":[[0,-1e39]]}`} {
		l := asking(Examples, false, func(context.Context, []byte) ([]byte, error) { return []byte(answer), nil })
		if _, err := l.Eval([][]float64{{-1, -1}}, []Datum{{Weights: []float64{0, 1}}}); !errors.Is(err, ErrNonFinite) {
			t.Errorf("%s: got %v, want ErrNonFinite", answer, err)
		}
	}
}

func FuzzAnswer(f *testing.F) {
	for _, seed := range []string{`{"loss":0.5,"grads":[[0,0.25],[1]],"metrics":{"a":2}}`, `{"error":"x"}`, `{"grads":[[null]]}`, `null`} {
		f.Add([]byte(seed))
	}
	step := []Datum{{Weights: []float64{0, 1}}, {Weights: []float64{1}}}
	f.Fuzz(func(t *testing.T, answer []byte) {
		r, err := answerOf(answer, step)
		if err != nil {
			return
		}
		if len(r.Grads) != 2 || len(r.Grads[0]) != 2 || len(r.Grads[1]) != 1 || r.Grads[0][0] != 0 || beyondFloat32(r.Value) || beyondFloat32(r.Grads[0][1]) || beyondFloat32(r.Grads[1][0]) {
			t.Errorf("%s is taken for %v", answer, r)
		}
	})
}

func TestAProgramIsNotAskedInVain(t *testing.T) {
	down := errors.New("down")
	l := asking(Pairs, true, func(context.Context, []byte) ([]byte, error) { return nil, down })
	d := Datum{Weights: []float64{1}, RefLogprobs: []float64{-1}}
	now := [][]float64{{-1}, {-1}}
	if _, err := l.Eval(now, []Datum{d, d}); !errors.Is(err, down) || errors.Is(err, ErrInvalid) {
		t.Error(err)
	}
	other := d
	other.Group = 1
	for says, step := range map[string][]Datum{
		"which are not pairs":                      {d},
		"not of one pair":                          {d, other},
		"0 log-probabilities of the reference":     {d, {Weights: []float64{1}}},
		"log-probabilities of 2 sequences for a s": {d, d, d, d},
	} {
		if _, err := l.Eval(now[:min(2, len(step))], step); !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), says) {
			t.Errorf("got %v, want it to say %q", err, says)
		}
	}
	l.Call = nil
	if _, err := l.Eval(now, []Datum{d, d}); !errors.Is(err, errNotAllowed) {
		t.Error(err)
	}
}

func TestParametersOfACommand(t *testing.T) {
	for key, change := range map[string]func(*Command){
		"command": func(l *Command) { l.Command = []string{" "} },
		"env":     func(l *Command) { l.Env = []string{serviceKey} },
		"rows":    func(l *Command) { l.Rows = "triples" },
	} {
		l := asking(Examples, false, nil)
		change(l)
		var f *Fault
		if err := l.Check(); !errors.As(err, &f) || f.Key != key {
			t.Errorf("%s: got %v", key, err)
		}
	}
	l := asking(Examples, false, nil)
	l.Env = []string{"A=b"}
	if l.Check() == nil {
		t.Error("a value in env passes")
	}
}
