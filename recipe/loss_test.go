package recipe

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"trainer/loss"
)

// of is the shortest recipe of a loss.
func of(name string, params string) string {
	text := "base_model: sandbox/bytes-tiny\ndataset: {train: a.jsonl}\nloss: {type: " + name + ", params: {" + params + "}}\n"
	switch LoopOf(name) {
	case loss.Reinforcement:
		text += "rollout: {sampling_params: {max_tokens: 9}}\nreward: [{type: exact}]\n"
	case loss.Distillation:
		text += "rollout: {sampling_params: {max_tokens: 9}}\nteacher: {base_model: b}\n"
	}
	return text
}

// given is what a recipe must give of a loss.
func given(name string) string {
	switch name {
	case "dro":
		return "beta: 0.05"
	case "command":
		return "command: [cat]"
	}
	return ""
}

// TestParametersHaveTheirDefaults holds them to the tables of the reference, written here a second time.
func TestParametersHaveTheirDefaults(t *testing.T) {
	for name, want := range map[string]loss.Loss{
		"cross_entropy":       &loss.CrossEntropy{},
		"grpo":                &loss.GRPO{ClipLowThreshold: 0.8, ClipHighThreshold: 1.28, AggType: "token_mean", RatioType: "token"},
		"ppo":                 &loss.PPO{ClipLowThreshold: 0.8, ClipHighThreshold: 1.2},
		"cispo":               &loss.CISPO{ClipLowThreshold: 0, ClipHighThreshold: 4},
		"dro":                 &loss.DRO{Beta: new(0.05)},
		"dppo":                &loss.DPPO{DeltaLow: 0.15, DeltaHigh: 0.15},
		"importance_sampling": &loss.ImportanceSampling{},
		"dpo":                 &loss.DPO{Beta: 0.1, Variant: "sigmoid"},
		"ipo":                 &loss.IPO{Beta: 0.1, LengthNormalized: true},
		"hinge":               &loss.Hinge{Beta: 0.1},
		"simpo":               &loss.SimPO{Beta: 2, Gamma: 0.5},
		"orpo":                &loss.ORPO{Beta: 0.1},
		"kto":                 &loss.KTO{Beta: 0.1, DesirableWeight: 1, UndesirableWeight: 1},
		"slic":                &loss.SLiC{Delta: 1},
		"reverse_kl":          &loss.ReverseKL{Estimator: "score", Reduction: "token_mean"},
		"forward_kl":          &loss.ForwardKL{TopK: 20, Renormalise: true},
		"command":             &loss.Command{Command: []string{"cat"}, Dir: ".", Rows: "supervised", Timeout: 5 * time.Minute, StartTimeout: 2 * time.Minute, Retries: 2},
	} {
		r := must(t, of(name, given(name)))
		if !reflect.DeepEqual(r.Loss.Params, want) {
			t.Errorf("%s: got %+v, want %+v", name, r.Loss.Params, want)
		}
		again := must(t, string(r.Resolved()))
		if c, ok := want.(*loss.Command); ok { // so that it runs where it ran
			c.Dir = r.ProgramDir("loss.params", ".")
		}
		if !reflect.DeepEqual(again.Loss.Params, want) || len(Diff(r, again)) > 0 {
			t.Errorf("%s resolves to\n%s", name, r.Resolved())
		}
	}
	if len(LossNames()) != 17 {
		t.Errorf("the table has %d losses, the test 17", len(LossNames()))
	}
}

// TestBoundsOfParametersAreTheirLosses: what the tags let pass is what the loss's own check lets pass, at every parameter.
func TestBoundsOfParametersAreTheirLosses(t *testing.T) {
	params, tried := 0, 0
	for _, v := range root.child("loss").child("params").Variants {
		kind, _ := lossKind(v.Name)
		for _, k := range v.Keys {
			params++
			values := []string{"-1", "-0.001", "0", "0.1", "0.49", "0.5", "1", "1.001", "4", "5", "1e30"}
			switch {
			case k.Names != nil:
				values = append([]string{"x", ""}, k.Names...)
			case k.Kind == Boolean:
				values = []string{"true", "false"}
			case k.Kind != Number:
				continue
			}
			for _, text := range values {
				l := kind.New()
				if dro, ok := l.(*loss.DRO); ok {
					dro.Beta = new(0.05)
				}
				if c, ok := l.(*loss.Command); ok {
					c.Command = []string{"cat"}
				}
				field := reflect.Indirect(reflect.ValueOf(l).Elem().FieldByIndex(k.index))
				switch field.Kind() {
				case reflect.Float64:
					var f float64
					if _, err := fmt.Sscan(text, &f); err != nil {
						t.Fatal(err)
					}
					field.SetFloat(f)
				case reflect.Bool:
					field.SetBool(text == "true")
				default:
					field.SetString(text)
				}
				more := given(v.Name) + ", "
				if k.Name == "beta" || more == ", " {
					more = ""
				}
				if text == "" {
					text = `""`
				}
				r, err := in(of(v.Name, more+k.Name+": "+text))
				c, _ := l.(loss.Checker)
				if ours := c.Check(); (err == nil) != (ours == nil) {
					t.Errorf("%s with %s: %s: the recipe says %v, the loss %v", v.Name, k.Name, text, err, ours)
				}
				if err == nil && !reflect.DeepEqual(r.Loss.Params, l) {
					t.Errorf("%s with %s: %s: got %+v, want %+v", v.Name, k.Name, text, r.Loss.Params, l)
				}
				tried++
			}
		}
	}
	if params < 20 || tried < 150 {
		t.Errorf("only %d parameters, %d values", params, tried)
	}
}

func TestAChildOfAnotherLossLeavesTheParamsBehind(t *testing.T) {
	r := must(t, of("grpo", "clip_low_threshold: 0.7, beta: 0"), "loss.type=ppo")
	if got := r.Loss.Params.(*loss.PPO).ClipLowThreshold; got != 0.8 {
		t.Errorf("got %v, want ppo's own default", got)
	}
	r = must(t, of("grpo", "clip_low_threshold: 0.7"), "loss.params.clip_high_threshold=1.5")
	if got := r.Loss.Params.(*loss.GRPO); got.ClipLowThreshold != 0.7 || got.ClipHighThreshold != 1.5 {
		t.Errorf("got %+v", got)
	}
	if text := string(r.Resolved()); !strings.Contains(text, "clip_high_threshold: 1.5") || !strings.Contains(text, "agg_type: token_mean") {
		t.Errorf("resolved to\n%s", text)
	}
}
