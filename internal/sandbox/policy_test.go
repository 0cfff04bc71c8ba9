package sandbox

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	"trainer/internal/wire"
	"trainer/loss"
)

// policies are the losses that read what sampling left, by name.
var policies = map[string]loss.Loss{
	"importance_sampling": &loss.ImportanceSampling{},
	"ppo":                 &loss.PPO{ClipLowThreshold: 0.8, ClipHighThreshold: 1.2},
	"cispo":               &loss.CISPO{ClipHighThreshold: 4},
	"dro":                 &loss.DRO{Beta: new(0.3)},
	"dppo":                &loss.DPPO{DeltaLow: 0.15, DeltaHigh: 0.15},
	"grpo":                &loss.GRPO{ClipLowThreshold: 0.8, ClipHighThreshold: 1.28, Beta: 0.2, AggType: "token_mean", RatioType: "token"},
	"grpo of sequences":   &loss.GRPO{ClipLowThreshold: 0.8, ClipHighThreshold: 1.28, AggType: "sequence_mean", RatioType: "sequence"},
}

// eval is a forward-backward with l.
func (c *client) eval(session string, l loss.Loss, flags string, rows ...wire.Sample) (out wire.ForwardBackwardOutput) {
	c.t.Helper()
	c.run(session, wire.KindForwardBackward, body(c.t, l, flags, rows...), &out)
	return out
}

// What comes back is what the loss makes of the log-probabilities that come back with it, 0 where a position is left out.
func TestPolicyLossesAreThoseOfTheLossRoom(t *testing.T) {
	rows := []wire.Sample{policyRow("the policy moved on"), policyRow("abc")}
	for name, l := range policies {
		_, c := open(t, Options{})
		got := c.eval(c.tiny(), l, `,"return_loss_fn_outputs":true`, rows...)
		var data []loss.Datum
		for i, x := range rows {
			data = append(data, loss.Datum{Weights: x.Weights, OldLogprobs: x.Logprobs, Advantages: x.Advantages, RefLogprobs: x.RefLogprobs})
			for p, w := range x.Weights {
				if lp := got.Logprobs[i][p]; (w == 0) != (lp == 0) {
					t.Errorf("%s: position %d of weight %v has the log-probability %v", name, p, w, lp)
				}
			}
		}
		want, err := l.Eval(got.Logprobs, data)
		if err != nil {
			t.Fatal(err)
		}
		if math.Abs(*got.Loss-want.Value) > 1e-12*math.Abs(want.Value) {
			t.Errorf("%s: loss %v, want %v", name, *got.Loss, want.Value)
		}
		for metric, v := range want.Metrics {
			if math.Abs(got.Metrics[metric]-v) > 1e-12*math.Abs(v) {
				t.Errorf("%s: %s is %v, want %v", name, metric, got.Metrics[metric], v)
			}
		}
		if len(got.Metrics) != len(want.Metrics) {
			t.Errorf("%s: metrics %v, want %v", name, got.Metrics, want.Metrics)
		}
	}
}

func TestOnPolicyTheRatioIsOne(t *testing.T) {
	_, c := open(t, Options{})
	id := c.tiny()
	x := policyRow("on policy")
	x.Weights = nil
	x.Logprobs = c.scores(id, x)[0]
	out := c.eval(id, policies["ppo"], "", x)
	sum := 0.0
	for _, a := range x.Advantages {
		sum -= a
	}
	if out.Metrics["ratio_min"] != 1 || out.Metrics["ratio_max"] != 1 || math.Abs(*out.Loss-sum) > 1e-12 {
		t.Errorf("got %v and loss %v, want ratios of 1 and %v", out.Metrics, *out.Loss, sum)
	}
}

// scores are the log-probabilities of every target.
func (c *client) scores(session string, rows ...wire.Sample) [][]float64 {
	c.t.Helper()
	ones := make([]wire.Sample, len(rows))
	for i, x := range rows {
		ones[i] = wire.Sample{Tokens: x.Tokens, Targets: x.Targets, Weights: make([]float64, len(x.Tokens))}
		for t := range ones[i].Weights {
			ones[i].Weights[t] = 1
		}
	}
	return c.loss(session, `,"forward_only":true,"return_loss_fn_outputs":true`, ones...).Logprobs
}

// weights of any size, a mask of any kind, and none at all are the same where they leave out the same.
func TestAMaskIsWeightsThatAreNotZero(t *testing.T) {
	plain := policyRow("masked")
	for p := range plain.Weights {
		plain.Weights[p] = 1
	}
	fractions, mask, none := plain, plain, plain
	fractions.Weights, none.Weights, mask.Weights = make([]float64, len(plain.Weights)), nil, nil
	mask.Mask = make([]float64, len(plain.Weights))
	for p := range plain.Weights {
		fractions.Weights[p], mask.Mask[p] = 0.25, 3
	}
	for name, l := range policies {
		hash := func(x wire.Sample) (loss float64, hash [32]byte) {
			s, c := open(t, Options{})
			id := c.tiny()
			loss = *c.eval(id, l, "", x).Loss
			c.run(id, wire.KindOptimStep, `{}`, nil)
			hash, err := s.WeightsHash(id)
			if err != nil {
				t.Fatal(err)
			}
			return loss, hash
		}
		wantLoss, want := hash(plain)
		for kind, x := range map[string]wire.Sample{"fractions": fractions, "a mask": mask, "nothing": none} {
			if gotLoss, got := hash(x); gotLoss != wantLoss || got != want {
				t.Errorf("%s with %s: loss %v, want %v; weights equal: %v", name, kind, gotLoss, wantLoss, got == want)
			}
		}
	}
}

func TestALossThatOverflowsFailsAndAddsNothing(t *testing.T) {
	far := policyRow("far away")
	for p := range far.Logprobs {
		far.Logprobs[p], far.Advantages[p] = -200, -1
	}
	s, c := open(t, Options{})
	id, other := c.tiny(), c.tiny()
	for _, l := range []loss.Loss{policies["ppo"], policies["grpo"]} {
		op := c.wait(id, wire.KindForwardBackward, c.post(id, wire.KindForwardBackward, body(t, l, "", far)).ID)
		if op.Status != wire.OperationFailed || op.Error == nil || op.Error.Code != wire.CodeNonFiniteLoss || op.Output != nil {
			t.Fatalf("%T: got %+v, want FAILED with NON_FINITE_LOSS", l, op)
		}
	}
	// Clipped, the same is finite.
	for p := range far.Advantages {
		far.Advantages[p] = 1
	}
	for _, session := range []string{id, other} {
		c.eval(session, policies["ppo"], "", far)
		c.eval(session, policies["grpo"], "", policyRow("near"))
		c.run(session, wire.KindOptimStep, `{}`, nil)
	}
	got, err := s.WeightsHash(id)
	if err != nil {
		t.Fatal(err)
	}
	if want, err := s.WeightsHash(other); err != nil || got != want {
		t.Errorf("the failed operations left something behind (%v)", err)
	}
}

// The gradient that lands in the weights is that of the loss: as for cross-entropy, by the rate of plain descent.
func TestGradientsOfPolicyLossesAreTheDerivative(t *testing.T) {
	for _, name := range []string{"importance_sampling", "dro", "grpo"} {
		l := policies[name]
		rows := []wire.Sample{policyRow("abcabcabc"), policyRow("xyzzy")}
		checkDescent(t, name, func(c *client, id string) { c.eval(id, l, "", rows...) },
			func(c *client, id string) float64 { return *c.eval(id, l, `,"forward_only":true`, rows...).Loss })
	}
}

// checkDescent fits the rates of descent along g and along g clipped, as TestGradientsAreTheDerivativeOfTheLoss explains.
func checkDescent(t *testing.T, name string, backward func(c *client, id string), value func(c *client, id string) float64) {
	t.Helper()
	_, c := open(t, Options{})
	after := func(delta, clip float64) float64 {
		id := c.tiny()
		backward(c, id)
		const eps = 1e6
		c.run(id, wire.KindOptimStep, fmt.Sprintf(
			`{"adam_params":{"learning_rate":%g,"beta1":0,"beta2":0,"eps":%g,"grad_clip_norm":%g}}`, delta*eps, eps, clip), nil)
		got := value(c, id)
		c.ok("POST", wire.PathSessions+"/"+id+"/stop", "", nil)
		return got
	}
	start := after(0, 0)
	slope := func(delta, clip float64) float64 {
		rate := func(d float64) float64 { return (start - after(d, clip)) / d }
		a, b, e := rate(delta), rate(delta/2), rate(delta/4)
		return (4*(2*e-b) - (2*b - a)) / 3
	}
	// Small enough for the loss to curve little, large enough to stand out of its float32.
	size := 1e-3
	whole := slope(size, 0)
	norm := math.Sqrt(whole)
	clip := norm / 4
	clipped := slope(size*norm/clip, clip)
	if !(math.Abs(clipped/(clip*norm)-1) < 0.01) {
		t.Errorf("%s: descent %v along g, %v along g clipped to %v; want the second to be %v", name, whole, clipped, clip, clip*norm)
	}
}

func TestWhatAPolicyLossReadsIsAskedByName(t *testing.T) {
	_, c := open(t, Options{})
	id := c.tiny()
	whole := body(t, policies["grpo"], "", policyRow("abcd"))
	without := func(text, tensor string) string {
		var v struct {
			Loss    json.RawMessage `json:"loss"`
			Samples []struct {
				Input  json.RawMessage            `json:"model_input"`
				Inputs map[string]json.RawMessage `json:"loss_fn_inputs"`
			} `json:"samples"`
		}
		if err := json.Unmarshal([]byte(text), &v); err != nil {
			t.Fatal(err)
		}
		delete(v.Samples[0].Inputs, tensor)
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	longer := func(tensor string) string {
		return strings.Replace(whole, `"`+tensor+`":{"data":[`, `"`+tensor+`":{"data":[0,`, 1)
	}
	params := func(typ, params string) string {
		return `{"loss":{"type":"LOSS_TYPE_` + typ + `"` + params + `},` + whole[strings.Index(whole, `"samples"`):]
	}
	for _, tt := range []struct{ name, body, param string }{
		{"no log-probabilities", without(whole, "logprobs"), "samples[0].loss_fn_inputs.logprobs"},
		{"no advantages", without(whole, "advantages"), "samples[0].loss_fn_inputs.advantages"},
		{"a KL term without a reference", without(whole, "reference_logprobs"), "samples[0].loss_fn_inputs.reference_logprobs"},
		{"no targets", without(whole, "target_tokens"), "samples[0].loss_fn_inputs.target_tokens"},
		{"weights beside a mask", strings.Replace(whole, `"weights":`, `"mask":{"data":[1,1,1],"dtype":"int64"},"weights":`, 1), "samples[0].loss_fn_inputs.mask"},
		{"more log-probabilities than tokens", longer("logprobs"), "samples[0].loss_fn_inputs.logprobs"},
		{"more advantages than tokens", longer("advantages"), "samples[0].loss_fn_inputs.advantages"},
		{"more references than tokens", longer("reference_logprobs"), "samples[0].loss_fn_inputs.reference_logprobs"},
		{"more weights than tokens", longer("weights"), "samples[0].loss_fn_inputs.weights"},
		{"a mask below 0", strings.Replace(whole, `"weights":{"data":[0`, `"mask":{"data":[-1`, 1), "samples[0].loss_fn_inputs.mask"},
		{"advantages of integers", strings.Replace(whole, `"advantages":{"data":[1,0.5,0],"dtype":"float32"`, `"advantages":{"data":[1,0,0],"dtype":"int64"`, 1), "samples[0].loss_fn_inputs.advantages"},
		{"parameters of another loss", params("PPO", `,"grpo_params":{}`), "loss.grpo_params"},
		{"a parameter that the loss does not have", params("PPO", `,"ppo_params":{"beta":0}`), "loss.ppo_params.beta"},
		{"a bound that is an offset", params("PPO", `,"ppo_params":{"clip_high_threshold":0.2}`), "loss.ppo_params.clip_high_threshold"},
		{"dro without beta", params("DRO", ``), "loss.dro_params.beta"},
		{"dro with a beta below 0", params("DRO", `,"dro_params":{"beta":-1}`), "loss.dro_params.beta"},
		{"an aggregation that is none", params("GRPO", `,"grpo_params":{"agg_type":"MEAN"}`), "loss.grpo_params.agg_type"},
		{"cross-entropy with a mask for weights", without(params("CROSS_ENTROPY", ``), "weights"), "samples[0].loss_fn_inputs.weights"},
	} {
		e := (&client{t: t, http: c.http}).refused(400, "POST", opsPath(id, wire.KindForwardBackward), tt.body, wire.KeyHeader, tt.name)
		if e.Param == nil || *e.Param != tt.param || !strings.Contains(e.Message, lastPart(tt.param)) {
			t.Errorf("%s: got %+v, want the place %s", tt.name, e, tt.param)
		}
	}
	// Without the KL term nobody asks for a reference, and what the loss has no use for may be of any length.
	c.run(id, wire.KindForwardBackward, without(params("GRPO", ``), "reference_logprobs"), nil)
	c.run(id, wire.KindForwardBackward, strings.Replace(params("PPO", ``), `"reference_logprobs":{"data":[`, `"reference_logprobs":{"data":[0,`, 1), nil)
}
