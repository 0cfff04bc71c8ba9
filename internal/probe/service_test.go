package probe_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"trainer/internal/probe"
	"trainer/internal/sandbox"
	"trainer/internal/wire"
	"trainer/runner"
)

type operation = wire.Operation[json.RawMessage]

// noisy is a service whose numbers differ a little from one time to the next, as those of parallel sums in few bits do.
type noisy struct {
	probe.Service
	share float64 // of a loss
	each  float64 // of a log-probability, in nats

	mu     sync.Mutex
	random *rand.Rand
}

func (n *noisy) Post(ctx context.Context, session string, kind wire.Kind, key string, body []byte) (operation, error) {
	op, err := n.Service.Post(ctx, session, kind, key, body)
	return n.shaken(kind, op), err
}

func (n *noisy) Settled(ctx context.Context, session string, kind wire.Kind, id string, most time.Duration) (operation, error) {
	op, err := n.Service.Settled(ctx, session, kind, id, most)
	return n.shaken(kind, op), err
}

func (n *noisy) shaken(kind wire.Kind, op operation) operation {
	if op.Output == nil {
		return op
	}
	var out any
	switch kind {
	case wire.KindForwardBackward:
		var o wire.ForwardBackwardOutput
		decode(*op.Output, &o)
		*o.Loss *= 1 + n.by(n.share)
		out = o
	case wire.KindSample:
		var o wire.SampleOutput
		decode(*op.Output, &o)
		for _, r := range o.Results {
			for _, s := range r.Sequences {
				n.shake(s.Logprobs)
			}
			n.shake(r.PromptLogprobs)
		}
		out = o
	default:
		return op
	}
	b, err := json.Marshal(out)
	if err != nil {
		panic(err)
	}
	op.Output = new(json.RawMessage(b))
	return op
}

func (n *noisy) by(most float64) float64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	return most * (2*n.random.Float64() - 1)
}

func (n *noisy) shake(list []float64) {
	for i := range list {
		list[i] += n.by(n.each)
	}
}

func decode(b []byte, v any) {
	if err := json.Unmarshal(b, v); err != nil {
		panic(err)
	}
}

// What differs a little does not decide, and what differs too much decides nothing rather than the wrong.
func TestNoiseDoesNotDecide(t *testing.T) {
	all := sandbox.Choices{}
	for _, c := range sandbox.AllChoices() {
		all[c.Choice] = c.Values[1]
	}
	for name, choices := range map[string]sandbox.Choices{"defaults": {}, "none of the defaults": all} {
		for _, share := range []float64{0.002, 0.05} {
			t.Run(fmt.Sprintf("%s/%g", name, share), func(t *testing.T) {
				on(t, sandbox.Options{Choices: choices}, create("sandbox/bytes-tiny", true, false, 1), func(b *bench) {
					for seed := range uint64(2) {
						s := &noisy{Service: b.client, share: share, each: share, random: rand.New(rand.NewPCG(seed, 1))}
						r, err := b.probe(b.t.Context(), s)
						if err != nil {
							t.Fatal(err)
						}
						for _, c := range sandbox.AllChoices() {
							got, how := value(t, r, string(c.Choice))
							want := c.Values[0]
							if v, ok := choices[c.Choice]; ok {
								want = v
							}
							if got != want && !(share > 0.01 && got == probe.Unknown) {
								t.Errorf("seed %d: %s: got %s, want %s: %s", seed, c.Choice, got, want, how)
							}
						}
						if share < 0.01 {
							if got, how := value(t, r, "trainer_order"); got != "in_order" {
								t.Errorf("seed %d: trainer_order: got %s: %s", seed, got, how)
							}
						}
					}
				})
			})
		}
	}
}

// picky is a service that answers some operations in its own way; answer gives nil for the others.
type picky struct {
	probe.Service
	answer func(kind wire.Kind, body string) (*operation, error)
}

func (p *picky) Post(ctx context.Context, session string, kind wire.Kind, key string, body []byte) (operation, error) {
	if op, err := p.answer(kind, string(body)); op != nil || err != nil {
		if op == nil {
			op = &operation{}
		}
		return *op, err
	}
	return p.Service.Post(ctx, session, kind, key, body)
}

func refusal() error {
	return &runner.Refused{Request: "POST operation", Status: 422, Type: "invalid_request_error", Message: "not like this"}
}

func isHuge(body string) bool { return strings.Contains(body, "3e+38") }

// A service that refuses one way to make a forward-backward fail is asked in the other; where none fails, nobody knows.
func TestWhatAFailedOneLeavesIsSeenInMoreThanOneWay(t *testing.T) {
	loss := func(body string) string {
		for _, l := range []wire.LossType{wire.LossCrossEntropy, wire.LossImportanceSampling} {
			if strings.Contains(body, string(l)) && isHuge(body) {
				return string(l)
			}
		}
		return ""
	}
	for _, c := range []struct {
		name, choice string
		answer       func(kind wire.Kind, body string) (*operation, error)
		want, how    string
	}{
		{"heavy weights are refused", "gradient", func(_ wire.Kind, body string) (*operation, error) {
			if loss(body) == string(wire.LossCrossEntropy) {
				return nil, refusal()
			}
			return nil, nil
		}, "gradient", "NON_FINITE_LOSS"},
		{"heavy weights are refused", "nothing", func(_ wire.Kind, body string) (*operation, error) {
			if loss(body) == string(wire.LossCrossEntropy) {
				return nil, refusal()
			}
			return nil, nil
		}, "nothing", "NON_FINITE_LOSS"},
		{"both are refused", "gradient", func(_ wire.Kind, body string) (*operation, error) {
			if loss(body) != "" {
				return nil, refusal()
			}
			return nil, nil
		}, probe.Unknown, "not like this"},
		{"an infinite loss is no failure", "gradient", func(_ wire.Kind, body string) (*operation, error) {
			if loss(body) != "" {
				return &operation{ID: "x", Status: wire.OperationCompleted, Output: new(json.RawMessage(`{"loss":1e39}`))}, nil
			}
			return nil, nil
		}, probe.Unknown, "did not fail"},
	} {
		t.Run(c.name+"/"+c.choice, func(t *testing.T) {
			o := sandbox.Options{Choices: sandbox.Choices{sandbox.FailedLeaves: c.choice}}
			on(t, o, create("sandbox/bytes-tiny", true, false, 0), func(b *bench) {
				r, err := b.probe(b.t.Context(), &picky{b.client, c.answer})
				if err != nil {
					t.Fatal(err)
				}
				if got, how := value(t, r, probe.FailedLeaves); got != c.want || !strings.Contains(how, c.how) {
					t.Errorf("got %s (%s), want %s (%s)", got, how, c.want, c.how)
				}
			})
		})
	}
}

// What a service does otherwise than the sandbox can is told, and not taken for one of its values.
func TestWhatNoChoiceStandsForIsUnknown(t *testing.T) {
	completed := func(output string) *operation {
		return &operation{ID: "x", Status: wire.OperationCompleted, Output: new(json.RawMessage(output))}
	}
	for _, c := range []struct {
		name, finding, how string
		answer             func(kind wire.Kind, body string) (*operation, error)
	}{
		{"a service without stop texts", probe.StopToken, "not like this", func(kind wire.Kind, body string) (*operation, error) {
			if kind == wire.KindSample && strings.Contains(body, `"stop"`) {
				return nil, refusal()
			}
			return nil, nil
		}},
		{"a stop that never comes", probe.StopToken, "none of 1 completions", func(kind wire.Kind, body string) (*operation, error) {
			if kind != wire.KindSample || !strings.Contains(body, `"stop"`) {
				return nil, nil
			}
			one := `{"sequences":[{"tokens":["5"],"logprobs":[-1],"stop_reason":"STOP_REASON_LENGTH"}],"policy_segments":[]}`
			none := strings.Repeat(`,{"sequences":[],"policy_segments":[]}`, 7)
			return completed(`{"results":[` + one + none + `]}`), nil
		}},
		{"results that are missing", probe.SampledLogprobs, "0 results to 1 prompts", func(kind wire.Kind, _ string) (*operation, error) {
			if kind == wire.KindSample {
				return completed(`{}`), nil
			}
			return nil, nil
		}},
		{"a model that always says the same", probe.SampledLogprobs, "1 different tokens", func(kind wire.Kind, body string) (*operation, error) {
			if kind == wire.KindSample {
				return completed(`{"results":[{"sequences":[{"tokens":["5"],"logprobs":[0],"stop_reason":"STOP_REASON_LENGTH"}],"policy_segments":[]}]}`), nil
			}
			return nil, nil
		}},
		{"steps that move nothing", probe.GradNormalization, "no step moves the loss", func(kind wire.Kind, _ string) (*operation, error) {
			if kind == wire.KindOptimStep {
				return completed(`{"step":"1"}`), nil
			}
			return nil, nil
		}},
		{"an eps that is refused", probe.GradNormalization, "not like this", func(kind wire.Kind, body string) (*operation, error) {
			if kind == wire.KindOptimStep && strings.Contains(body, `"eps":1000000`) {
				return nil, refusal()
			}
			return nil, nil
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			on(t, sandbox.Options{}, create("sandbox/bytes-tiny", true, false, 1), func(b *bench) {
				r, err := b.probe(b.t.Context(), &picky{b.client, c.answer})
				if err != nil {
					t.Fatal(err)
				}
				if got, how := value(t, r, c.finding); got != probe.Unknown || !strings.Contains(how, c.how) {
					t.Errorf("got %s (%s), want it unknown (%s)", got, how, c.how)
				}
				if got, how := value(t, r, probe.ReusedKey); got != "refuse" {
					t.Errorf("reused_key: got %s (%s): the others are not asked", got, how)
				}
			})
		})
	}
}
