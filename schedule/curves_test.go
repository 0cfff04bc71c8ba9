package schedule

import (
	"encoding/json"
	"math"
	"os"
	"strings"
	"testing"
)

// curve is a row of testdata/curves.json, which curves.py beside it computes by the formulas of the projects that the
// shapes come from. Its params are keys of the recipe.
type curve struct {
	Kind   string          `json:"kind"`
	Params json.RawMessage `json:"params"`
	Warmup int             `json:"warmup"`
	Steps  int             `json:"steps"`
	Floor  float64         `json:"floor"`
	Peak   float64         `json:"peak"`
	Rates  []float64       `json:"rates"`
}

func TestCurves(t *testing.T) {
	data, err := os.ReadFile("testdata/curves.json")
	if err != nil {
		t.Fatal(err)
	}
	var curves []curve
	if err := json.Unmarshal(data, &curves); err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, c := range curves {
		seen[c.Kind] = true
		shape := c.shape(t)
		got, err := Ramp{c.Warmup, c.Floor, shape}.Rates(c.Peak, c.Steps)
		if err != nil || len(got) != len(c.Rates) {
			t.Errorf("%s: %d rates, %v", c.name(), len(got), err)
			continue
		}
		for i, want := range c.Rates {
			if math.Abs(got[i]-want) > 1e-13*c.Peak {
				t.Errorf("%s: step %d has %v, want %v", c.name(), i+1, got[i], want)
			}
		}
	}
	for _, k := range Kinds() {
		if !seen[k.Name] {
			t.Errorf("no curve of %s", k.Name)
		}
	}
}

func (c curve) name() string { return c.Kind + " " + string(c.Params) }

// shape decodes the params by encoding/json, which matches a Go name and a key that differ by letter case and no
// underscore.
func (c curve) shape(t *testing.T) Schedule {
	t.Helper()
	for _, k := range Kinds() {
		if k.Name == c.Kind {
			shape := k.New()
			params := json.NewDecoder(strings.NewReader(strings.ReplaceAll(string(c.Params), "_", "")))
			params.DisallowUnknownFields()
			if err := params.Decode(shape); err != nil {
				t.Fatalf("%s: %v", c.name(), err)
			}
			return shape
		}
	}
	t.Fatalf("no schedule %s", c.Kind)
	return nil
}
