package report

import (
	"encoding/json"
	"fmt"
	"math"
	"time"

	"trainer/runner"
)

// number is a float64 that survives JSON, which has no NaN and no infinities: those are written as null, and null is
// read as NaN.
type number float64

// MarshalJSON implements json.Marshaler.
func (n number) MarshalJSON() ([]byte, error) {
	if math.IsNaN(float64(n)) || math.IsInf(float64(n), 0) {
		return []byte("null"), nil
	}
	return json.Marshal(float64(n))
}

// UnmarshalJSON implements json.Unmarshaler.
func (n *number) UnmarshalJSON(data []byte) error {
	if string(data) == "null" {
		*n = number(math.NaN())
		return nil
	}
	return json.Unmarshal(data, (*float64)(n))
}

// eventLine is runner.Event with metrics that may be non-finite.
type eventLine struct {
	Time    time.Time         `json:"time"`
	Kind    runner.EventKind  `json:"kind"`
	Done    int               `json:"done"`
	Text    string            `json:"text,omitempty"`
	Prompt  string            `json:"prompt,omitempty"`
	Metrics map[string]number `json:"metrics,omitempty"`
}

// encodeEvent is e as one line of JSON with its line break: as json.Marshal has it, but for non-finite metrics.
func encodeEvent(e runner.Event) ([]byte, error) {
	line := eventLine{e.Time, e.Kind, e.Done, e.Text, e.Prompt, nil}
	if len(e.Metrics) > 0 {
		line.Metrics = make(map[string]number, len(e.Metrics))
		for name, v := range e.Metrics {
			line.Metrics[name] = number(v)
		}
	}
	b, err := json.Marshal(line)
	if err != nil {
		return nil, fmt.Errorf("writing a %s event as JSON: %w", e.Kind, err)
	}
	return append(b, '\n'), nil
}

// decodeEvent reads what encodeEvent wrote.
func decodeEvent(b []byte) (runner.Event, error) {
	var line eventLine
	if err := json.Unmarshal(b, &line); err != nil {
		return runner.Event{}, fmt.Errorf("reading an event: %w", err)
	}
	e := runner.Event{Time: line.Time, Kind: line.Kind, Done: line.Done, Text: line.Text, Prompt: line.Prompt}
	if len(line.Metrics) > 0 {
		e.Metrics = make(map[string]float64, len(line.Metrics))
		for name, v := range line.Metrics {
			e.Metrics[name] = float64(v)
		}
	}
	return e, nil
}
