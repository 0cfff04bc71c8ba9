package sandbox

import (
	"strings"
	"testing"

	"trainer/internal/wire"
)

func TestChoicesAreReadByName(t *testing.T) {
	for _, i := range AllChoices() {
		for _, v := range i.Values {
			c := Choices{}
			if err := c.Set(string(i.Choice) + "=" + v); err != nil || c[i.Choice] != v {
				t.Errorf("%s=%s: got %v, %v", i.Choice, v, c, err)
			}
		}
	}
	for text, want := range map[string]string{
		"failed_leavs=nothing": `did you mean "failed_leaves"`, "failed_leaves=nothin": `did you mean "nothing"`, "failed_leaves": "is not NAME=VALUE",
	} {
		if err := (Choices{}).Set(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
}

func TestAReusedKeyIsRefusedOrAnsweredAsBefore(t *testing.T) {
	for value, status := range map[string]int{"refuse": 422, keyOriginal: 200} {
		t.Run(value, func(t *testing.T) {
			_, c := open(t, Options{Choices: Choices{ReusedKey: value}})
			id := c.tiny()
			first := c.keyed(id, wire.KindOptimStep, "k", `{}`)
			got, b := c.do("POST", opsPath(id, wire.KindOptimStep), []byte(`{"adam_params":{}}`), wire.KeyHeader, "k")
			if got != status || status == 200 && !strings.Contains(string(b), first) {
				t.Errorf("another body: got %d %s, want %d", got, b, status)
			}
			c.refused(422, "POST", opsPath(id, wire.KindWeightsSync), syncNow, wire.KeyHeader, "k")
			c.wait(id, wire.KindOptimStep, first)
			if got := c.getSession(id).Step; got != 1 {
				t.Errorf("got %d steps, want 1", got)
			}
		})
	}
}

// Dividing at the optim-step is dividing every weight by the count of trained positions before.
func TestTheGradientIsDividedByTheTokensThatItIsOf(t *testing.T) {
	rows := []wire.Sample{row("hello"), row("a longer row"), row("third")}
	rows[1].Weights[2], rows[1].Weights[3] = 0, 0 // not trained, not counted
	step := func(c *client, id string) {
		// Without clipping, and with an eps that matters, Adam's step depends on the gradient's size.
		c.run(id, wire.KindOptimStep, `{"adam_params":{"learning_rate":0.01,"grad_clip_norm":0,"eps":0.01}}`, nil)
	}
	two := func(c *client, id string, rows []wire.Sample) {
		c.loss(id, "", rows[:2]...)
		c.loss(id, `,"forward_only":true`, rows[0]) // is no part of it
		c.loss(id, "", rows[2])
		step(c, id)
	}
	by := Choices{GradNormalization: perValidToken}
	divided := trainedBy(t, Options{Choices: by}, func(c *client, id string) { two(c, id, rows) })
	plain := trainedBy(t, Options{}, func(c *client, id string) { two(c, id, rows) })
	if divided == plain {
		t.Error("the choice changes nothing")
	}
	// A power of two is exact in every sum, so the weights are bit-equal.
	square := []wire.Sample{row("hello"), row("a longer row"), row("four5")}
	clear(square[1].Weights[8:]) // 4 + 8 + 4 are left
	scaled := make([]wire.Sample, len(square))
	for i, r := range square {
		scaled[i] = r
		scaled[i].Weights = nil
		for _, w := range r.Weights {
			scaled[i].Weights = append(scaled[i].Weights, w/16)
		}
	}
	got := trainedBy(t, Options{Choices: by}, func(c *client, id string) { two(c, id, square) })
	want := trainedBy(t, Options{}, func(c *client, id string) { two(c, id, scaled) })
	if got != want {
		t.Error("16 tokens: the weights are not those of weights divided by 16")
	}
	again := trainedBy(t, Options{Choices: by}, func(c *client, id string) {
		two(c, id, square)
		step(c, id) // nothing gathered: nothing to divide by
	})
	if again == got {
		t.Error("an optim-step without a gradient does not move the weights by Adam's moments")
	}
}

// Minus the weights is the gradient of cross-entropy, so a custom operation leaves what that leaves, and is divided alike.
func TestCustomGradientsAreLeftAndDividedAsOthersAre(t *testing.T) {
	rows := []wire.Sample{row("the first"), row("the second"), row("the third")}
	bare, gradients := make([]wire.Sample, len(rows)), make([][]float64, len(rows))
	for i, x := range rows {
		bare[i] = wire.Sample{Tokens: x.Tokens, Targets: x.Targets}
		for _, w := range x.Weights {
			gradients[i] = append(gradients[i], -w)
		}
	}
	o := func() Options {
		return Options{
			Choices: Choices{GradNormalization: perValidToken},
			Faults:  rules(t, "fail:on=forward-backward+custom-forward-backward,at=1,leaves=gradient"),
		}
	}
	step := `{"adam_params":{"learning_rate":0.01,"grad_clip_norm":0,"eps":0.01}}`
	want := trainedBy(t, o(), func(c *client, id string) {
		op := c.post(id, wire.KindForwardBackward, batch(t, "", rows...))
		c.wait(id, wire.KindForwardBackward, op.ID)
		c.loss(id, "", rows[2])
		c.run(id, wire.KindOptimStep, step, nil)
	})
	got := trainedBy(t, o(), func(c *client, id string) {
		op := c.post(id, wire.KindCustomForwardBackward, custom(t, "", gradients, bare...))
		if op := c.wait(id, wire.KindCustomForwardBackward, op.ID); op.Status != wire.OperationFailed {
			t.Errorf("got %+v, want FAILED", op)
		}
		c.custom(id, gradients[2:], bare[2])
		c.run(id, wire.KindOptimStep, step, nil)
	})
	if got != want {
		t.Error("other weights than by cross-entropy")
	}
}
