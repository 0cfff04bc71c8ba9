package together

import (
	"context"
	"strings"
	"testing"

	"trainer/internal/wire"
	"trainer/recipe"
	"trainer/runner"
)

// What is sent is read back by the reader of the server: nothing of a request is lost on the way.
func TestASampleSaysAllOfIt(t *testing.T) {
	seed := int64(1)<<53 + 1
	op := runner.Sample{Prompts: [][]int32{{1, 2}, {3}}, N: 4, Seed: &seed,
		Params: recipe.Sampling{MaxTokens: 7, Temperature: 0, TopP: 0.5, TopK: -1, Stop: []string{"\n", "\"ä"}}}
	p, err := New(Options{BaseURL: testBase}).Join(spec, "s").Prepare(context.Background(), op)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"model_inputs":[{"chunks":[{"encoded_text":{"tokens":[1,2]}}]},{"chunks":[{"encoded_text":{"tokens":[3]}}]}],"num_samples":4,` +
		`"sampling_params":{"max_tokens":7,"temperature":0,"top_p":0.5,"top_k":-1,"stop":["\u000a","\"ä"],"seed":"9007199254740993"}}`
	if got := string(p.Body); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	q, err := wire.DecodeSample(strings.NewReader(string(p.Body)), 0)
	if err != nil || *q.Params.Seed != seed || len(q.Params.Stop) != 2 || q.Params.Stop[1] != "\"ä" {
		t.Errorf("read back: %+v, %v", q, err)
	}
	for _, bad := range []runner.Sample{{N: 1}, {N: 1, Prompts: [][]int32{{}}}} {
		if p, err := New(Options{}).Join(spec, "s").Prepare(context.Background(), bad); err == nil {
			t.Errorf("%+v was encoded as %s", bad, p.Body)
		}
	}
}

func TestASampleThatBreaksItsPromises(t *testing.T) {
	ok := wire.SampledSequence{Tokens: []wire.Int64{5}, Logprobs: []float64{-1}, StopReason: wire.StopStop}
	for _, x := range []struct {
		name   string
		change func(*wire.SampledSequence)
		want   string
	}{
		{"a log-probability is missing", func(s *wire.SampledSequence) { s.Logprobs = nil }, "1 tokens and 0 logprobs"},
		{"an id is negative", func(s *wire.SampledSequence) { s.Tokens[0] = -1 }, "token 0 is -1"},
		{"an id is beyond 32 bits", func(s *wire.SampledSequence) { s.Tokens[0] = 1 << 40 }, "token 0 is 1099511627776"},
		{"no reason for the end", func(s *wire.SampledSequence) { s.StopReason = "" }, "stop_reason"},
	} {
		bad := ok
		bad.Tokens = []wire.Int64{5}
		x.change(&bad)
		_, err := samplesOf(&wire.SampleOutput{Results: []wire.SampleResult{{Sequences: []wire.SampledSequence{ok}}, {Sequences: []wire.SampledSequence{ok, bad}}}})
		if err == nil || !strings.Contains(err.Error(), "results[1].sequences[1]: "+x.want) {
			t.Errorf("%s: got %v", x.name, err)
		}
	}
}
