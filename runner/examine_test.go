package runner_test

import (
	"context"
	"encoding/json"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"trainer/internal/sandbox"
	"trainer/runner"
)

// examined is newBench, or another recipe among files, whose evaluations also sample and grade what they have sampled.
func examined(t *testing.T, files map[string]string, set ...string) *bench {
	t.Helper()
	set = append([]string{"compute_config.num_generator_replicas=1", "eval.sampling_params={max_tokens: 5, temperature: 1.0}", "eval.group_size=2",
		"reward=[{type: length, params: {unit: chars, max: 1, ramp: 40}}]"}, set...)
	var b *bench
	if files == nil {
		b = newBench(t, set...)
	} else {
		b = benchOf(t, files, set...)
	}
	var err error
	if b.in.Graders, err = runner.OpenGraders(context.Background(), b.in.Recipe, nil, nil, false); err != nil {
		t.Fatal(err)
	}
	if err := b.in.CheckTargets(); err != nil {
		t.Fatal(err)
	}
	return b
}

const pairs = `{"prompt": "cat?", "chosen": "meow", "rejected": "woof"}
{"prompt": "dog?", "chosen": "woof", "rejected": "meow"}
{"prompt": "cow?", "chosen": "moo", "rejected": "quack"}
{"prompt": "duck?", "chosen": "quack", "rejected": "moo"}
`

// TestEvaluationsOfRowsMaySample: each one completes the held-out rows from what stands before their answers, under the weights of
// its step; the training is that of a run whose evaluations sample nothing, to the bit.
func TestEvaluationsOfRowsMaySample(t *testing.T) {
	pairs := map[string]string{"rows.jsonl": pairs, "r.yaml": "base_model: sandbox/bytes-tiny\nloss: {type: dpo}\nlora_config: {rank: 8, alpha: 16}\n" +
		"dataset: {train: rows.jsonl, validation: rows.jsonl}\noptimizer: {learning_rate: 3.0e-3}\ntrain: {batch_size: 2, epochs: 2}\neval: {every: 2, at_start: true}\n"}
	for name, files := range map[string]map[string]string{"messages": nil, "pairs": pairs} {
		t.Run(name, func(t *testing.T) {
			var plain outcome
			if files == nil {
				plain = newBench(t).measured()
			} else {
				plain = benchOf(t, files).measured()
			}
			b := examined(t, files)
			b.onDisk(func(t *testing.T) {
				if _, err := b.through(b.server); err != nil {
					t.Fatal(err)
				}
				got := b.outcome(t)
				if got.weights != plain.weights || got.lineage != plain.lineage {
					t.Error("another training than that of a run whose evaluations sample nothing")
				}
				sampled := regexp.MustCompile(`eval/(reward|reward/unscored|pass@\d|completion/\w+):\S+ `)
				if rest := sampled.ReplaceAllString(got.steps, ""); rest != plain.steps {
					t.Errorf("metrics\n%swant beside those of samples\n%s", rest, plain.steps)
				}
				b.completed(t)
			})
		})
	}
}

// completed holds the samples of each evaluation to the held-out rows and to the metrics.
func (b *bench) completed(t *testing.T) {
	t.Helper()
	lines, err := runner.ReadMetrics(b.dir)
	if err != nil {
		t.Fatal(err)
	}
	versions := map[int64]int{}
	for _, done := range slices.Sorted(maps.Keys(b.metric(t, "eval/reward"))) {
		data, err := os.ReadFile(runner.EvalSamples(b.dir, done))
		if err != nil {
			t.Fatal(err)
		}
		sum, n := 0.0, 0
		for line := range strings.Lines(string(data)) {
			var c struct {
				Prompt  string
				Row     int
				Reward  float64
				Version int64 `json:"weights_version"`
			}
			if err := json.Unmarshal([]byte(line), &c); err != nil {
				t.Fatal(err)
			}
			asked := []string{"cat", "dog", "cow", "duck", "bee"}[c.Row]
			if want := "<|begin|><|user|>" + asked + "?<|end|><|assistant|>"; c.Prompt != want {
				t.Errorf("step %d: prompt %q, want %q", done, c.Prompt, want)
			}
			versions[c.Version] = done
			sum += c.Reward
			n++
		}
		if got, want := b.metric(t, "eval/reward")[done], sum/float64(n); n != 2*b.in.Held.Len() || !same32(got, want) {
			t.Errorf("step %d: eval/reward %v of %d completions, their mean is %v", done, got, n, want)
		}
	}
	if len(versions) != len(b.metric(t, "eval/reward")) || len(versions) < 3 {
		t.Errorf("versions of the weights that sampled: %v, in %d lines of metrics", versions, len(lines))
	}
}

// TestKillEvaluationsThatSample cuts such a run at its requests and resumes it: the same metrics of the same samples, and the same
// weights.
func TestKillEvaluationsThatSample(t *testing.T) {
	b := examined(t, nil)
	b.sameWherever(3, 20, b.weights)
}

// TestAnEvaluationThatCannotSampleCostsNothing: the rows are scored all the same, and the run goes on.
func TestAnEvaluationThatCannotSampleCostsNothing(t *testing.T) {
	for _, fault := range []string{"fail:on=sample,rate=1,code=INTERNAL_ERROR", "fail:on=weights-sync,rate=1,code=INTERNAL_ERROR"} {
		b := examined(t, nil)
		b.against(sandbox.Options{}, func(t *testing.T) {
			if s, err := b.through(b.server); err != nil || s.Outcome != "complete" {
				t.Fatalf("%s: %s, %v", fault, s.Outcome, err)
			}
			if scored, sampled := b.metric(t, "eval/loss"), b.metric(t, "eval/reward"); len(scored) < 3 || len(sampled) > 0 {
				t.Errorf("%s: eval/loss %v, eval/reward %v", fault, scored, sampled)
			}
			if !strings.Contains(b.warned.String(), "evaluate: ") {
				t.Errorf("%s: warned of %s", fault, b.warned.String())
			}
		}, fault)
	}
}
