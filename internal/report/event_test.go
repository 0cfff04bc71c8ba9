package report

import (
	"bytes"
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"testing"

	"trainer/runner"
)

func TestEventsSurviveJSONBothWays(t *testing.T) {
	_, events := script()
	for _, e := range events {
		line, err := encodeEvent(e)
		if err != nil {
			t.Fatal(err)
		}
		plain, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		if string(line) != string(plain)+"\n" {
			t.Errorf("got %swant the event as it is: %s", line, plain)
		}
		back, err := decodeEvent(line)
		if err != nil || !reflect.DeepEqual(back, e) {
			t.Errorf("read back %+v, %v; want %+v", back, err, e)
		}
	}
}

func TestNumbersThatJSONLacksAreNull(t *testing.T) {
	e := runner.Event{Time: at(0), Kind: runner.StepEvent, Done: 1, Metrics: map[string]float64{"a": math.NaN(), "b": math.Inf(1), "c": 0.1}}
	line, err := encodeEvent(e)
	if err != nil {
		t.Fatal(err)
	}
	if want := `"metrics":{"a":null,"b":null,"c":0.1}}` + "\n"; !strings.HasSuffix(string(line), want) {
		t.Errorf("got %s, want the end %s", line, want)
	}
	back, err := decodeEvent(line)
	if err != nil {
		t.Fatal(err)
	}
	if m := back.Metrics; len(m) != 3 || !math.IsNaN(m["a"]) || !math.IsNaN(m["b"]) || m["c"] != 0.1 {
		t.Errorf("read back %v, want NaN for null", m)
	}
}

func TestJSONLinesAreTheEvents(t *testing.T) {
	var b bytes.Buffer
	play(t, &JSON{Out: &b}, nil)
	_, want := script()
	var got []runner.Event
	for d := json.NewDecoder(&b); d.More(); {
		var e runner.Event
		if err := d.Decode(&e); err != nil {
			t.Fatal(err)
		}
		got = append(got, e)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %d events %v, want %d", len(got), got, len(want))
	}
}
