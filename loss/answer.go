package loss

import (
	"encoding/json"
	"fmt"
	"regexp"
)

// sequence is a row of a question. All slices are [T].
type sequence struct {
	Input       []int32   `json:"input"`
	Targets     []int32   `json:"targets"`
	Weights     []float64 `json:"weights"`
	Logprobs    []float64 `json:"logprobs"`
	RefLogprobs []float64 `json:"ref_logprobs,omitempty"`
	Group       int       `json:"group"`
	Desirable   *bool     `json:"desirable,omitempty"` // of pairs and labelled rows
}

// question is the JSON of a step.
func (l *Command) question(q Question, now [][]float64, step []Datum) ([]byte, error) {
	rows := make([]sequence, len(step))
	for i, d := range step {
		rows[i] = sequence{Input: d.Input, Targets: d.Targets, Weights: d.Weights, Logprobs: counted(now[i], d.Weights), Group: d.Group}
		if l.Reference {
			rows[i].RefLogprobs = counted(d.RefLogprobs, d.Weights)
		}
		if l.Rows != Examples {
			rows[i].Desirable = &d.Desirable
		}
	}
	return json.Marshal(struct {
		Use  string     `json:"use"`
		Step int        `json:"step"`
		Rows []sequence `json:"rows"`
	}{q.Use, q.Step, rows})
}

// counted are values with 0 where the weight is: what lies there is of no loss, and may be no number.
func counted(values, weights []float64) []float64 {
	out := make([]float64, len(values))
	for t, w := range weights {
		if w != 0 {
			out[t] = values[t]
		}
	}
	return out
}

// Bounds of what a program may name.
const (
	maxMetrics   = 64
	maxErrorText = 2000 // bytes
)

var metricForm = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_./-]{0,63}$`)

// answerOf reads an answer: {"loss": number, "grads": [B][T], "metrics": {name: number}}, or {"error": text}. A null, or a
// gradient where the weight is 0, is refused like a wrong shape: none of them is what the program means.
func answerOf(data []byte, step []Datum) (Result, error) {
	var a struct {
		Error   json.RawMessage     `json:"error"`
		Loss    *float64            `json:"loss"`
		Grads   [][]*float64        `json:"grads"`
		Metrics map[string]*float64 `json:"metrics"`
	}
	err := json.Unmarshal(data, &a)
	switch {
	case len(a.Error) > 0 && string(a.Error) != "null":
		return Result{}, fmt.Errorf("the program says: %s: %w", errorText(a.Error), ErrInvalid)
	case err != nil:
		return Result{}, fmt.Errorf("its answer can't be read: %w: %w", err, ErrInvalid)
	case a.Loss == nil:
		return Result{}, fmt.Errorf("its answer has no loss, a number: %w", ErrInvalid)
	}
	r := Result{Value: *a.Loss, Metrics: map[string]float64{}}
	if r.Grads, err = gradsOf(a.Grads, step); err != nil {
		return Result{}, err
	}
	if len(a.Metrics) > maxMetrics {
		return Result{}, fmt.Errorf("its answer has %d metrics; at most %d are kept: %w", len(a.Metrics), maxMetrics, ErrInvalid)
	}
	for name, v := range a.Metrics {
		switch {
		case !metricForm.MatchString(name):
			return Result{}, fmt.Errorf("its answer has the metric %.80q; a name has 1 to 64 letters, digits, _ . / -: %w", name, ErrInvalid)
		case v == nil:
			return Result{}, fmt.Errorf("its answer has null for the metric %s; leave it out: %w", name, ErrInvalid)
		}
		r.Metrics[name] = *v
	}
	return r.finite()
}

func gradsOf(rows [][]*float64, step []Datum) ([][]float64, error) {
	if len(rows) != len(step) {
		return nil, fmt.Errorf("its answer has grads of %d rows for a step of %d: %w", len(rows), len(step), ErrInvalid)
	}
	grads := zeros(step)
	for i, row := range rows {
		if len(row) != len(grads[i]) {
			return nil, fmt.Errorf("grads[%d] of its answer has %d numbers for %d positions: %w", i, len(row), len(grads[i]), ErrInvalid)
		}
		for t, g := range row {
			switch {
			case g == nil:
				return nil, fmt.Errorf("grads[%d][%d] of its answer is null: %w", i, t, ErrInvalid)
			case *g != 0 && step[i].Weights[t] == 0:
				return nil, fmt.Errorf("grads[%d][%d] of its answer is %g where the weight is 0; it has to be 0 there: %w", i, t, *g, ErrInvalid)
			}
			grads[i][t] = *g
		}
	}
	return grads, nil
}

// errorText is what a program reports, a text or any JSON, cut to what a person reads.
func errorText(raw json.RawMessage) string {
	text := string(raw)
	var s string
	if json.Unmarshal(raw, &s) == nil {
		text = s
	}
	if len(text) > maxErrorText {
		text = text[:maxErrorText] + "…"
	}
	return fmt.Sprintf("%q", text)
}
