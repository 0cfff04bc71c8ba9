package loss

import (
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// golden is a file of testdata: cases computed by a float64 reference outside this project, as its own autograd has them,
// and compared with what other projects compute.
type golden struct {
	Loss  string       `json:"loss"`
	Cases []goldenCase `json:"cases"`
}

type goldenCase struct {
	Name      string         `json:"name"`
	Params    goldenParams   `json:"params"`
	Samples   []goldenSample `json:"samples"`
	KLSamples []goldenSample `json:"kl_samples"`
	Want      struct {
		Error   string             `json:"error"`
		Loss    float64            `json:"loss"`
		Grads   [][]float64        `json:"grads"`
		Metrics map[string]float64 `json:"metrics"`
	} `json:"expected"`
}

type goldenSample struct {
	Now        []float64 `json:"policy_logprobs"`
	Old        []float64 `json:"logprobs"`
	Advantages []float64 `json:"advantages"`
	Weights    []float64 `json:"weights"`
	Mask       []float64 `json:"mask"`
	Reference  []float64 `json:"reference_logprobs"`
	Teacher    []float64 `json:"teacher_logprobs"`
	Label      bool      `json:"label"`
}

// goldenParams are the parameters of every loss; nil is the loss's default.
type goldenParams struct {
	ClipLow          *float64 `json:"clip_low_threshold"`
	ClipHigh         *float64 `json:"clip_high_threshold"`
	Beta             *float64 `json:"beta"`
	AggType          *string  `json:"agg_type"`
	RatioType        *string  `json:"ratio_type"`
	Horizon          *int     `json:"horizon"`
	DeltaLow         *float64 `json:"delta_low"`
	DeltaHigh        *float64 `json:"delta_high"`
	LabelSmoothing   *float64 `json:"label_smoothing"`
	Variant          *string  `json:"variant"`
	LengthNormalized *bool    `json:"length_normalized"`
	Delta            *float64 `json:"delta"`
	Lambda           *float64 `json:"lambda"`
	Gamma            *float64 `json:"gamma"`
	KL               *float64 `json:"kl"`
	Desirable        *float64 `json:"desirable_weight"`
	Undesirable      *float64 `json:"undesirable_weight"`
	Estimator        *string  `json:"estimator"`
	Reduction        *string  `json:"reduction"`
	IsCorrection     *bool    `json:"is_correction"`
}

func set[T any](to *T, from *T) {
	if from != nil {
		*to = *from
	}
}

func (p goldenParams) to(t *testing.T, l Loss) {
	t.Helper()
	switch l := l.(type) {
	case *CrossEntropy, *ImportanceSampling, *ForwardKL:
	case *GRPO:
		// The files' own default is the service's; the recipe's is the token mean.
		l.AggType = FixedHorizon
		if p.AggType != nil && *p.AggType != "UNSPECIFIED" {
			l.AggType = strings.ToLower(*p.AggType)
		}
		if p.RatioType != nil {
			l.RatioType = strings.ToLower(*p.RatioType)
		}
		set(&l.ClipLowThreshold, p.ClipLow)
		set(&l.ClipHighThreshold, p.ClipHigh)
		set(&l.Beta, p.Beta)
		set(&l.Horizon, p.Horizon)
	case *PPO:
		set(&l.ClipLowThreshold, p.ClipLow)
		set(&l.ClipHighThreshold, p.ClipHigh)
	case *CISPO:
		set(&l.ClipLowThreshold, p.ClipLow)
		set(&l.ClipHighThreshold, p.ClipHigh)
	case *DRO:
		l.Beta = p.Beta
	case *DPPO:
		set(&l.DeltaLow, p.DeltaLow)
		set(&l.DeltaHigh, p.DeltaHigh)
	case *DPO:
		set(&l.Beta, p.Beta)
		set(&l.LabelSmoothing, p.LabelSmoothing)
		set(&l.Variant, p.Variant)
	case *IPO:
		set(&l.Beta, p.Beta)
		set(&l.LengthNormalized, p.LengthNormalized)
	case *Hinge:
		set(&l.Beta, p.Beta)
	case *SLiC:
		set(&l.Delta, p.Delta)
		set(&l.Lambda, p.Lambda)
		set(&l.LengthNormalized, p.LengthNormalized)
	case *SimPO:
		set(&l.Beta, p.Beta)
		set(&l.Gamma, p.Gamma)
	case *ORPO:
		set(&l.Beta, p.Beta)
	case *KTO:
		set(&l.Beta, p.Beta)
		set(&l.DesirableWeight, p.Desirable)
		set(&l.UndesirableWeight, p.Undesirable)
	case *ReverseKL:
		set(&l.Estimator, p.Estimator)
		set(&l.Reduction, p.Reduction)
		set(&l.IsCorrection, p.IsCorrection)
	default:
		t.Fatalf("the test does not know the parameters of %T", l)
	}
}

// loss is the case's loss and step.
func (c goldenCase) loss(t *testing.T, kind Kind) (l Loss, now [][]float64, step []Datum) {
	t.Helper()
	l = kind.New()
	c.Params.to(t, l)
	for _, s := range c.Samples {
		now, step = append(now, s.Now), append(step, s.datum(kind.Name))
	}
	for _, s := range c.KLSamples {
		d := s.datum(kind.Name)
		d.Mismatched = true
		now, step = append(now, s.Now), append(step, d)
	}
	if kl := c.Params.KL; kl != nil { // a sequence that has drifted by so much stands for the files' given KL
		now = append(now, []float64{*kl})
		step = append(step, Datum{Weights: []float64{1}, RefLogprobs: []float64{0}, Mismatched: true})
	}
	return l, now, step
}

// datum has weights where the wire may leave them out: all positions count.
func (s goldenSample) datum(kind string) Datum {
	d := Datum{Weights: s.Weights, Advantages: s.Advantages, OldLogprobs: s.Old, RefLogprobs: s.Reference,
		TeacherLogprobs: s.Teacher, Desirable: s.Label}
	if s.Mask != nil {
		d.Weights = s.Mask
	}
	if d.Weights == nil && kind != "cross_entropy" {
		d.Weights = make([]float64, len(s.Now))
		for t := range d.Weights {
			d.Weights[t] = 1
		}
	}
	d.Input, d.Targets = make([]int32, len(d.Weights)), make([]int32, len(d.Weights))
	return d
}

// ofTheWire are cases of what the wire can say and a Datum cannot.
var ofTheWire = map[string]string{"weights_and_mask": "a Datum has one slice for both; who reads the wire refuses the pair"}

func TestGolden(t *testing.T) {
	for _, kind := range Kinds() {
		if kind.Name == "command" {
			continue // has no formula
		}
		t.Run(kind.Name, func(t *testing.T) {
			for _, c := range readGolden(t, kind.Name).Cases {
				t.Run(c.Name, func(t *testing.T) {
					if why := ofTheWire[c.Name]; why != "" {
						t.Skip(why)
					}
					l, now, step := c.loss(t, kind)
					got, err := l.Eval(now, step)
					c.compare(t, got, err)
				})
			}
		})
	}
}

func (c goldenCase) compare(t *testing.T, got Result, err error) {
	t.Helper()
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
		if len(got.Grads[i]) != len(c.Want.Grads[i]) {
			t.Fatalf("sequence %d: %d gradients, want %d", i, len(got.Grads[i]), len(c.Want.Grads[i]))
		}
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
}

func readGolden(t *testing.T, name string) golden {
	t.Helper()
	var g golden
	readVectors(t, name, &g)
	if g.Loss != name || len(g.Cases) == 0 {
		t.Fatalf("%s.json is of %q and has %d cases", name, g.Loss, len(g.Cases))
	}
	return g
}

func readVectors(t *testing.T, name string, into any) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, into); err != nil {
		t.Fatal(err)
	}
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
