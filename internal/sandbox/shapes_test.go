package sandbox

import (
	"reflect"
	"strings"
	"testing"

	"trainer/internal/wire"
	"trainer/loss"
)

// shaped is the body of a forward-backward in a shape, as body is in the current one.
func shaped(t testing.TB, shape wire.Shape, l loss.Loss, flags string, rows ...wire.Sample) string {
	t.Helper()
	config, err := wire.FromLoss(l)
	if err != nil {
		t.Fatal(err)
	}
	b, err := wire.AppendForwardBackward(nil, &wire.ForwardBackward{Shape: shape, Loss: config, Samples: rows})
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSuffix(string(b), "}") + flags + "}"
}

// uploaded stores a body for a session, and returns the id to name it by.
func (c *client) uploaded(session, body string) string {
	c.t.Helper()
	var up wire.UploadURL
	c.ok("POST", wire.PathSessions+"/"+session+"/payloads/upload-url", "", &up)
	c.ok("PUT", up.UploadURL, body, nil)
	return up.PayloadID
}

// Whichever shape says it, inline or uploaded, the same comes back and the same is trained, to the last bit.
func TestBothShapesTrainTheSame(t *testing.T) {
	losses := map[string]loss.Loss{"cross_entropy": &loss.CrossEntropy{}}
	for name, l := range policies {
		if name != "dppo" { // which the older shape lacks
			losses[name] = l
		}
	}
	const flags = `,"return_loss_fn_outputs":true`
	rows := []wire.Sample{policyRow("the policy moved on"), policyRow("abc")}
	for name, l := range losses {
		s, c := open(t, Options{})
		train := func(post func(id string) string) (out wire.ForwardBackwardOutput, hash [32]byte) {
			id := c.tiny()
			for range 2 {
				c.run(id, wire.KindForwardBackward, post(id), &out)
				c.run(id, wire.KindOptimStep, `{}`, nil)
			}
			hash, err := s.WeightsHash(id)
			if err != nil {
				t.Fatal(err)
			}
			return out, hash
		}
		want, wantHash := train(func(string) string { return body(t, l, flags, rows...) })
		for way, post := range map[string]func(id string) string{
			"inline": func(string) string { return shaped(t, wire.April2026, l, flags, rows...) },
			"uploaded": func(id string) string {
				whole := shaped(t, wire.April2026, l, "", rows...)
				return shaped(t, wire.April2026, l, flags+`,"payload_id":"`+c.uploaded(id, whole)+`"`, policyRow("short"))
			},
			"uploaded, and named in the current shape": func(id string) string {
				whole := shaped(t, wire.April2026, l, "", rows...)
				return body(t, l, flags+`,"payload_id":"`+c.uploaded(id, whole)+`"`, policyRow("short"))
			},
		} {
			got, hash := train(post)
			if !reflect.DeepEqual(got, want) {
				t.Errorf("%s, %s: got %+v, want %+v", name, way, got, want)
			}
			if hash != wantHash {
				t.Errorf("%s, %s: other weights than those of the current shape", name, way)
			}
		}
	}
}

func TestCustomGradientsInTheOlderShape(t *testing.T) {
	x := row("a loss of one's own")
	gradients := [][]float64{make([]float64, len(x.Tokens))}
	for t := range gradients[0] {
		gradients[0][t] = 0.5 - float64(t%3)
	}
	older, err := wire.AppendCustomForwardBackward(nil, &wire.CustomForwardBackward{Shape: wire.April2026, Samples: []wire.Sample{x}, Gradients: gradients})
	if err != nil {
		t.Fatal(err)
	}
	s, c := open(t, Options{})
	var hashes [2][32]byte
	for i, text := range []string{custom(t, "", gradients, x), string(older)} {
		id := c.tiny()
		c.run(id, wire.KindCustomForwardBackward, text, nil)
		c.run(id, wire.KindOptimStep, `{}`, nil)
		if hashes[i], err = s.WeightsHash(id); err != nil {
			t.Fatal(err)
		}
	}
	if hashes[0] != hashes[1] {
		t.Error("the shapes train otherwise")
	}
	e := c.refused(400, "POST", opsPath(c.tiny(), wire.KindCustomForwardBackward), strings.Replace(string(older), `"weights":`, `"grpo_inputs":{},"weights":`, 1), wire.KeyHeader, "k")
	if e.Param == nil || *e.Param != "samples[0].loss_inputs.grpo_inputs" {
		t.Errorf("an object of a loss: got %+v", e)
	}
}

// A body as the page of that shape has it, by hand: what was accepted is found again by its bytes after a restart, and
// experts, which no model here has, change nothing.
func TestTheOlderShapeSurvivesARestart(t *testing.T) {
	const inputs = `"model_input":{"chunks":[{"encoded_text":{"tokens":["104",101]}}]},"loss_inputs":{"target_tokens":{"data":[101,"108"],"dtype":"D_TYPE_INT64"},` +
		`"grpo_inputs":{"advantages":{"data":[1,-0.5],"dtype":"D_TYPE_BFLOAT16"},"logprobs":{"data":[-5.5,-5.75]}}}`
	text := func(more string) string {
		return `{"samples":[{` + inputs + more + `}],"loss":{"type":"LOSS_TYPE_GRPO","grpo_params":{"agg_type":"GRPO_LOSS_AGGREGATION_TYPE_TOKEN_MEAN","ratio_type":"GRPO_LOSS_RATIO_TYPE_SEQUENCE"}}}`
	}
	dir := t.TempDir()
	s, err := Open(Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	c := &client{t: t, http: s}
	var hashes [3][32]byte
	var id string
	for i, more := range []string{"", `,"routed_experts":{"data":"AQACAAMABAA=","shape":["2",1,2]}`} {
		id = c.tiny()
		c.run(id, wire.KindForwardBackward, text(more), nil)
		c.run(id, wire.KindOptimStep, `{}`, nil)
		if hashes[i], err = s.WeightsHash(id); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s, _ = open(t, Options{Dir: dir})
	if hashes[2], err = s.WeightsHash(id); err != nil {
		t.Fatal(err)
	}
	if hashes[0] != hashes[1] || hashes[1] != hashes[2] {
		t.Errorf("without experts %x, with them %x, after a restart %x", hashes[0], hashes[1], hashes[2])
	}
}

// What is wrong with a body is said in the words that it was sent in.
func TestTheOlderShapeIsRefusedInItsOwnWords(t *testing.T) {
	_, c := open(t, Options{})
	id := c.tiny()
	grpo := shaped(t, wire.April2026, policies["grpo"], "", policyRow("abcd"))
	entropy := shaped(t, wire.April2026, &loss.CrossEntropy{}, "", policyRow("abcd"))
	change := func(text, old, with string) string {
		if !strings.Contains(text, old) {
			t.Fatalf("%s is not in %s", old, text)
		}
		return strings.Replace(text, old, with, 1)
	}
	const at = "samples[0].loss_inputs."
	for _, tt := range []struct{ name, body, param string }{
		{"both shapes", change(grpo, `"loss_inputs":`, `"loss_fn_inputs":{},"loss_inputs":`), "samples[0].loss_inputs"},
		{"the object of another loss", change(shaped(t, wire.April2026, policies["ppo"], "", policyRow("abcd")), "ppo_inputs", "dro_inputs"), at + "dro_inputs"},
		{"no object", change(grpo, "grpo_inputs", "inputs"), at + "grpo_inputs"},
		{"no log-probabilities", change(grpo, `"logprobs"`, `"probs"`), at + "grpo_inputs.logprobs"},
		{"no advantages", change(grpo, `"advantages"`, `"benefits"`), at + "grpo_inputs.advantages"},
		{"a KL term without a reference", change(grpo, `"reference_logprobs"`, `"future"`), at + "grpo_inputs.reference_logprobs"},
		{"more references than tokens", change(grpo, `"reference_logprobs":{"data":[`, `"reference_logprobs":{"data":[0,`), at + "grpo_inputs.reference_logprobs"},
		{"no targets", change(grpo, "target_tokens", "targets"), at + "target_tokens"},
		{"fewer targets than tokens", change(grpo, `"target_tokens":{"data":[98,`, `"target_tokens":{"data":[`), at + "target_tokens"},
		{"a target outside of the vocabulary", change(grpo, `"target_tokens":{"data":[98,`, `"target_tokens":{"data":["272",`), at + "target_tokens"},
		{"a target that is no number", change(grpo, `"target_tokens":{"data":[98,`, `"target_tokens":{"data":["b",`), at + "target_tokens.data[0]"},
		{"cross-entropy without weights", change(entropy, `"weights"`, `"future"`), at + "weights"},
		{"a weight below 0", change(entropy, `"weights":{"data":[0,`, `"weights":{"data":[-1,`), at + "weights"},
		{"a mask", change(entropy, `"weights"`, `"mask"`), at + "mask"},
		{"floats as integers", change(grpo, `"advantages":{"data":[1,0.5,0],"dtype":"D_TYPE_FLOAT32"`, `"advantages":{"data":[1,0,0],"dtype":"D_TYPE_INT64"`), at + "grpo_inputs.advantages"},
		{"a dtype of the current shape", change(entropy, `"D_TYPE_INT64"`, `"int64"`), at + "target_tokens"},
		{"dppo", change(grpo, `"LOSS_TYPE_GRPO"`, `"LOSS_TYPE_DPPO"`), "loss.type"},
		{"no loss type", change(grpo, `"type":`, `"kind":`), "loss.type"},
		{"a parameter that the loss does not have", change(grpo, `"agg_type"`, `"delta_low":1,"agg_type"`), "loss.grpo_params.delta_low"},
		{"experts that are no base64", change(entropy, `"loss_inputs"`, `"routed_experts":{"data":"?","shape":[3,1,1]},"loss_inputs"`), "samples[0].routed_experts.data"},
		{"experts of a shorter sample", change(entropy, `"loss_inputs"`, `"routed_experts":{"data":"AQA=","shape":[1,1,1]},"loss_inputs"`), "samples[0].routed_experts.shape"},
	} {
		e := (&client{t: t, http: c.http}).refused(400, "POST", opsPath(id, wire.KindForwardBackward), tt.body, wire.KeyHeader, tt.name)
		if e.Param == nil || *e.Param != tt.param || !strings.Contains(e.Message, lastPart(tt.param)) {
			t.Errorf("%s: got %+v %v, want the place %s", tt.name, e.Message, e.Param, tt.param)
		}
	}
	broken := c.uploaded(id, change(grpo, `"logprobs"`, `"probs"`))
	e := c.refused(400, "POST", opsPath(id, wire.KindForwardBackward), batch(t, `,"payload_id":"`+broken+`"`, row("abc")), wire.KeyHeader, "broken")
	if e.Param == nil || *e.Param != at+"grpo_inputs.logprobs" {
		t.Errorf("an uploaded body: got %+v", e)
	}
	if got := c.getSession(id); got.Step != 0 {
		t.Errorf("session after all refusals: got %+v", got)
	}
	if e := c.refused(400, "POST", opsPath(id, wire.KindForwardBackward), change(grpo, "GRPO", "DPPO"), wire.KeyHeader, "way"); !strings.Contains(e.Message, "loss_fn_inputs") {
		t.Errorf("dppo: %s does not name the way out", e.Message)
	}
}
