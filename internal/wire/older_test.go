package wire

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

// older is a body of the shape April2026 with one sample of two tokens; inputs are the members of loss_inputs, more those of
// the sample behind them.
func older(typ LossType, inputs, more string) string {
	return `{"samples":[{"model_input":{"chunks":[{"encoded_text":{"tokens":[1,"2"]}}]},"loss_inputs":{"target_tokens":{"data":["2",3],"dtype":"D_TYPE_INT64"}` +
		inputs + `}` + more + `}],"loss":{"type":"` + string(typ) + `"}}`
}

// Two tensors, and the three of grpo.
const (
	pair   = `{"advantages":{"data":[0.5,-1],"dtype":"D_TYPE_FLOAT32"},"logprobs":{"data":[-2,-0.25],"dtype":"D_TYPE_FLOAT32"}}`
	triple = `{"reference_logprobs":{"data":[-3,-1],"dtype":"D_TYPE_FLOAT32"},"advantages":{"data":[0.5,-1],"dtype":"D_TYPE_FLOAT32"},"logprobs":{"data":[-2,-0.25],"dtype":"D_TYPE_FLOAT32"}}`
)

func decoded(t *testing.T, body string) *ForwardBackward {
	t.Helper()
	f, err := DecodeForwardBackward(strings.NewReader(body), 0)
	if err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	return f
}

func TestBothShapesAreTheSameValue(t *testing.T) {
	plain := Sample{Tokens: []int32{1, 2}, Targets: []int32{2, 3}}
	policy := plain
	policy.Advantages, policy.Logprobs = []float64{0.5, -1}, []float64{-2, -0.25}
	kl := policy
	kl.RefLogprobs, kl.Weights = []float64{-3, -1}, []float64{0, 1}
	entropy := plain
	entropy.Weights = []float64{0, 0.5}
	for _, c := range []struct {
		typ    LossType
		inputs string
		want   Sample
	}{
		{LossCrossEntropy, `,"weights":{"data":[0,0.5],"dtype":"D_TYPE_FLOAT32"}`, entropy},
		{LossGRPO, `,"weights":{"data":[0,1],"dtype":"D_TYPE_INT64"},"grpo_inputs":` + triple, kl},
		{LossGRPO, `,"grpo_inputs":` + pair, policy},
		{LossImportanceSampling, `,"importance_sampling_inputs":` + pair, policy},
		{LossPPO, `,"ppo_inputs":` + pair, policy},
		{LossCISPO, `,"cispo_inputs":` + pair, policy},
		{LossDRO, `,"dro_inputs":` + pair, policy},
	} {
		f := decoded(t, older(c.typ, c.inputs, ""))
		want := &ForwardBackward{Shape: April2026, Loss: LossConfig{Type: c.typ}, Samples: []Sample{c.want}}
		if !reflect.DeepEqual(f, want) {
			t.Errorf("%s:\ngot  %+v\nwant %+v", c.typ, f, want)
		}
		f.Shape = Current
		body, err := AppendForwardBackward(nil, f)
		if err != nil {
			t.Fatalf("%s: %v", c.typ, err)
		}
		if got := decoded(t, string(body)); !reflect.DeepEqual(got, f) {
			t.Errorf("%s: through the current shape:\ngot  %+v\nwant %+v", c.typ, got, f)
		}
	}
}

func TestTheOlderShapeIsWrittenAsItWasDocumented(t *testing.T) {
	s := Sample{Tokens: []int32{1, 2}, Targets: []int32{2, 3}, Weights: []float64{0, 1}, Advantages: []float64{0.5, -1}, Logprobs: []float64{-2, -0.25}}
	kl := s
	kl.RefLogprobs, kl.Weights = []float64{-3, -1}, nil
	kl.Experts = &RoutedExperts{Shape: [3]int{2, 2, 1}, Data: []uint16{1, 2, 3, 4}}
	const (
		begin = `"samples":[{"model_input":{"chunks":[{"encoded_text":{"tokens":[1,2]}}]},"loss_inputs":{"target_tokens":{"data":[2,3],"dtype":"D_TYPE_INT64"}`
		two   = `"advantages":{"data":[0.5,-1],"dtype":"D_TYPE_FLOAT32"},"logprobs":{"data":[-2,-0.25],"dtype":"D_TYPE_FLOAT32"}`
	)
	weights := `,"weights":{"data":[0,1],"dtype":"D_TYPE_FLOAT32"}`
	for _, c := range []struct {
		name string
		f    *ForwardBackward
		want string
	}{
		{"what the loss has no use for is left out", &ForwardBackward{Loss: LossConfig{Type: LossCrossEntropy}, Samples: []Sample{s}, ForwardOnly: true, ReturnOutputs: true},
			`{"loss":{"type":"LOSS_TYPE_CROSS_ENTROPY"},` + begin + weights + `}}],"forward_only":true,"return_loss_fn_outputs":true}`},
		{"a loss has an object of its own", &ForwardBackward{Loss: LossConfig{Type: LossImportanceSampling}, Samples: []Sample{s}},
			`{"loss":{"type":"LOSS_TYPE_IMPORTANCE_SAMPLING"},` + begin + weights + `,"importance_sampling_inputs":{` + two + `}}}]}`},
		{"experts stand beside the tensors", &ForwardBackward{Loss: LossConfig{Type: LossGRPO}, Samples: []Sample{kl}, PayloadID: "p"},
			`{"loss":{"type":"LOSS_TYPE_GRPO"},` + begin + `,"grpo_inputs":{` + two + `,"reference_logprobs":{"data":[-3,-1],"dtype":"D_TYPE_FLOAT32"}}},` +
				`"routed_experts":{"data":"AQACAAMABAA=","shape":[2,2,1]}}],"payload_id":"p"}`},
		{"an empty object is written", &ForwardBackward{Loss: LossConfig{Type: LossDRO}, Samples: []Sample{{}}},
			`{"loss":{"type":"LOSS_TYPE_DRO"},"samples":[{"model_input":{"chunks":[{"encoded_text":{"tokens":[]}}]},"loss_inputs":{"dro_inputs":{}}}]}`},
	} {
		c.f.Shape = April2026
		got, err := AppendForwardBackward([]byte("x"), c.f)
		if err != nil || string(got) != "x"+c.want {
			t.Errorf("%s:\ngot  %s, %v\nwant x%s", c.name, got, err, c.want)
		}
	}
	custom := &CustomForwardBackward{Shape: April2026, Samples: []Sample{s}, Gradients: [][]float64{{1, 0}}}
	want := `{` + begin + weights + `}}],"gradients":[{"data":[1,0],"dtype":"D_TYPE_FLOAT32"}]}`
	got, err := AppendCustomForwardBackward(nil, custom)
	if err != nil || string(got) != want {
		t.Errorf("custom:\ngot  %s, %v\nwant %s", got, err, want)
	}
	custom.Samples[0].Advantages, custom.Samples[0].Logprobs = nil, nil
	if back, err := DecodeCustomForwardBackward(bytes.NewReader(got), 0); err != nil || !reflect.DeepEqual(back, custom) {
		t.Errorf("custom came back as %+v, %v", back, err)
	}
}

func TestWhatAShapeCannotSayIsNotWritten(t *testing.T) {
	experts := []Sample{{Experts: &RoutedExperts{}}}
	for _, c := range []struct {
		name string
		f    ForwardBackward
		want string
	}{
		{"dppo", ForwardBackward{Shape: April2026, Loss: LossConfig{Type: LossDPPO}}, `loss.type: LOSS_TYPE_DPPO is not in the 2026-04 shape`},
		{"a loss that is none", ForwardBackward{Shape: April2026, Loss: LossConfig{Type: "L"}}, `loss.type: "L" is not a loss`},
		{"a mask", ForwardBackward{Shape: April2026, Loss: LossConfig{Type: LossGRPO}, Samples: []Sample{{}, {Mask: []float64{1}}}}, `samples[1].mask: is not in the 2026-04 shape`},
		{"NaN", ForwardBackward{Shape: April2026, Loss: LossConfig{Type: LossGRPO}, Samples: []Sample{{Logprobs: []float64{0, 1e39}}}}, `samples[0].loss_inputs.grpo_inputs.logprobs[1]: 1e+39 is not a finite float32`},
		{"weights beyond float32", ForwardBackward{Shape: April2026, Loss: LossConfig{Type: LossPPO}, Samples: []Sample{{Weights: []float64{1e39}}}}, `samples[0].loss_inputs.weights[0]`},
		{"experts in the current shape", ForwardBackward{Samples: experts}, `samples[0].routed_experts: the current shape has a key`},
	} {
		got, err := AppendForwardBackward([]byte("kept"), &c.f)
		if err == nil || !strings.Contains(err.Error(), c.want) || string(got) != "kept" {
			t.Errorf("%s: got %s, %v, want an error with %s", c.name, got, err, c.want)
		}
	}
}

func TestTheOlderShapeIsReadInEverySpelling(t *testing.T) {
	plain := Sample{Tokens: []int32{1, 2}, Targets: []int32{2, 3}, Weights: []float64{0, 1}}
	weights := func(text string) string { return older(LossCrossEntropy, `,"weights":`+text, "") }
	for _, c := range []struct{ name, body string }{
		{"no dtype", weights(`{"data":[0,1]}`)},
		{"a dtype that is null", weights(`{"data":[0,1],"dtype":null}`)},
		{"an unspecified dtype", weights(`{"dtype":"D_TYPE_UNSPECIFIED","data":[0,1.0]}`)},
		{"bfloat16", weights(`{"data":[0,1],"dtype":"D_TYPE_BFLOAT16"}`)},
		{"integers", weights(`{"data":[0,1],"dtype":"D_TYPE_INT64"}`)},
		{"members that are not known or null", strings.NewReplacer(`"weights"`, `"future":{"data":"x"},"grpo_inputs":null,"weights"`,
			`"loss_inputs"`, `"loss_fn_inputs":null,"routed_experts":null,"loss_inputs"`).Replace(weights(`{"data":[0,1]}`))},
		{"targets without a dtype", strings.Replace(weights(`{"data":[0,1]}`), `,"dtype":"D_TYPE_INT64"`, ``, 1)},
		{"targets of an unspecified dtype", strings.Replace(weights(`{"data":[0,1]}`), `D_TYPE_INT64`, `D_TYPE_UNSPECIFIED`, 1)},
		{"samples that stand twice, the first in the current shape", strings.Replace(weights(`{"data":[0,1]}`), `"samples"`, `"samples":[{"loss_fn_inputs":{}}],"samples"`, 1)},
	} {
		if got := decoded(t, c.body); got.Shape != April2026 || !reflect.DeepEqual(got.Samples, []Sample{plain}) {
			t.Errorf("%s: got %+v", c.name, got)
		}
	}
}

// The values were rounded by exact fractions, ties to the even one.
func TestBFloat16IsRounded(t *testing.T) {
	body := older(LossDRO, `,"dro_inputs":{"advantages":{"data":[0.1,-1.5,-0.3333,1.00390625,1.01171875,0.9999,0],"dtype":"D_TYPE_BFLOAT16"}}`, "")
	want := []float64{0.10009765625, -1.5, -0.333984375, 1, 1.015625, 1, 0}
	if got := decoded(t, body).Samples[0].Advantages; !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestTheOlderShapeIsRefusedByPlace(t *testing.T) {
	grpo := func(object string) string { return older(LossGRPO, `,"grpo_inputs":`+object, "") }
	tensor := func(text string) string { return grpo(`{"advantages":` + text + `}`) }
	weights := func(text string) string { return older(LossCrossEntropy, `,"weights":`+text, "") }
	routed := func(text string) string { return older(LossCrossEntropy, "", `,"routed_experts":`+text) }
	two := func(first, second string) string {
		return `{"loss":{"type":"LOSS_TYPE_CROSS_ENTROPY"},"samples":[{` + first + `},{` + second + `}]}`
	}
	const at = "samples[0].loss_inputs."
	for _, c := range []struct{ name, body, want string }{
		{"both shapes in a sample", older(LossCrossEntropy, "", `,"loss_fn_inputs":{}`), `samples[0].loss_fn_inputs: is of the current shape, and samples[0].loss_inputs is of the 2026-04 shape; a body has one`},
		{"both shapes in a body", two(`"loss_fn_inputs":{}`, `"loss_inputs":{}`), `samples[1].loss_inputs: is of the 2026-04 shape, and samples[0].loss_fn_inputs is of the current shape`},
		{"experts inline beside the current tensors", two(`"loss_fn_inputs":{}`, `"routed_experts":{}`), `samples[1].routed_experts: is of the 2026-04 shape`},
		{"a key of experts beside the older tensors", two(`"loss_inputs":{}`, `"routed_experts_key":"k"`), `samples[1].routed_experts_key: is of the current shape`},
		{"the object of another loss", older(LossGRPO, `,"ppo_inputs":`+pair, ""), at + `ppo_inputs: is not of LOSS_TYPE_GRPO`},
		{"the object of another loss beside one's own", older(LossGRPO, `,"grpo_inputs":`+pair+`,"dro_inputs":{}`, ""), at + `dro_inputs: is not of LOSS_TYPE_GRPO`},
		{"no object", older(LossCISPO, "", ""), at + `cispo_inputs: is required by LOSS_TYPE_CISPO`},
		{"an object that is null", older(LossPPO, `,"ppo_inputs":null`, ""), at + `ppo_inputs: is required by LOSS_TYPE_PPO`},
		{"an object for cross-entropy", older(LossCrossEntropy, `,"cross_entropy_inputs":{}`, ""), at + `cross_entropy_inputs: LOSS_TYPE_CROSS_ENTROPY has no tensors of its own`},
		{"a policy's object for cross-entropy", older(LossCrossEntropy, `,"grpo_inputs":`+pair, ""), at + `grpo_inputs: is not of LOSS_TYPE_CROSS_ENTROPY`},
		{"dppo", older(LossDPPO, `,"dppo_inputs":`+pair, ""), `loss.type: LOSS_TYPE_DPPO is not in the 2026-04 shape, which has cross_entropy, grpo, ppo, cispo, dro, importance_sampling; send the samples with loss_fn_inputs`},
		{"the object of dppo", older(LossGRPO, `,"grpo_inputs":`+pair+`,"dppo_inputs":{}`, ""), at + `dppo_inputs: is not of LOSS_TYPE_GRPO`},
		{"no loss type", older("", "", ""), `loss.type: "" is not a loss; the 2026-04 shape has cross_entropy`},
		{"a reference that the loss does not have", older(LossPPO, `,"ppo_inputs":`+triple, ""), at + `ppo_inputs.reference_logprobs: is not a tensor of LOSS_TYPE_PPO`},
		{"a mask", older(LossGRPO, `,"mask":{"data":[1,1]}`, ""), at + `mask: is not in the 2026-04 shape; give weights`},
		{"a mask in the object", grpo(`{"mask":{"data":[1,1]}}`), at + `grpo_inputs.mask: is not a tensor of LOSS_TYPE_GRPO`},
		{"advantages beside the object", older(LossGRPO, `,"advantages":{"data":[1,1]},"grpo_inputs":`+pair, ""), at + `advantages: stands in the object of its loss`},
		{"an object that is a list", grpo(`[]`), at + `grpo_inputs: want '{', found an array`},
		{"a tensor that is a list", tensor(`[1,2]`), at + `grpo_inputs.advantages: want '{', found an array`},
		{"advantages of integers", tensor(`{"data":[1,2],"dtype":"D_TYPE_INT64"}`), at + `grpo_inputs.advantages: dtype is D_TYPE_INT64, want D_TYPE_FLOAT32 or D_TYPE_BFLOAT16`},
		{"a dtype of the current shape", tensor(`{"data":[1,2],"dtype":"float32"}`), at + `grpo_inputs.advantages: dtype is "float32", want D_TYPE_FLOAT32`},
		{"advantages that are text", tensor(`{"data":["1",2]}`), at + `grpo_inputs.advantages.data[0]: want a number, found a string`},
		{"an advantage beyond float32", tensor(`{"data":[1,1e39]}`), at + `grpo_inputs.advantages.data[1]: 1e39 is beyond float32`},
		{"an advantage beyond bfloat16", tensor(`{"data":[1,3.4e38],"dtype":"D_TYPE_BFLOAT16"}`), at + `grpo_inputs.advantages.data[1]: 3.3999999521443642e+38 is beyond bfloat16`},
		{"fractions as integers", weights(`{"data":[0.5,1],"dtype":"D_TYPE_INT64"}`), at + `weights: dtype is D_TYPE_INT64, but a value is no integer`},
		{"targets of floats", strings.Replace(older(LossCrossEntropy, "", ""), "D_TYPE_INT64", "D_TYPE_FLOAT32", 1), at + `target_tokens: dtype is "D_TYPE_FLOAT32", want D_TYPE_INT64`},
		{"targets of a fraction", strings.Replace(older(LossCrossEntropy, "", ""), `["2",3]`, `["2",3.5]`, 1), at + `target_tokens.data[1]: 3.5 is not a token id`},
		{"a target that is a word", strings.Replace(older(LossCrossEntropy, "", ""), `["2",3]`, `["two",3]`, 1), at + `target_tokens.data[0]: "two" is not a token id`},
		{"a target that is text of a fraction", strings.Replace(older(LossCrossEntropy, "", ""), `["2",3]`, `["2.0",3]`, 1), at + `target_tokens.data[0]: "2.0" is not a token id`},
		{"a target that is text of text", strings.Replace(older(LossCrossEntropy, "", ""), `["2",3]`, `["\"2\"",3]`, 1), `target_tokens.data[0]: "\"2\"" is not a token id`},
		{"a target that is no text", strings.Replace(older(LossCrossEntropy, "", ""), `["2",3]`, `["",3]`, 1), `target_tokens.data[0]: "" is not a token id`},
		{"a token that is a word", strings.Replace(older(LossCrossEntropy, "", ""), `[1,"2"]`, `[1,"0x2"]`, 1), `encoded_text.tokens[1]: "0x2" is not a token id`},

		{"experts that are no base64", routed(`{"data":"AQ!","shape":[2,1,1]}`), `samples[0].routed_experts.data: is not base64`},
		{"experts that are a list", routed(`{"data":[1,2],"shape":[2,1,1]}`), `samples[0].routed_experts.data: want a string, found an array`},
		{"half an expert", routed(`{"data":"AQACAHg=","shape":[2,1,1]}`), `samples[0].routed_experts.data: has 5 bytes, which are no 16-bit numbers`},
		{"a shape of two", routed(`{"data":"AQACAAMABAA=","shape":[2,2]}`), `samples[0].routed_experts.shape: has 2 numbers, want [num_tokens, num_layers, topk]`},
		{"a shape of four", routed(`{"data":"AQACAAMABAA=","shape":[2,2,1,1]}`), `samples[0].routed_experts.shape: has 4 numbers`},
		{"a shape of words", routed(`{"data":"AQACAAMABAA=","shape":["two",2,1]}`), `samples[0].routed_experts.shape[0]: "two" is not a 64-bit integer`},
		{"a shape of fractions", routed(`{"data":"AQACAAMABAA=","shape":[2.5,2,1]}`), `samples[0].routed_experts.shape[0]: "2.5" is not a 64-bit integer`},
		{"no shape", routed(`{"data":"AQACAAMABAA="}`), `samples[0].routed_experts.shape: has 0, want three numbers of at least 1`},
		{"a shape below 0", routed(`{"data":"AQACAAMABAA=","shape":[-2,-2,1]}`), `samples[0].routed_experts.shape: has -2`},
		{"a shape of more than the data", routed(`{"data":"AQACAAMABAA=","shape":[2,2,2]}`), `samples[0].routed_experts.data: has 8 bytes, want 2 for each of the 2x2x2 of shape`},
		{"a shape of less than the data", routed(`{"data":"AQACAAMABAA=","shape":[2,1,1]}`), `samples[0].routed_experts.data: has 8 bytes`},
		{"a shape that overflows", routed(`{"data":"AQACAAMABAA=","shape":[4,9223372036854775807,"4"]}`), `samples[0].routed_experts.data: has 8 bytes`},
		{"no data", routed(`{"shape":[2,1,1]}`), `samples[0].routed_experts.data: has 0 bytes`},
		{"experts of another sample", routed(`{"data":"AQACAAMABAA=","shape":[4,1,1]}`), `samples[0].routed_experts.shape: covers 4 tokens of a sample with 2`},
		{"experts that are too few", strings.Replace(routed(`{"data":"AQACAAMABAA=","shape":[1,2,2]}`), `[1,"2"]`, `[1,2,3]`, 1), `samples[0].routed_experts.shape: covers 1 tokens of a sample with 3`},
	} {
		_, err := DecodeForwardBackward(strings.NewReader(c.body), 0)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %s", c.name, err, c.want)
		}
	}
	body := strings.Replace(older("", `,"grpo_inputs":`+pair, ""), `"loss":`, `"gradients":[{"data":[1,1]}],"loss":`, 1)
	if _, err := DecodeCustomForwardBackward(strings.NewReader(body), 0); err == nil || !strings.Contains(err.Error(), at+`grpo_inputs: is of a loss, and this request has none`) {
		t.Errorf("custom: got %v", err)
	}
}

// The numbers were packed by another program: 0, 1, 127, 3, 255, 256, 65535, 7, little-endian.
func TestRoutedExpertsAreRead(t *testing.T) {
	const data = `"AAABAH8AAwD\/AAAB\/\/8HAA=="`
	all := []uint16{0, 1, 127, 3, 255, 256, 65535, 7}
	for _, shape := range [][3]int{{2, 2, 2}, {2, 4, 1}, {1, 4, 2}, {1, 8, 1}} { // two tokens, and all but the last
		text, err := json.Marshal(shape)
		if err != nil {
			t.Fatal(err)
		}
		for _, spelt := range []string{string(text), strings.NewReplacer("[", `["`, ",", `","`, "]", `"]`).Replace(string(text))} {
			f := decoded(t, older(LossCrossEntropy, "", `,"routed_experts":{"shape":`+spelt+`,"new":1,"data":`+data+`}`))
			if want := (&RoutedExperts{shape, all}); !reflect.DeepEqual(f.Samples[0].Experts, want) {
				t.Errorf("%s: got %+v, want %+v", spelt, f.Samples[0].Experts, want)
			}
		}
	}
	// A prompt and its completion have one token more than the model is shown.
	decoded(t, strings.Replace(older(LossCrossEntropy, "", `,"routed_experts":{"shape":[2,1,4],"data":`+data+`}`), `[1,"2"]`, `[1]`, 1))
	long := make([]uint16, longestString/2) // a third more in base64, and so beyond what other strings may have
	f := &ForwardBackward{Shape: April2026, Loss: LossConfig{Type: LossCrossEntropy}, Samples: []Sample{{Tokens: make([]int32, 512), Experts: &RoutedExperts{[3]int{512, 128, 8}, long}}}}
	body, err := AppendForwardBackward(nil, f)
	if err != nil {
		t.Fatal(err)
	}
	if got := decoded(t, string(body)); !reflect.DeepEqual(got, f) {
		t.Error("half a million experts did not come back as they went")
	}
}

// Of a short body the experts are those of the whole one, whose shape is left out there.
func TestTheOlderShapeIsShortenedToo(t *testing.T) {
	x := Sample{Tokens: make([]int32, 11), Targets: make([]int32, 11), Advantages: make([]float64, 11), Experts: &RoutedExperts{[3]int{11, 1, 1}, make([]uint16, 11)}}
	f := &ForwardBackward{Shape: April2026, Loss: LossConfig{Type: LossDRO}, Samples: []Sample{x}}
	short := f.Shortened("p")
	if s := short.Samples[0]; short.Shape != April2026 || len(s.Tokens) != 8 || len(s.Targets) != 8 || len(s.Advantages) != 8 || s.Experts != nil {
		t.Errorf("got %+v", short)
	}
	if c := (&CustomForwardBackward{Shape: April2026}).Shortened("p"); c.Shape != April2026 {
		t.Errorf("got %+v", c)
	}
	body := strings.Replace(older(LossCrossEntropy, "", `,"routed_experts":{"data":"AQACAAMABAA="}`), `"loss":`, `"payload_id":"p","loss":`, 1)
	if got := decoded(t, body); got.Samples[0].Experts != nil || got.PayloadID != "p" {
		t.Errorf("got %+v", got)
	}
}

func TestShapesHaveWords(t *testing.T) {
	for _, s := range []Shape{Current, April2026} {
		if got, err := ParseShape(s.String()); err != nil || got != s {
			t.Errorf("%s: got %v, %v", s, got, err)
		}
	}
	for _, word := range []string{"", "2026-4", "Current"} {
		if s, err := ParseShape(word); err == nil || !strings.Contains(err.Error(), "current, 2026-04") {
			t.Errorf("%q: got %v, %v", word, s, err)
		}
	}
	if got := Current.Losses(); !reflect.DeepEqual(got, Losses()) {
		t.Errorf("current: got %v", got)
	}
}
