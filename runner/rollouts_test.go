package runner_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"trainer/internal/grader"
	"trainer/internal/hub"
	"trainer/internal/sandbox"
	"trainer/recipe"
	"trainer/runner"
)

const prompts = `{"prompt":"cat?"}
{"prompt":"dog?"}
{"prompt":"cow?"}
{"prompt":"duck?"}
{"prompt":"bee?"}
`

// low pays the share of a completion's bytes that are below 64: what it is told by is in every completion, so that groups
// differ from the first step on.
type low struct{}

func (low) Grade(_ context.Context, c grader.Completion) (grader.Score, error) {
	n := 0
	for _, id := range c.Tokens {
		if id < 64 {
			n++
		}
	}
	return grader.Score{Value: float64(n) / float64(max(1, len(c.Tokens)))}, nil
}

// newRollouts is a bench of a loop that samples.
func newRollouts(t *testing.T, set ...string) *bench {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "r.yaml")
	text := "base_model: sandbox/bytes-tiny\nloss: {type: grpo}\nlora_config: {rank: 8, alpha: 16}\n" +
		"dataset: {train: rows.jsonl, validation: rows.jsonl}\noptimizer: {learning_rate: 5.0e-3}\n" +
		"rollout: {batch_size: 2, group_size: 4, sampling_params: {max_tokens: 6}}\nreward: [{type: length, params: {unit: chars, max: 1, ramp: 40}}]\n" +
		"train: {epochs: 2}\neval: {every: 2, at_start: true, limit: 2}\ncheckpoint: {every: 3}\n"
	for name, data := range map[string]string{"r.yaml": text, "rows.jsonl": prompts} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r, err := recipe.Load(path, set...)
	if err != nil {
		t.Fatal(err)
	}
	in, err := runner.Open(t.Context(), r, &hub.Hub{}, true)
	if err != nil {
		t.Fatal(err)
	}
	in.Graders.Set = grader.New([]grader.Entry{{Type: "low", Grader: low{}, Weight: 1}})
	p, err := runner.NewPlan(in)
	if err != nil {
		t.Fatal(err)
	}
	return &bench{t: t, in: in, plan: p}
}

// TestKillRolloutsAtEveryRequest cuts a run that samples at its requests, resumes it, and compares it with the unbroken one: the
// same rewards, the same losses, nothing left running. Which request meets which instant differs from life to life, since
// samples go side by side.
func TestKillRolloutsAtEveryRequest(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		stride int
		set    []string
	}{
		{"on policy", 13, nil},
		{"a batch ahead, two minibatches twice", 41, []string{"rollout.max_policy_lag=1", "rollout.minibatches=2", "rollout.num_iterations=2"}},
		{"seeded, dynamic", 41, []string{"rollout.seeded=true", "rollout.dynamic_sampling.enabled=true", "train.num_steps=4", "train.epochs=null"}},
		{"pipeline", 37, []string{"rollout.weight_sync_type=pipeline"}},
		{"weights of importance", 29, []string{"advantage.importance_cap=2", "rollout.minibatches=2", "rollout.num_iterations=2"}},
		{"KL in the loss", 23, []string{"loss.params.beta=0.1"}},
		{"KL in the reward, a batch ahead", 43, []string{"advantage.kl_coef=0.1", "rollout.max_policy_lag=1", "rollout.num_iterations=2"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newRollouts(t, c.set...)
			want, points := b.unbroken(), 0
			for die, over := 1, false; !over; die += sparse(c.stride) {
				for _, lost := range ways(die) {
					b.fresh(func(t *testing.T) {
						_, n, err := b.life(die, lost)
						if over = err == nil && n < die; over {
							return
						}
						points++
						b.resumes(t, fmt.Sprintf("request %d (lost %v)", die, lost), want)
					})
				}
			}
			t.Logf("%d points", points)
		})
	}
}

// TestRolloutsDieWithTheirDisk kills such a run, or cuts its power, at operations of its disk: the weights are those of the
// unbroken run bit for bit, in the session that it had.
func TestRolloutsDieWithTheirDisk(t *testing.T) {
	t.Parallel()
	for _, set := range [][]string{nil, {"rollout.max_policy_lag=1", "rollout.minibatches=2"}, {"loss.params.beta=0.1", "advantage.kl_coef=0.1"}, {"advantage.importance_cap=2", "rollout.num_iterations=2"}} {
		b := newRollouts(t, set...)
		want := b.measured()
		for i, how := range deaths {
			points, stride := 0, 8**diskStride
			for at, over := 1+i*stride/len(deaths), false; !over; at += sparse(stride) {
				b.onDisk(func(t *testing.T) {
					d := newMortal(t.TempDir(), uint64(at), b.dir)
					if over = !b.dies(t, d, how, at); !over {
						points++
						b.revives(t, fmt.Sprintf("%s operation %d", how, at), want)
					}
				})
			}
			t.Logf("%v, %s: %d points", set, how, points)
		}
	}
}

// TestRolloutsRollBack gives a session up in the middle: what follows the checkpoint is sampled again under weights that are
// its ancestors, or read where it was sampled under those, and the end is that of the unbroken run.
func TestRolloutsRollBack(t *testing.T) {
	t.Parallel()
	for _, set := range [][]string{nil, {"rollout.max_policy_lag=1"}, {"rollout.num_iterations=3"}, {"advantage.importance_cap=2", "rollout.num_iterations=2"}, {"loss.params.beta=0.1", "advantage.kl_coef=0.1"}} {
		b := newRollouts(t, set...)
		want := b.measured()
		b.against(sandbox.Options{}, func(t *testing.T) {
			if s, err := b.through(b.server); err != nil || s.Outcome != "complete" {
				t.Fatalf("%v: %s, %v: %s", set, s.Outcome, err, b.warned.String())
			}
			o := judge(t, b.dir, b.store, true)
			o.hold(t, fmt.Sprint(set))
			if len(o.begun()) != 2 {
				t.Errorf("%v: sessions begin at %v, want two", set, o.begun())
			}
			b.compare(t, want)
		}, failing)
	}
}

// TestSamplingFaults: what fails is asked for again; what is of other weights than the due ones is never learnt from.
func TestSamplingFaults(t *testing.T) {
	b := newRollouts(t)
	want := b.measured()
	for _, c := range []struct {
		name string
		do   func(*http.Request, pass) (*http.Response, error)
		warn string
	}{
		{"a sample fails", fails("INTERNAL_ERROR"), "INTERNAL_ERROR"},
		{"a sample is of other weights", final(func(op map[string]any) {
			for _, r := range op["output"].(map[string]any)["results"].([]any) {
				r.(map[string]any)["policy_segments"] = []any{map[string]any{"version": 7, "start_token": 0}}
			}
		}), "sampled under version 7 of the weights"},
		{"a sample does not say what it is of", final(func(op map[string]any) {
			for _, r := range op["output"].(map[string]any)["results"].([]any) {
				r.(map[string]any)["policy_segments"] = []any{}
			}
		}), "does not say which version"},
		{"a completion is missing", final(func(op map[string]any) {
			for _, r := range op["output"].(map[string]any)["results"].([]any) {
				r.(map[string]any)["sequences"] = r.(map[string]any)["sequences"].([]any)[1:]
			}
		}), "has not the 4 completions"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b.t = t
			b.onDisk(func(t *testing.T) {
				line := &liar{next: b.server, ops: "sample", at: 5, reach: 1, do: c.do}
				if s, err := b.through(line); err != nil || s.Outcome != "complete" {
					t.Fatalf("%s, %v", s.Outcome, err)
				}
				if !strings.Contains(b.warned.String(), c.warn) {
					t.Errorf("the warnings do not say it: %s", b.warned.String())
				}
				judge(t, b.dir, b.store, true).hold(t, c.name)
				b.compare(t, want)
			})
		})
	}
}

// TestStopRolloutsThenResume ends a run that samples in order at each step, and continues it: a rollout batch is trained to its
// end, so that what is saved has no samples of weights that are served no more.
func TestStopRolloutsThenResume(t *testing.T) {
	t.Parallel()
	b := newRollouts(t, "rollout.max_policy_lag=1", "rollout.num_iterations=2", "train.epochs=1")
	want := b.unbroken()
	for at := 1; at < len(b.plan.Rates); at++ {
		b.fresh(func(t *testing.T) {
			stop, ask := context.WithCancelCause(t.Context())
			defer ask(nil)
			c := client(b.server)
			w := runner.World{Backend: c, Resources: c, Dir: b.dir, Sandbox: true, Sinks: []runner.Sink{&asker{at, func() { ask(runner.ErrInterrupted) }}}}
			s, err := runner.Run(t.Context(), stop, b.in, b.plan, w)
			if err != nil && !errors.Is(err, runner.ErrInterrupted) {
				t.Fatalf("stop at step %d: %v", at, err)
			}
			if s.Done%2 != 0 || err != nil && (len(s.Saved) == 0 || s.Saved[0].Done != s.Done) {
				t.Fatalf("stop at step %d: %d steps done, saved %+v", at, s.Done, s.Saved)
			}
			b.resumes(t, fmt.Sprintf("stop at step %d", at), want)
		})
	}
}

// TestABatchTrainsTheSameHoweverItIsCut: whatever number of requests carries a step of samples, it is the step of one request. The
// second step goes over the same samples, under the weights that the first has made.
func TestABatchTrainsTheSameHoweverItIsCut(t *testing.T) {
	for name, set := range map[string][]string{
		"grpo":                        {"loss.type=grpo"},
		"grpo, a mean of sequences":   {"loss.type=grpo", "loss.params.agg_type=sequence_mean", "loss.params.ratio_type=sequence", "loss.params.beta=0.1"},
		"ppo":                         {"loss.type=ppo", "loss.reduction=token_mean"},
		"cispo":                       {"loss.type=cispo", "loss.reduction=sequence_mean"},
		"dro":                         {"loss.type=dro", "loss.params.beta=0.1"},
		"dppo":                        {"loss.type=dppo"},
		"importance_sampling":         {"loss.type=importance_sampling"},
		"importance_sampling, capped": {"loss.type=importance_sampling", "loss.reduction=token_mean", "advantage.importance_cap=2"},
	} {
		t.Run(name, func(t *testing.T) {
			cut := func(requests int) string {
				b := newRollouts(t, append([]string{"base_model=sandbox/pretrained-tiny", "rollout.sampling_params.max_tokens=12", "train.epochs=null", "train.num_steps=2", "rollout.num_iterations=2", "eval.every=null", "eval.at_start=false",
					"eval.at_end=false", fmt.Sprintf("train.gradient_accumulation=%d", requests)}, set...)...)
				return withoutAPI(b.unbroken())
			}
			whole := cut(1)
			for _, n := range []int{2, 3, 8} {
				near(t, fmt.Sprintf("%d requests", n), cut(n), whole)
			}
		})
	}
}
