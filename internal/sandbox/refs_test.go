package sandbox

import (
	"slices"
	"strings"
	"testing"

	"trainer/internal/wire"
)

// A ref to a model that was registered here stands for its weights, in a later life too; one of a stranger for weights of its own.
func TestTrainingStartsFromARegisteredModel(t *testing.T) {
	dir := t.TempDir()
	s, c := open(t, Options{Dir: dir})
	x := row("hello there")
	train := func(create, session string) (id string, a wire.InferenceRegistration) {
		id = c.session(`{"model_resources_id":"` + c.resource(create).ID + `"` + session + `}`).ID
		c.learn(id, 2, x)
		var saved wire.InferenceCheckpointOutput
		c.run(id, wire.KindInferenceCheckpoint, "", &saved)
		return id, *saved.Checkpoint.Registration
	}
	const full = `{"base_model":"sandbox/bytes-tiny","lora_enabled":false`
	first, model := train(full+`}`, "")
	want := c.scores(first, x)[0]
	over := func(more, ref string) string { return full + more + `,"base_weights_ref":"together://` + ref + `"}` }
	fresh := func(create string) []float64 {
		return c.scores(c.session(`{"model_resources_id":"`+c.resource(create).ID+`"}`).ID, x)[0]
	}
	if got := c.resource(over("", model.Model.ID)).BaseWeightsRef; got != "together://"+model.Model.ID+"@"+model.Model.RevisionID {
		t.Errorf("the ref is pinned to %s", got)
	}
	if got := fresh(over("", model.Model.ID)); !slices.Equal(got, want) {
		t.Errorf("full weights start with %v, want %v", got, want)
	}
	lora := strings.Replace(over("", model.Model.ID), "false", "true", 1)
	if got := fresh(lora); !slices.Equal(got, want) {
		t.Errorf("an adapter starts with %v, want %v", got, want)
	}
	if got := fresh(over("", "ml_stranger")); slices.Equal(got, want) {
		t.Error("a stranger's model has the same weights")
	}

	// A merge is one more step of the line, as far as a base can have it.
	second, merged := train(lora, `,"lora_config":{"rank":2,"train_unembed":false}`)
	close := func(a, b []float64) bool {
		for i := range a {
			if d := a[i] - b[i]; d > 1e-4 || d < -1e-4 {
				return false
			}
		}
		return true
	}
	after, got := c.scores(second, x)[0], fresh(over("", merged.Model.ID))
	if !close(got, after) || close(got, want) {
		t.Errorf("a merged model starts with %v, its adapter ended with %v", got, after)
	}
	_, headed := train(lora, "")
	_, adapter := train(tinyResource, "")
	job := c.getJob(c.job(model.Model.ID).ID)
	var saved wire.TrainingCheckpointOutput
	c.run(first, wire.KindTrainingCheckpoint, "", &saved)
	for name, body := range map[string]string{
		"a merge with a head of its own":  over("", headed.Model.ID),
		"an adapter":                      over("", adapter.Adapter.ID),
		"a training checkpoint's model":   over("", saved.Checkpoint.Registration.ID),
		"what a job made":                 over("", job.Results.ModelObjectID),
		"a revision that it has not":      over("", model.Model.ID+"@rv_1"),
		"a model of another base's shape": strings.Replace(over("", model.Model.ID), "tiny", "small", 1),
	} {
		for _, path := range []string{wire.PathResources, wire.PathResources + "/estimate-cost"} {
			if e := (&client{t: t, http: c.http}).refused(400, "POST", path, body); e.Param == nil || *e.Param != "base_weights_ref" {
				t.Errorf("%s: got %+v", name, e)
			}
		}
	}

	ids := []string{first, second}
	weights := hashes(t, s, ids)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s, c = open(t, Options{Dir: dir})
	c.keys = 1000
	if got := fresh(over("", model.Model.ID)); !slices.Equal(got, want) {
		t.Error("a restart changed what the ref stands for")
	}
	if got := hashes(t, s, ids); !slices.Equal(got, weights) {
		t.Error("a restart changed the weights trained over it")
	}
}
