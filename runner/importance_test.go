package runner_test

import (
	"math"
	"slices"
	"testing"

	"trainer/runner"
)

// TestImportanceCap: where sampling returns other log-probabilities than the trainer has, each token's advantage is weighed by
// e^(trainer − sampler), at most the cap, in every pass over the batch; the ratio of the loss is to the trainer's own, of before
// the first one.
func TestImportanceCap(t *testing.T) {
	const limit, off = 1.5, 0.7 // e^0.7 is above the cap, e^-0.7 below
	b := newRollouts(t, "advantage.importance_cap=1.5", "rollout.num_iterations=2", "train.num_steps=4", "train.epochs=null",
		"eval.every=null", "eval.at_start=false", "eval.limit=null")
	b.onDisk(func(t *testing.T) {
		shift := func(op map[string]any) {
			for _, r := range op["output"].(map[string]any)["results"].([]any) {
				for _, s := range r.(map[string]any)["sequences"].([]any) {
					for i, v := range s.(map[string]any)["logprobs"].([]any) {
						s.(map[string]any)["logprobs"].([]any)[i] = v.(float64) + off*float64(i%3-1)
					}
				}
			}
		}
		line := &listening{next: &liar{next: b.server, ops: "sample", at: 1, reach: forever, do: final(shift)}, path: "/forward-backward"}
		if s, err := b.through(line); err != nil || s.Outcome != "complete" {
			t.Fatalf("%s, %v: %s", s.Outcome, err, b.warned.String())
		}
		judge(t, b.dir, b.store, true).hold(t, "the run")
		trained, old := line.trained(t), [][]float64{}
		lines, err := runner.ReadMetrics(b.dir)
		if err != nil || len(lines) != 4 {
			t.Fatal(len(lines), err)
		}
		for n, batch := range b.completions(t) {
			batch = slices.DeleteFunc(batch, func(c kept) bool { return !c.Trained })
			if len(batch) == 0 {
				continue
			}
			if len(trained) < 2 {
				t.Fatalf("batch %d is not trained twice", n+1)
			}
			for pass, request := range trained[:2] {
				sum, over, tokens := 0.0, 0, 0
				for i, x := range request {
					c := batch[i]
					lead := len(x.Tokens) - len(c.Tokens)
					for j, q := range c.Logprobs {
						own := q - off*float64(j%3-1)
						w := min(math.Exp(own-q), limit)
						if got := x.Logprobs[lead+j]; !same32(got, own) {
							t.Errorf("batch %d: sent as sampled %v, the trainer has %v", n+1, got, own)
						}
						if got := x.Advantages[lead+j]; !same32(got, w*c.Advantage) {
							t.Errorf("batch %d: advantage %v, want %v of %v", n+1, got, w, c.Advantage)
						}
						if sum, tokens = sum+w, tokens+1; w == limit {
							over++
						}
					}
					if pass == 0 {
						old = append(old, x.Logprobs)
					} else if !slices.Equal(x.Logprobs, old[i]) {
						t.Errorf("batch %d: the second pass is compared with other weights than the first", n+1)
					}
				}
				m := lines[2*n+pass]
				if !same32(m["importance/weight"], sum/float64(tokens)) || m["importance/capped_fraction"] != float64(over)/float64(tokens) || over == 0 {
					t.Errorf("batch %d: weight %v, capped %v; want %v and %v", n+1, m["importance/weight"], m["importance/capped_fraction"], sum/float64(tokens), float64(over)/float64(tokens))
				}
				if ratio := m["api/loss/ratio/mean"]; pass == 0 && !same32(ratio, 1) {
					t.Errorf("batch %d: the ratio begins at %v", n+1, ratio)
				}
			}
			trained, old = trained[2:], nil
		}
	})
}

// TestImportanceOfAnExactSampler: where sampling returns what the trainer has, every weight is 1; a batch that was sampled under
// the weights before the trainer's has others.
func TestImportanceOfAnExactSampler(t *testing.T) {
	for set, exact := range map[string]bool{"rollout.minibatches=1": true, "rollout.minibatches=2": true, "rollout.max_policy_lag=1": false} {
		b := newRollouts(t, set, "advantage.importance_cap=2")
		b.onDisk(func(t *testing.T) {
			if s, err := b.through(b.server); err != nil || s.Outcome != "complete" {
				t.Fatalf("%s, %v: %s", s.Outcome, err, b.warned.String())
			}
			judge(t, b.dir, b.store, true).hold(t, set)
			lines, err := runner.ReadMetrics(b.dir)
			if err != nil {
				t.Fatal(err)
			}
			seen, same := 0, true
			for _, m := range lines {
				if w, ok := m["importance/weight"]; ok { // else it had nothing to train on
					seen++
					same = same && same32(w, 1)
				}
			}
			if seen == 0 || same != exact {
				t.Errorf("%s: %d steps, all of weight 1: %v", set, seen, same)
			}
		})
	}
}
