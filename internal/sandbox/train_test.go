package sandbox

import (
	"fmt"
	"math"
	"testing"

	"trainer/internal/wire"
)

func TestTrainingLowersTheLoss(t *testing.T) {
	_, c := open(t, Options{})
	id := c.tiny()
	rows := []wire.Sample{row("the capital of france is paris"), row("the capital of italy is rome")}
	first := c.loss(id, "", rows...)
	var step wire.OptimStepOutput
	c.run(id, wire.KindOptimStep, `{"adam_params":{"learning_rate":0.01}}`, &step)
	if *step.Step != 1 {
		t.Errorf("step: got %d, want 1", *step.Step)
	}
	for range 39 {
		c.loss(id, "", rows...)
		c.run(id, wire.KindOptimStep, `{"adam_params":{"learning_rate":0.01}}`, &step)
	}
	last := c.loss(id, `,"forward_only":true`, rows...)
	if want := math.Log(272) * first.Metrics["weight_sum"]; math.Abs(*first.Loss-want) > want/4 {
		t.Errorf("first loss: got %v, want near ln(272) a token, %v", *first.Loss, want)
	}
	if *last.Loss > *first.Loss/2 {
		t.Errorf("loss after 40 steps: got %v, want less than half of %v", *last.Loss, *first.Loss)
	}
	s := c.getSession(id)
	if s.Step != 40 || s.PolicyState.TrainerStep != 40 || s.PolicyState.TargetWeightsVersion != 0 {
		t.Errorf("session after 40 steps: got step %d and %+v", s.Step, s.PolicyState)
	}
}

// An optimiser step of Adam with an eps far above the gradient is plain descent: the weights move by −rate/eps·g. So the
// loss falls at the rate |g|², and when g is clipped to the norm c at the rate c·|g|. Both rates are read off the loss
// that forward_only returns; they fit together only if g is the derivative of that loss by the weights that it moves.
func TestGradientsAreTheDerivativeOfTheLoss(t *testing.T) {
	rows := []wire.Sample{row("abcabcabc"), row("xyzzy")}
	for _, tt := range []struct{ name, resource, session string }{
		{"lora", `"base_model":"sandbox/bytes-tiny"`, `,"lora_config":{"rank":4,"alpha":8,"seed":3}`},
		{"full weights", `"base_model":"sandbox/bytes-tiny","lora_enabled":false`, ``},
		{"a stand-in", `"base_model":"Qwen/Qwen3-8B","lora_enabled":false`, ``},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, c := open(t, Options{})
			// after is the loss after one step of the size delta from the same start.
			after := func(delta, clip float64) float64 {
				r := c.resource("{" + tt.resource + "}")
				id := c.session(`{"model_resources_id":"` + r.ID + `"` + tt.session + `}`).ID
				c.loss(id, "", rows...)
				const eps = 1e6
				c.run(id, wire.KindOptimStep, fmt.Sprintf(
					`{"adam_params":{"learning_rate":%g,"beta1":0,"beta2":0,"eps":%g,"grad_clip_norm":%g}}`, delta*eps, eps, clip), nil)
				return *c.loss(id, `,"forward_only":true`, rows...).Loss
			}
			start := after(0, 0)
			// slope extrapolates the rate of descent at 0 from steps of delta, delta/2 and delta/4.
			slope := func(delta, clip float64) float64 {
				rate := func(d float64) float64 { return (start - after(d, clip)) / d }
				a, b, e := rate(delta), rate(delta/2), rate(delta/4)
				ab, be := 2*b-a, 2*e-b
				return (4*be - ab) / 3
			}
			const clip = 0.5
			whole := slope(2e-4, 0)
			norm := math.Sqrt(whole)
			clipped := slope(2e-4*norm/clip, clip)
			if math.Abs(clipped/(clip*norm)-1) > 0.01 {
				t.Errorf("descent: %v along g, %v along g clipped to %v; want the second to be %v", whole, clipped, clip, clip*norm)
			}
		})
	}
}

func TestForwardOnlyChangesNothing(t *testing.T) {
	s, c := open(t, Options{})
	id := c.tiny()
	r := row("hello")
	c.loss(id, "", r)
	before := c.loss(id, `,"forward_only":true`, r)
	c.run(id, wire.KindOptimStep, `{}`, nil)
	one, err := s.WeightsHash(id)
	if err != nil {
		t.Fatal(err)
	}
	other := c.tiny()
	c.loss(other, "", r)
	c.run(other, wire.KindOptimStep, `{}`, nil)
	two, err := s.WeightsHash(other)
	if err != nil {
		t.Fatal(err)
	}
	if one != two {
		t.Errorf("a forward_only before the step changed the weights")
	}
	if before.Loss == nil || before.Logprobs != nil {
		t.Errorf("forward_only: got %+v, want a loss without outputs", before)
	}
}

func TestOutputsAreZeroWhereTheLossLeavesAPositionOut(t *testing.T) {
	_, c := open(t, Options{})
	r := row("hello")
	r.Weights = []float64{0, 1, 0, 0.5}
	out := c.loss(c.tiny(), `,"return_loss_fn_outputs":true`, r)
	if len(out.Logprobs) != 1 || len(out.Logprobs[0]) != 4 {
		t.Fatalf("logprobs: got %v, want one row of 4", out.Logprobs)
	}
	l := out.Logprobs[0]
	if l[0] != 0 || l[2] != 0 || l[1] >= 0 || l[3] >= 0 {
		t.Errorf("logprobs: got %v, want 0 at 0 and 2 and a log-probability elsewhere", l)
	}
	if want := -l[1] - 0.5*l[3]; math.Abs(*out.Loss-want) > 1e-12 {
		t.Errorf("loss: got %v, want %v", *out.Loss, want)
	}
}

func TestALossThatIsNotFiniteFailsAndAddsNothing(t *testing.T) {
	s, c := open(t, Options{})
	id := c.tiny()
	c.loss(id, "", row("hello"))
	huge := row("hello")
	for i := range huge.Weights {
		huge.Weights[i] = 3e38
	}
	op := c.wait(id, wire.KindForwardBackward, c.post(id, wire.KindForwardBackward, batch(t, "", huge)).ID)
	if op.Status != wire.OperationFailed || op.Error == nil || op.Error.Code != wire.CodeNonFiniteLoss || op.Output != nil {
		t.Fatalf("got %+v, want FAILED with NON_FINITE_LOSS", op)
	}
	c.run(id, wire.KindOptimStep, `{}`, nil)
	got, err := s.WeightsHash(id)
	if err != nil {
		t.Fatal(err)
	}
	other := c.tiny()
	c.loss(other, "", row("hello"))
	c.run(other, wire.KindOptimStep, `{}`, nil)
	if want, err := s.WeightsHash(other); err != nil || got != want {
		t.Errorf("the failed operation left something behind (%v)", err)
	}
}

func TestAStandInTrainsUnderTheModelsOwnIds(t *testing.T) {
	_, c := open(t, Options{})
	r := c.resource(`{"base_model":"Qwen/Qwen3-8B"}`)
	id := c.session(`{"model_resources_id":"` + r.ID + `","lora_config":{"rank":4}}`).ID
	x := wire.Sample{Tokens: []int32{1, 151935, 75000}, Targets: []int32{151935, 75000, 0}, Weights: []float64{1, 1, 1}}
	out := c.loss(id, "", x)
	if want := 3 * math.Log(151936); math.Abs(*out.Loss-want) > want/4 {
		t.Errorf("loss: got %v, want near %v", *out.Loss, want)
	}
	e := c.refused(400, "POST", opsPath(id, wire.KindForwardBackward), batch(t, "",
		wire.Sample{Tokens: []int32{151936}, Targets: []int32{0}, Weights: []float64{1}}), wire.KeyHeader, "k")
	if e.Param == nil || *e.Param != "samples[0].model_input" {
		t.Errorf("param: got %v", e.Param)
	}
}

func TestSessionsTrainSideBySideAndAlike(t *testing.T) {
	s, c := open(t, Options{Dir: t.TempDir()})
	r := c.resource(`{"base_model":"sandbox/bytes-tiny"}`)
	ids := make([]string, 5)
	t.Run("all", func(t *testing.T) {
		for i := range ids {
			t.Run(fmt.Sprint(i), func(t *testing.T) {
				t.Parallel()
				c := &client{t: t, http: s, keys: 1000 * (i + 1)}
				ids[i] = c.session(`{"model_resources_id":"` + r.ID + `","lora_config":{"rank":4,"seed":1}}`).ID
				for range 10 {
					// Both in flight: they run in the order in which they were accepted.
					c.post(ids[i], wire.KindForwardBackward, batch(t, "", row("side by side")))
					op := c.post(ids[i], wire.KindOptimStep, `{}`)
					c.wait(ids[i], wire.KindOptimStep, op.ID)
				}
			})
		}
	})
	want, err := s.WeightsHash(ids[0])
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range ids[1:] {
		if got, err := s.WeightsHash(id); err != nil || got != want {
			t.Errorf("session %s: other weights than the first one's (%v)", id, err)
		}
	}
}
