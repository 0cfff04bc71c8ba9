package sandbox

import (
	"strings"
	"testing"

	"trainer/internal/wire"
)

// Minus the weights is the gradient of cross-entropy: both ways give the same weights, to the last bit.
func TestCustomGradientsDoWhatTheirLossDoes(t *testing.T) {
	rows := []wire.Sample{row("a loss of one's own"), row("xyzzy")}
	gradients := make([][]float64, len(rows))
	bare := make([]wire.Sample, len(rows))
	for i, x := range rows {
		bare[i] = wire.Sample{Tokens: x.Tokens, Targets: x.Targets}
		for _, w := range x.Weights {
			gradients[i] = append(gradients[i], -w)
		}
	}
	masked := make([]wire.Sample, len(rows))
	for i, x := range bare {
		masked[i] = x
		masked[i].Weights = make([]float64, len(x.Tokens))
	}
	s, c := open(t, Options{})
	after := func(backward func(id string)) [32]byte {
		id := c.tiny()
		for range 2 { // a gradient of two operations
			backward(id)
		}
		c.run(id, wire.KindOptimStep, `{}`, nil)
		hash, err := s.WeightsHash(id)
		if err != nil {
			t.Fatal(err)
		}
		return hash
	}
	want := after(func(id string) { c.loss(id, "", rows...) })
	for name, backward := range map[string]func(id string){
		"at once":                      func(id string) { c.custom(id, gradients, bare...) },
		"after scoring":                func(id string) { c.scores(id, bare...); c.custom(id, gradients, bare...) },
		"after scoring something else": func(id string) { c.scores(id, row("something else")); c.custom(id, gradients, bare...) },
		"under weights of 0":           func(id string) { c.custom(id, gradients, masked...) },
	} {
		if after(backward) != want {
			t.Errorf("%s: other weights than those of cross-entropy", name)
		}
	}
}

// custom is a custom-forward-backward; its output is an empty object.
func (c *client) custom(session string, gradients [][]float64, rows ...wire.Sample) {
	c.t.Helper()
	var out map[string]any
	c.run(session, wire.KindCustomForwardBackward, custom(c.t, "", gradients, rows...), &out)
	if out == nil || len(out) != 0 {
		c.t.Errorf("output: got %v, want an empty object", out)
	}
}

// The two calls of a loss of one's own, ½Σℓ², whose derivative by ℓ is ℓ.
func TestCustomGradientsAreTheDerivative(t *testing.T) {
	rows := []wire.Sample{row("abcabc"), row("xyzzy")}
	value := func(c *client, id string) float64 {
		sum := 0.0
		for _, r := range c.scores(id, rows...) {
			for _, l := range r {
				sum += l * l / 2
			}
		}
		return sum
	}
	checkDescent(t, "½Σℓ²", func(c *client, id string) { c.custom(id, c.scores(id, rows...), rows...) }, value)
}

func TestCustomBodiesAreRefusedByName(t *testing.T) {
	_, c := open(t, Options{})
	id := c.tiny()
	whole := custom(t, "", [][]float64{{1, -1}}, row("abc"))
	both := row("abc")
	both.Mask = []float64{1, 1}
	bad := row("abc")
	bad.Targets[1] = 300
	for _, tt := range []struct{ name, body, param string }{
		{"no samples", `{"gradients":[]}`, "samples"},
		{"no gradients", custom(t, "", nil, row("abc")), "gradients"},
		{"a gradient too few", custom(t, "", [][]float64{{1, 1}}, row("abc"), row("abc")), "gradients"},
		{"a gradient that is too short", custom(t, "", [][]float64{{1}}, row("abc")), "gradients[0]"},
		{"a gradient of another dtype", strings.Replace(whole, "D_TYPE_FLOAT32", "D_TYPE_INT64", 1), "gradients[0]"},
		{"a gradient beyond float32", strings.Replace(whole, "[1,-1]", "[1,-1e39]", 1), "gradients[0].data[1]"},
		{"weights beside a mask", custom(t, "", [][]float64{{1, 1}}, both), "samples[0].loss_fn_inputs.mask"},
		{"a target outside of the vocabulary", custom(t, "", [][]float64{{1, 1}}, bad), "samples[0].loss_fn_inputs.target_tokens"},
		{"no targets", strings.Replace(whole, "target_tokens", "targets", 1), "samples[0].loss_fn_inputs.target_tokens"},
		{"a payload that was never uploaded", custom(t, `,"payload_id":"x"`, [][]float64{{1, -1}}, row("abc")), "payload_id"},
	} {
		want := 400
		if tt.param == "payload_id" {
			want = 404
		}
		e := (&client{t: t, http: c.http}).refused(want, "POST", opsPath(id, wire.KindCustomForwardBackward), tt.body, wire.KeyHeader, tt.name)
		if e.Param == nil || *e.Param != tt.param {
			t.Errorf("%s: got %+v, want the place %s", tt.name, e, tt.param)
		}
	}
}

func TestALargeCustomBodyIsUploaded(t *testing.T) {
	s, c := open(t, Options{})
	a, b := c.tiny(), c.tiny()
	whole := &wire.CustomForwardBackward{
		Samples: []wire.Sample{row("a longer body")}, Gradients: [][]float64{{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}},
	}
	text := custom(t, "", whole.Gradients, whole.Samples...)
	var up wire.UploadURL
	c.ok("POST", wire.PathSessions+"/"+a+"/payloads/upload-url", "", &up)
	c.ok("PUT", up.UploadURL, text, nil)
	short, err := wire.AppendCustomForwardBackward(nil, whole.Shortened(up.PayloadID))
	if err != nil {
		t.Fatal(err)
	}
	c.run(a, wire.KindCustomForwardBackward, string(short), nil)
	c.run(b, wire.KindCustomForwardBackward, text, nil)
	var hashes [2][32]byte
	for i, id := range []string{a, b} {
		c.run(id, wire.KindOptimStep, `{}`, nil)
		if hashes[i], err = s.WeightsHash(id); err != nil {
			t.Fatal(err)
		}
	}
	if hashes[0] != hashes[1] {
		t.Error("an upload trains otherwise than the same body inline")
	}
}
