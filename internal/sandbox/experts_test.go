package sandbox

import (
	"strings"
	"testing"

	"trainer/internal/wire"
	"trainer/loss"
)

// A key comes with a sequence of a mixture-of-experts model, and goes back with what is trained on it.
func TestRoutedExpertsAreKeyedAndReplayed(t *testing.T) {
	dir := t.TempDir()
	s, c := open(t, Options{Dir: dir})
	on := func(base string) string {
		return c.session(`{"model_resources_id":"` + c.resource(`{"base_model":"`+base+`"}`).ID + `","lora_config":{"rank":2}}`).ID
	}
	ask := prompt(`,"return_routed_experts":true,"num_samples":2,"sampling_params":{"max_tokens":3}`, "abc")
	dense, moe, other := on("Qwen/Qwen3-8B"), on("openai/gpt-oss-20b"), on("deepseek-ai/DeepSeek-V3.1")
	if got := c.sample(dense, ask).Results[0].Sequences[0].RoutedExpertsKey; got != "" {
		t.Errorf("a dense model gave the key %q", got)
	}
	if got := c.sample(moe, prompt(`,"sampling_params":{"max_tokens":3}`, "abc")).Results[0].Sequences[0].RoutedExpertsKey; got != "" {
		t.Errorf("unasked, the key %q came", got)
	}
	seqs := c.sample(moe, ask).Results[0].Sequences
	key := seqs[0].RoutedExpertsKey
	if key == "" || key == seqs[1].RoutedExpertsKey {
		t.Fatalf("got the keys %q and %q", key, seqs[1].RoutedExpertsKey)
	}
	tokens := len(seqs[0].Tokens) + 3
	// train is a row of n tokens under a key, sent as each of the operations that take one.
	train := func(c *client, session string, key string, n int, want int) {
		t.Helper()
		x := row(strings.Repeat("x", n+1))
		x.RoutedExpertsKey = key
		for kind, text := range map[wire.Kind]string{
			wire.KindForwardBackward:       body(t, &loss.CrossEntropy{}, "", x),
			wire.KindCustomForwardBackward: custom(t, "", [][]float64{make([]float64, n)}, x),
		} {
			c.keys++
			if want == 200 {
				c.run(session, kind, text, nil)
				continue
			}
			e := c.refused(want, "POST", opsPath(session, kind), text, wire.KeyHeader, "refused")
			if e.Param == nil || *e.Param != "samples[0].routed_experts_key" {
				t.Errorf("%s with %d tokens under %q: got %+v", kind, n, key, e)
			}
		}
	}
	train(c, moe, key, tokens-1, 200)   // what went through the layers
	train(c, moe, key, tokens, 200)     // and the last token
	train(c, moe, key, 2, 200)          // a part of it
	train(c, moe, key, tokens+1, 400)   // more than it covers
	train(c, moe, "", tokens+1, 200)    // without one
	train(c, dense, key, tokens-1, 400) // of another model
	train(c, other, key, tokens-1, 400)
	for _, bad := range []string{"rek_0", "rek_", "x", key + "0", key[:len(key)-1], strings.Replace(key, ".0.", ".1.", 1)} {
		train(c, moe, bad, 1, 400)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	keys := c.keys
	_, c = open(t, Options{Dir: dir})
	c.keys = keys
	train(c, moe, key, tokens-1, 200) // for as long as the folder
}
