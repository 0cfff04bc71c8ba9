package recipe

import (
	"os"
	"strings"
	"testing"
)

func TestHashDoesNotSeeHowARecipeIsWritten(t *testing.T) {
	write(t, map[string]string{
		"recipe.yaml":  minimal + "optimizer: {learning_rate: 1e-3, beta1: 0.8}\n",
		"order.yaml":   "# another order\noptimizer:\n  beta1: .8\n  learning_rate: 0.001\nloss:\n    type: cross_entropy\ndataset:\n  train: [{path: a.jsonl}]\nbase_model: 'sandbox/bytes-tiny'\n",
		"written.yaml": minimal + "optimizer: {learning_rate: 1.0e-3, beta1: 0.8}\nseed: 42\ntrain: {epochs: 1.0, batch_size: 128}\n",
		"parent.yaml":  "base_model: other\noptimizer: {learning_rate: 1e-3}\n",
		"child.yaml":   "extends: [parent.yaml]\noptimizer: {beta1: 0.8}\n" + minimal,
		"sub/path.yaml": strings.Replace(minimal, "a.jsonl", "elsewhere.jsonl", 1) +
			"optimizer: {learning_rate: 1e-3, beta1: 0.8}\nname: x\ndescription: y\nlogging: {tensorboard: true}\nlimits: {max_steps: 3}\nkeep_resources: always\n" +
			"inactive_timeout: 1h\ntrain: {lookahead: 0}\ntest: {steps: 1}\ncheckpoint: {every: 1}\neval: {every: 3, at_end: false}\ntokenizer: ./tok\nchat: {template: t.jinja}\n",
	})
	first, err := Load("recipe.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if len(first.Hash()) != 64 {
		t.Errorf("got %q", first.Hash())
	}
	for _, name := range []string{"order.yaml", "written.yaml", "child.yaml", "sub/path.yaml"} {
		r, err := Load(name)
		if err != nil {
			t.Fatal(err)
		}
		if r.Hash() != first.Hash() {
			t.Errorf("%s: another hash, differing in %v", name, Diff(first, r))
		}
	}
}

// TestHashSeesWhatDecidesTheResult changes every value of a recipe, one at a time, by its kind.
func TestHashSeesWhatDecidesTheResult(t *testing.T) {
	data, err := os.ReadFile("testdata/full/supervised.yaml")
	if err != nil {
		t.Fatal(err)
	}
	// A key that needs another beside it changes together with it.
	together := map[string][]string{
		"optimizer.type":           {"optimizer.type=adam"},
		"lr_schedule.type":         {"lr_schedule.type=cosine"},
		"lr_schedule.points":       {"lr_schedule.points=[[5, 0.5]]"},
		"train.epochs":             {"train.epochs=2", "train.num_steps=null"},
		"dataset.validation_split": {"dataset.validation_split=3", "dataset.validation=[]", "eval.early_stop=null"},
		"init_from.run":            {"init_from.run=other"},
		"init_from.checkpoint_id":  {"init_from={checkpoint_id: a, run: null, step: null}"},
		"base_weights_ref":         {"base_weights_ref=together://ml_other"},
		"eval.every":               {"eval.every=99"},
		"eval.sampling_params":     {"eval.sampling_params={max_tokens: 3}", "compute_config.num_generator_replicas=1"},
		"dataset.train.0.format":   {"dataset.train.0.format=text"},
	}
	skip := map[string]bool{"version": true, "extends": true, "loss.type": true, "loss.params": true,
		"optimizer.adam": true, "dataset.train.0.sha256": true, "dataset.train.1.sha256": true, "dataset.train.2.sha256": true, "dataset.validation.0.sha256": true}
	r := must(t, string(data))
	seen := 0
	for _, l := range r.lines() {
		if l.head || skip[l.key] || strings.HasPrefix(l.key, "test.expect") || strings.HasSuffix(l.key, ".path") {
			continue
		}
		set, ok := together[l.key]
		if !ok {
			set = []string{l.key + "=" + another(l)}
		}
		changed, err := in(string(data), set...)
		if err != nil {
			t.Errorf("%v: %v", set, err)
			continue
		}
		seen++
		if got := changed.Hash() != r.Hash(); got == r.isBeside(l.k.Path) {
			t.Errorf("%v: the hash changes: %v; the table says %v", set, got, !r.isBeside(l.k.Path))
		}
		if d := Diff(r, changed); len(d) == 0 {
			t.Errorf("%v: no difference", set)
		}
	}
	if seen < 80 {
		t.Errorf("only %d keys were changed", seen)
	}
}

// another is a value that a key may have and has not.
func another(l line) string {
	for _, name := range l.k.Names {
		if name != l.text && name != "preference" && name != "labelled" && name != "prompts" && name != "auto" {
			return name
		}
	}
	switch l.k.Kind {
	case Integer, Auto:
		if l.text == "7" {
			return "8"
		}
		return "7"
	case Number:
		return "0.375"
	case Boolean:
		if l.text == "true" {
			return "false"
		}
		return "true"
	case Duration:
		return "17m"
	case DictOf:
		return "{prompt: zzz}"
	}
	return "another"
}

func TestHashCountsEvaluationWhereItEndsTheRun(t *testing.T) {
	held := strings.Replace(minimal, "a.jsonl", "a.jsonl, validation_split: 0.1", 1)
	stop := held + "eval: {early_stop: {patience: 2}}\n"
	if must(t, held).Hash() != must(t, held, "eval.every=3").Hash() {
		t.Error("without early_stop the cadence of evaluation counts")
	}
	if must(t, stop).Hash() == must(t, stop, "eval.every=3").Hash() {
		t.Error("with early_stop the cadence of evaluation does not count")
	}
}

// TestBesideNamesKeys: a key that is renamed must not fall back into the hash unseen.
func TestBesideNamesKeys(t *testing.T) {
	paths := map[string]bool{}
	var walk func(*Key)
	walk = func(k *Key) {
		paths[k.Path] = true
		for _, c := range k.Keys {
			walk(c)
		}
		if k.Elem != nil {
			walk(k.Elem)
		}
		for _, v := range k.Variants {
			for _, c := range v.Keys {
				walk(c)
			}
		}
	}
	walk(root)
	for key, why := range beside {
		if !paths[key] || why == "" {
			t.Errorf("%q is no key, or has no reason", key)
		}
	}
	for key := range loopDefaults {
		if !paths[key] {
			t.Errorf("a default for %q, which is no key", key)
		}
	}
	for name, f := range foreign {
		at, _, _ := strings.Cut(strings.NewReplacer(",", " ", ";", " ").Replace(f.is), " ")
		if at == "nothing" || strings.HasPrefix(at, "loss.params.") {
			continue
		}
		if !paths[at] {
			t.Errorf("%s points at %q, which is no key", name, at)
		}
		if paths[name] && name == f.is {
			t.Errorf("%s points at itself", name)
		}
	}
}

func TestDiff(t *testing.T) {
	a := must(t, minimal+"lr_schedule: {type: polynomial, power: 2}\n")
	b := must(t, minimal+"lr_schedule: {type: wsd}\ntrain: {epochs: null, num_steps: 5}\neval: {early_stop: {metric: train/loss}}\n")
	want := []Change{
		{"lr_schedule.type", "polynomial", "wsd"},
		{"lr_schedule.decay_ratio", "", "0.2"},
		{"lr_schedule.decay", "", "linear"},
		{"lr_schedule.power", "2.0", ""},
		{"train.epochs", "1.0", "null"},
		{"train.num_steps", "null", "5"},
		{"eval.early_stop", "null", ""},
		{"eval.early_stop.metric", "", "train/loss"},
		{"eval.early_stop.mode", "", "min"},
		{"eval.early_stop.patience", "", "3"},
	}
	got := Diff(a, b)
	if len(got) != len(want) {
		t.Fatalf("got %v, want %v", got, want)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("change %d: got %v, want %v", i, got[i], want[i])
		}
	}
	if d := Diff(a, a); len(d) > 0 {
		t.Errorf("a recipe differs from itself in %v", d)
	}
}
