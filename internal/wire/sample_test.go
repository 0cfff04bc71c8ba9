package wire

import (
	"bytes"
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"testing"
)

func TestASampleBodyNamesThePlaceOfItsFault(t *testing.T) {
	for _, tt := range []struct{ name, body, place string }{
		{"a list of numbers", `{"model_inputs":[1]}`, "model_inputs[0]"},
		{"a token that is a fraction", `{"model_inputs":[{"chunks":[{"encoded_text":{"tokens":[1,2.5]}}]}]}`, "model_inputs[0].chunks[0].encoded_text.tokens[1]"},
		{"more prompts than allowed", `{"model_inputs":[{"chunks":[]},{"chunks":[]},{"chunks":[]}]}`, "model_inputs[2]"},
		{"a count beyond 32 bits", `{"num_samples":3000000000}`, "num_samples"},
		{"a rate that is text", `{"sampling_params":{"top_p":"1"}}`, "sampling_params.top_p"},
		{"a seed beyond 64 bits", `{"sampling_params":{"seed":"9223372036854775808"}}`, "sampling_params.seed"},
		{"a seed that is a fraction", `{"sampling_params":{"seed":1.5}}`, "sampling_params.seed"},
		{"a stop that is a number", `{"sampling_params":{"stop":["a",1]}}`, "sampling_params.stop[1]"},
	} {
		_, err := DecodeSample(strings.NewReader(tt.body), 2)
		if err == nil || !strings.Contains(err.Error(), ": "+tt.place+": ") {
			t.Errorf("%s: got %v, want %s", tt.name, err, tt.place)
		}
	}
}

func TestASampleBodyIsReadAsItIs(t *testing.T) {
	q, err := DecodeSample(strings.NewReader(`{"model_inputs":[{"chunks":[{"encoded_text":{"tokens":[1,"2"]}},{"encoded_text":{"tokens":[3]}}]},
		{"chunks":[]}],"num_samples":4,"new":{"a":[1]},"prompt_logprobs":true,"topk_prompt_logprobs":5,"payload_id":"p",
		"sampling_params":{"max_tokens":7,"temperature":0.5,"top_p":0.9,"top_k":-1,"stop":["a","\u00e4"],"seed":"-42","new":null}}`), 0)
	if err != nil {
		t.Fatal(err)
	}
	want := &SampleRequest{
		Inputs: [][]int32{{1, 2, 3}, {}}, NumSamples: new(4), PromptLogprobs: true, TopPromptLogprobs: 5, PayloadID: "p",
		Params: SamplingParams{
			MaxTokens: new(7), Temperature: new(0.5), TopP: new(0.9), TopK: new(-1), Stop: []string{"a", "ä"}, Seed: new(int64(-42)),
		},
	}
	if !reflect.DeepEqual(q, want) {
		t.Errorf("got %+v, want %+v", q, want)
	}
}

func TestASampleOutputSurvivesItsJSON(t *testing.T) {
	out := &SampleOutput{Results: []SampleResult{{
		Sequences: []SampledSequence{
			{Tokens: []Int64{5, 151935}, Logprobs: []float64{-0.5, 0}, StopReason: StopStop, PromptCacheHitTokens: 3},
			{Tokens: []Int64{}, Logprobs: []float64{}, StopReason: StopLength, RoutedExpertsKey: "k"},
		},
		PolicySegments: []PolicySegment{{0, 0}, {7, 8}},
		PromptLogprobs: []float64{0, -2.25},
		TopLogprobs:    []TopLogprobs{{[]int32{}, []float64{}}, {[]int32{9, 8}, []float64{-1, -1.5}}},
	}, {Sequences: []SampledSequence{}, PolicySegments: []PolicySegment{}}}}
	for _, want := range []*SampleOutput{out, {PayloadID: "p"}} {
		b, err := AppendSampleOutput(nil, want)
		if err != nil {
			t.Fatal(err)
		}
		var got SampleOutput
		if err := json.Unmarshal(b, &got); err != nil || !reflect.DeepEqual(&got, want) {
			t.Errorf("got %+v (%v) by way of %s, want %+v", got, err, b, want)
		}
	}
	out.Results[0].TopLogprobs[1].Logprobs[1] = math.Inf(-1)
	dst := []byte("before")
	got, err := AppendSampleOutput(dst, out)
	if err == nil || !strings.Contains(err.Error(), "results[0].topk_prompt_logprobs[1].logprobs[1]") || !bytes.Equal(got, dst) {
		t.Errorf("an infinity: got %q, %v", got, err)
	}
}

func FuzzDecodeSample(f *testing.F) {
	for _, seed := range []string{
		`{"model_inputs":[{"chunks":[{"encoded_text":{"tokens":[1,"2"]}}]}],"sampling_params":{"seed":"1","stop":["x"]}}`,
		`{"sampling_params":{"temperature":1e400}}`, `{"num_samples":-0}`, `{"model_inputs":null,"sampling_params":null}`, `[]`, ``,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		q, err := DecodeSample(bytes.NewReader(b), 4)
		if err == nil && (len(q.Inputs) > 4 || !json.Valid(b)) {
			t.Errorf("%q gives %+v", b, q)
		}
	})
}
