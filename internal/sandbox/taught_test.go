package sandbox

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"trainer/internal/sandbox/pretrained/curriculum"
	"trainer/internal/wire"
)

const taught = ownPrefix + "pretrained-tiny"

// lessonRow trains what the lesson trains.
func lessonRow(l curriculum.Lesson) wire.Sample {
	ids, trained := l.Encode()
	s := wire.Sample{Tokens: ids[:len(ids)-1], Targets: ids[1:]}
	for _, is := range trained[1:] {
		w := 0.0
		if is {
			w = 1
		}
		s.Weights = append(s.Weights, w)
	}
	return s
}

// ask is the body of a greedy sample of the lessons' last answers.
func ask(t testing.TB, lessons []curriculum.Lesson) string {
	t.Helper()
	type chunk map[string]map[string][]int32
	var inputs []map[string][]chunk
	for _, l := range lessons {
		inputs = append(inputs, map[string][]chunk{"chunks": {{"encoded_text": {"tokens": l.Prompt()}}}})
	}
	b, err := json.Marshal(inputs)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf(`{"model_inputs":%s%s}`, b, fmt.Sprintf(greedyOf, 24))
}

// right is the share of the lessons that the session's generators answer to the letter.
func (c *client) right(session string, lessons []curriculum.Lesson) float64 {
	c.t.Helper()
	n := 0
	for i, r := range c.sample(session, ask(c.t, lessons)).Results {
		got := r.Sequences[0]
		if got.StopReason == wire.StopStop && textOf(wire.SampledSequence{Tokens: got.Tokens[:len(got.Tokens)-1]}) == lessons[i].Answer() {
			n++
		}
	}
	return float64(n) / float64(len(lessons))
}

// on opens a session on a new resource.
func (c *client) on(base, resource, session string) string {
	c.t.Helper()
	r := c.resource(`{"base_model":"` + base + `"` + resource + `}`)
	return c.session(`{"model_resources_id":"` + r.ID + `"` + session + `}`).ID
}

func TestThePretrainedModelAnswersBeforeItIsTrained(t *testing.T) {
	_, c := open(t, Options{})
	var models wire.SupportedModels
	c.ok("GET", wire.PathModels, "", &models)
	if i := slices.IndexFunc(models.Data, func(m wire.SupportedModel) bool { return m.BaseModel == taught }); i < 0 || models.Data[i].StandIn {
		t.Errorf("supported-models has %s at %d: want it, and not as a stand-in", taught, i)
	}
	lessons := curriculum.Exam("copy", 40)
	for name, id := range map[string]string{
		"LoRA":         c.on(taught, "", `,"lora_config":{"rank":4}`),
		"full weights": c.on(taught, `,"lora_enabled":false`, ""),
	} {
		if got := c.right(id, lessons); got < 0.9 {
			t.Errorf("%s: %.2f of the words are copied, want 0.9", name, got)
		}
	}
}

// A ref stands for other weights of the shape, as it does on every model of the sandbox.
func TestARefReplacesThePretrainedWeights(t *testing.T) {
	_, c := open(t, Options{})
	x := lessonRow(curriculum.Exam("copy", 1)[0])
	loss := func(resource string) float64 {
		id := c.on(taught, resource, `,"lora_config":{"rank":4}`)
		out := c.loss(id, `,"forward_only":true`, x)
		return *out.Loss / out.Metrics["weight_sum"]
	}
	one, other := loss(`,"base_weights_ref":"together://ml_one"`), loss(`,"base_weights_ref":"together://ml_other"`)
	for _, got := range []float64{one, other} {
		if math.Abs(got-math.Log(272)) > 1 {
			t.Errorf("a ref: loss %v a token, want near ln(272) as of random weights", got)
		}
	}
	if own := loss(""); own > 0.2 || one == other {
		t.Errorf("losses %v of the pretrained weights and %v, %v of refs; want the first small, and the others apart", own, one, other)
	}
}

// shout is a task that no base was taught: two that the pretrained one was, at once.
func shout(seed uint64, n int) (lessons []curriculum.Lesson) {
	for i, l := range curriculum.Exam("reverse", 400)[seed*200:][:n] {
		w := l.Answer()
		l.Turns = []string{"Shout " + l.Key + " backwards.", strings.ToUpper(w)}
		l.Key = fmt.Sprint(i)
		lessons = append(lessons, l)
	}
	return lessons
}

// With a frozen head an adapter has nothing to work with on a random base.
func TestLoRALearnsANewTaskFromThePretrainedBaseAlone(t *testing.T) {
	_, c := open(t, Options{})
	const steps = 40
	trained, held := shout(0, 200), shout(1, 60)
	learn := func(base string) (loss, right float64) {
		id := c.on(base, "", `,"lora_config":{"rank":8,"alpha":16,"seed":1,"train_unembed":false}`)
		for s := range steps {
			var rows []wire.Sample
			for i := range 24 {
				rows = append(rows, lessonRow(trained[(24*s+i)%len(trained)]))
			}
			out := c.loss(id, "", rows...)
			loss = *out.Loss / out.Metrics["weight_sum"]
			c.run(id, wire.KindOptimStep, fmt.Sprintf(`{"adam_params":{"learning_rate":%g}}`, 5e-3*float64(steps-s)/steps), nil)
		}
		c.sync(id, wire.SyncSynchronous)
		return loss, c.right(id, held)
	}
	loss, right := learn(taught)
	drawn, none := learn(ownPrefix + "bytes-tiny")
	t.Logf("loss %.3f, %.2f right; from random weights %.3f, %.2f", loss, right, drawn, none)
	if loss > 0.3 || right < 0.3 {
		t.Errorf("after %d steps: loss %.3f, %.2f of new words right; want below 0.3, above 0.3", steps, loss, right)
	}
	if drawn < 1.5 || none > 0.05 {
		t.Errorf("from random weights: loss %.3f, %.2f right; the task does not tell the bases apart", drawn, none)
	}
}

func TestThePretrainedModelGoesOnAfterARestart(t *testing.T) {
	dir := t.TempDir()
	s, c := open(t, Options{Dir: dir})
	rows := []wire.Sample{lessonRow(curriculum.Exam("sum", 1)[0]), lessonRow(curriculum.Exam("story", 1)[0])}
	sessions := []string{c.on(taught, "", `,"lora_config":{"rank":4}`), c.on(taught, `,"lora_enabled":false`, "")}
	for _, id := range sessions {
		c.learn(id, 2, rows...)
	}
	want := hashes(t, s, sessions)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s, c = open(t, Options{Dir: dir})
	c.keys = 100
	for i, got := range hashes(t, s, sessions) {
		if got != want[i] {
			t.Errorf("session %d has other weights after the restart", i)
		}
	}
	for _, id := range sessions {
		c.learn(id, 1, rows...)
	}
	unbroken, d := open(t, Options{})
	var again []string
	for _, more := range [][2]string{{"", `,"lora_config":{"rank":4}`}, {`,"lora_enabled":false`, ""}} {
		id := d.on(taught, more[0], more[1])
		d.learn(id, 3, rows...)
		again = append(again, id)
	}
	for i, want := range hashes(t, unbroken, again) {
		if got := hashes(t, s, sessions[i:i+1])[0]; got != want {
			t.Errorf("session %d: other weights than without the restart", i)
		}
	}
}
