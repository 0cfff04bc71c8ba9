package wire

import (
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"

	"trainer/loss"
)

// ours are losses with values that no default has.
var ours = map[string]loss.Loss{
	"cross_entropy":       &loss.CrossEntropy{},
	"grpo":                &loss.GRPO{ClipLowThreshold: 0.75, ClipHighThreshold: 1.5, Beta: 0.25, AggType: "sequence_mean", RatioType: "sequence"},
	"ppo":                 &loss.PPO{ClipLowThreshold: 0.75, ClipHighThreshold: 1.5},
	"cispo":               &loss.CISPO{ClipLowThreshold: 0.75, ClipHighThreshold: 1.5},
	"dro":                 &loss.DRO{Beta: new(0.0)},
	"dppo":                &loss.DPPO{DeltaLow: 0.25, DeltaHigh: 0.75},
	"importance_sampling": &loss.ImportanceSampling{},
}

func TestLossTableGoesBothWays(t *testing.T) {
	if len(ours) != len(Losses()) {
		t.Errorf("the test has %d losses, the table %v", len(ours), Losses())
	}
	for name, l := range ours {
		c, err := FromLoss(l)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		body, err := AppendForwardBackward(nil, &ForwardBackward{Loss: c})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		f, err := DecodeForwardBackward(strings.NewReader(string(body)), 0)
		if err != nil {
			t.Fatalf("%s: %v", body, err)
		}
		back, err := ToLoss(f.Loss)
		if err != nil || !reflect.DeepEqual(back, l) {
			t.Errorf("%s: %s came back as %#v, %v", name, body, back, err)
		}
	}
	for name, l := range map[string]loss.Loss{"no loss": nil, "a loss of the client": &loss.DPO{}, "a horizon": &loss.GRPO{Horizon: 3}} {
		if c, err := FromLoss(l); err == nil {
			t.Errorf("%s is %+v", name, c)
		}
	}
	bad := &loss.PPO{ClipLowThreshold: math.NaN(), ClipHighThreshold: 1}
	c, err := FromLoss(bad)
	if err != nil {
		t.Fatal(err)
	}
	if b, err := AppendForwardBackward([]byte("kept"), &ForwardBackward{Loss: c}); err == nil || !strings.Contains(err.Error(), "loss.ppo_params.clip_low_threshold") || string(b) != "kept" {
		t.Errorf("NaN was written: %s, %v", b, err)
	}
}

func TestEveryParameterIsWrittenAsTheServiceSpellsIt(t *testing.T) {
	c, err := FromLoss(ours["grpo"])
	if err != nil {
		t.Fatal(err)
	}
	got, err := AppendForwardBackward(nil, &ForwardBackward{Loss: c})
	want := `{"loss":{"type":"LOSS_TYPE_GRPO","grpo_params":{"beta":0.25,"agg_type":"GRPO_LOSS_AGGREGATION_TYPE_SEQUENCE_MEAN",` +
		`"ratio_type":"GRPO_LOSS_RATIO_TYPE_SEQUENCE","clip_low_threshold":0.75,"clip_high_threshold":1.5}},"samples":[]}`
	if err != nil || string(got) != want {
		t.Errorf("got  %s, %v\nwant %s", got, err, want)
	}
}

// configured is the loss of a body whose loss member is given.
func configured(text string) (loss.Loss, error) {
	f, err := DecodeForwardBackward(strings.NewReader(`{"loss":`+text+`,"samples":[]}`), 0)
	if err != nil {
		return nil, err
	}
	return ToLoss(f.Loss)
}

func TestAbsentParametersAreTheServicesDefaults(t *testing.T) {
	plain := &loss.GRPO{ClipLowThreshold: 0.8, ClipHighThreshold: 1.2, AggType: "fixed_horizon", RatioType: "token"}
	for text, want := range map[string]loss.Loss{
		`{"type":"LOSS_TYPE_GRPO"}`:                    plain,
		`{"type":"LOSS_TYPE_GRPO","grpo_params":null}`: plain,
		`{"type":"LOSS_TYPE_GRPO","grpo_params":{"beta":null,"agg_type":null,"ratio_type":null}}`:        plain,
		`{"type":"LOSS_TYPE_GRPO","grpo_params":{"agg_type":"GRPO_LOSS_AGGREGATION_TYPE_UNSPECIFIED"}}`:  plain,
		`{"grpo_params":{"clip_high_threshold":1},"type":"LOSS_TYPE_GRPO"}`:                              &loss.GRPO{ClipLowThreshold: 0.8, ClipHighThreshold: 1, AggType: "fixed_horizon", RatioType: "token"},
		`{"type":"LOSS_TYPE_PPO","ppo_params":{}}`:                                                       &loss.PPO{ClipLowThreshold: 0.8, ClipHighThreshold: 1.2},
		`{"type":"LOSS_TYPE_CISPO"}`:                                                                     &loss.CISPO{ClipHighThreshold: 4},
		`{"type":"LOSS_TYPE_DPPO","dppo_params":{"delta_low":0}}`:                                        &loss.DPPO{DeltaHigh: 0.15},
		`{"type":"LOSS_TYPE_DRO","dro_params":{"beta":0.05}}`:                                            &loss.DRO{Beta: new(0.05)},
		`{"type":"LOSS_TYPE_IMPORTANCE_SAMPLING"}`:                                                       &loss.ImportanceSampling{},
		`{"type":"LOSS_TYPE_CROSS_ENTROPY","cross_entropy_params":{},"new_params":{"x":1},"new":[null]}`: &loss.CrossEntropy{},
	} {
		if got, err := configured(text); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, %v, want %+v", text, got, err, want)
		}
	}
}

func TestParametersAreRefusedByTheirPlace(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"no type", `{}`, `loss.type: "" is not a loss`},
		{"an unknown type", `{"type":"LOSS_TYPE_UNSPECIFIED"}`, `loss.type: "LOSS_TYPE_UNSPECIFIED" is not a loss`},
		{"a word that is empty", `{"type":"LOSS_TYPE_GRPO","grpo_params":{"ratio_type":""}}`, `loss.grpo_params.ratio_type: is empty`},
		{"a bound beyond float32", `{"type":"LOSS_TYPE_PPO","ppo_params":{"clip_high_threshold":1e39}}`, `loss.ppo_params.clip_high_threshold: 1e+39 is beyond float32`},
		{"parameters of another loss", `{"type":"LOSS_TYPE_GRPO","ppo_params":{}}`, `loss.ppo_params: is not of LOSS_TYPE_GRPO`},
		{"parameters of another loss beside one's own", `{"grpo_params":{},"ppo_params":{},"type":"LOSS_TYPE_PPO"}`, `loss.grpo_params: is not of LOSS_TYPE_PPO`},
		{"parameters where there are none", `{"type":"LOSS_TYPE_IMPORTANCE_SAMPLING","ppo_params":{}}`, `loss.ppo_params: is not of`},
		{"an offset for a bound", `{"type":"LOSS_TYPE_GRPO","grpo_params":{"clip_high_threshold":0.28}}`, `loss.grpo_params.clip_high_threshold: must be at least 1`},
		{"a low bound above 1", `{"type":"LOSS_TYPE_PPO","ppo_params":{"clip_low_threshold":1.5}}`, `loss.ppo_params.clip_low_threshold: must be from 0 to 1`},
		{"bounds turned round", `{"type":"LOSS_TYPE_CISPO","cispo_params":{"clip_low_threshold":5}}`, `loss.cispo_params.clip_low_threshold: must be at most`},
		{"a limit above 1", `{"type":"LOSS_TYPE_DPPO","dppo_params":{"delta_low":2}}`, `loss.dppo_params.delta_low: must be from 0 to 1`},
		{"a beta below 0", `{"type":"LOSS_TYPE_GRPO","grpo_params":{"beta":-1}}`, `loss.grpo_params.beta: must be at least 0`},
		{"dro without parameters", `{"type":"LOSS_TYPE_DRO"}`, `loss.dro_params.beta: missing`},
		{"dro without beta", `{"type":"LOSS_TYPE_DRO","dro_params":{}}`, `loss.dro_params.beta: missing`},
		{"a parameter that is none", `{"type":"LOSS_TYPE_GRPO","grpo_params":{"clip_low":0.2}}`, `loss.grpo_params.clip_low: is not a parameter of LOSS_TYPE_GRPO`},
		{"a parameter of a loss without", `{"type":"LOSS_TYPE_CROSS_ENTROPY","cross_entropy_params":{"x":1}}`, `loss.cross_entropy_params.x: is not a parameter of`},
		{"a number that is text", `{"type":"LOSS_TYPE_GRPO","grpo_params":{"beta":"0.1"}}`, `loss.grpo_params.beta: want a number, found a string`},
		{"a word that is a number", `{"type":"LOSS_TYPE_GRPO","grpo_params":{"agg_type":1}}`, `loss.grpo_params.agg_type: want a string, found a number`},
		{"a word without its prefix", `{"type":"LOSS_TYPE_GRPO","grpo_params":{"agg_type":"TOKEN_MEAN"}}`, `loss.grpo_params.agg_type: "TOKEN_MEAN" is not one of GRPO_LOSS_AGGREGATION_TYPE_FIXED_HORIZON`},
		{"a ratio that is none", `{"type":"LOSS_TYPE_GRPO","grpo_params":{"ratio_type":"GRPO_LOSS_RATIO_TYPE_UNSPECIFIED"}}`, `loss.grpo_params.ratio_type: "GRPO_LOSS_RATIO_TYPE_UNSPECIFIED" is not one of`},
		{"parameters that are a list", `{"type":"LOSS_TYPE_GRPO","grpo_params":[]}`, `loss.grpo_params: want '{', found an array`},
	} {
		_, err := configured(c.text)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want it to say %s", c.name, err, c.want)
		}
		var bad *Invalid
		if errors.As(err, &bad) && !strings.HasPrefix(c.want, bad.Param) {
			t.Errorf("%s: the place is %q", c.name, bad.Param)
		}
	}
}

func TestTensorsOfThePolicyLosses(t *testing.T) {
	body := wrapped(`{"advantages":{"data":[0,-0.5],"dtype":"float32"},"mask":{"data":[0,1],"dtype":"int64"},"logprobs":{"data":[-1,-2.5],"dtype":"float32"},` +
		`"reference_logprobs":{"data":[-1,-3],"dtype":"float32"},"target_tokens":{"data":[1,2],"dtype":"int64"},"weights":null}`)
	want := Sample{Tokens: []int32{}, Targets: []int32{1, 2}, Mask: []float64{0, 1}, Logprobs: []float64{-1, -2.5}, Advantages: []float64{0, -0.5}, RefLogprobs: []float64{-1, -3}}
	f, err := DecodeForwardBackward(strings.NewReader(body), 0)
	if err != nil || !reflect.DeepEqual(f.Samples, []Sample{want}) {
		t.Fatalf("got %+v, %v", f, err)
	}
	for _, c := range []struct{ name, inputs, want string }{
		{"advantages that are integers", `{"advantages":{"data":[1],"dtype":"int64"}}`, `loss_fn_inputs.advantages: dtype is "int64", want float32`},
		{"log-probabilities without a dtype", `{"logprobs":{"data":[1]}}`, `loss_fn_inputs.logprobs: dtype is "", want float32`},
		{"a mask of fractions under int64", `{"mask":{"data":[0.5],"dtype":"int64"}}`, `loss_fn_inputs.mask: dtype is int64, but a value is no integer`},
		{"a reference beyond float32", `{"reference_logprobs":{"data":[-1e39],"dtype":"float32"}}`, `loss_fn_inputs.reference_logprobs.data[0]: -1e39 is beyond float32`},
	} {
		if _, err := DecodeForwardBackward(strings.NewReader(wrapped(c.inputs)), 0); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %s", c.name, err, c.want)
		}
	}
}
