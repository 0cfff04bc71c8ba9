package loss

import (
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"testing"
)

// golden is a file of testdata: cases computed by a float64 reference outside this project, as its own autograd has them.
type golden struct {
	Loss  string `json:"loss"`
	Cases []struct {
		Name    string         `json:"name"`
		Samples []goldenSample `json:"samples"`
		Want    struct {
			Error   string             `json:"error"`
			Loss    float64            `json:"loss"`
			Grads   [][]float64        `json:"grads"`
			Metrics map[string]float64 `json:"metrics"`
		} `json:"expected"`
	} `json:"cases"`
}

type goldenSample struct {
	Now     []float64 `json:"policy_logprobs"`
	Weights []float64 `json:"weights"`
}

func TestGolden(t *testing.T) {
	for _, kind := range Kinds() {
		t.Run(kind.Name, func(t *testing.T) {
			g := readGolden(t, kind.Name)
			for _, c := range g.Cases {
				t.Run(c.Name, func(t *testing.T) {
					now, step := goldenStep(c.Samples)
					got, err := kind.New().Eval(now, step)
					if c.Want.Error != "" {
						if want := errorOf(t, c.Want.Error); !errors.Is(err, want) {
							t.Fatalf("got %v, want %v", err, want)
						}
						return
					}
					if err != nil {
						t.Fatal(err)
					}
					near(t, "value", got.Value, c.Want.Loss)
					for i := range c.Want.Grads {
						for p, want := range c.Want.Grads[i] {
							near(t, "gradient", got.Grads[i][p], want)
						}
					}
					if len(got.Metrics) != len(c.Want.Metrics) {
						t.Errorf("metrics %v, want %v", got.Metrics, c.Want.Metrics)
					}
					for name, want := range c.Want.Metrics {
						near(t, name, got.Metrics[name], want)
					}
				})
			}
		})
	}
}

func readGolden(t *testing.T, name string) golden {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	var g golden
	if err := json.Unmarshal(data, &g); err != nil {
		t.Fatal(err)
	}
	if g.Loss != name || len(g.Cases) == 0 {
		t.Fatalf("%s.json is of %q and has %d cases", name, g.Loss, len(g.Cases))
	}
	return g
}

func goldenStep(samples []goldenSample) (now [][]float64, step []Datum) {
	for _, s := range samples {
		now = append(now, s.Now)
		tokens := make([]int32, len(s.Weights))
		step = append(step, Datum{Input: tokens, Targets: tokens, Weights: s.Weights})
	}
	return now, step
}

func errorOf(t *testing.T, code string) error {
	t.Helper()
	switch code {
	case "INVALID_INPUT":
		return ErrInvalid
	case "NON_FINITE_LOSS":
		return ErrNonFinite
	}
	t.Fatalf("unknown error %q in the golden file", code)
	return nil
}

// near holds got to the tolerance that the golden files are made for.
func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if !(math.Abs(got-want) <= 1e-10+1e-10*math.Abs(want)) {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}
