package recipe

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// corpus is every recipe of testdata that loads, by path.
func corpus(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("testdata/valid/*.yaml")
	if err != nil || len(files) < 10 {
		t.Fatalf("the corpus: %v, %v", files, err)
	}
	return append(files, "testdata/full/supervised.yaml")
}

// same compares all that a recipe says, but not where it stood.
func same(a, b *Recipe) bool {
	x, y := *a, *b
	x.trace, y.trace = trace{}, trace{}
	x.Extends, y.Extends = nil, nil
	for _, r := range []*Recipe{&x, &y} {
		for _, list := range []*[]Source{&r.Dataset.Train, &r.Dataset.Validation} {
			*list = slices.Clone(*list)
			for i, s := range *list {
				if !remote(s.Path) {
					s.Path = absolute(s.Dir, s.Path)
				}
				s.Dir = ""
				(*list)[i] = s
			}
		}
	}
	if isPath(root.child("tokenizer"), x.Tokenizer) {
		x.Tokenizer, y.Tokenizer = absolute(a.Dir("tokenizer"), x.Tokenizer), absolute(b.Dir("tokenizer"), y.Tokenizer)
	}
	if isPath(root.child("chat").child("template"), x.Chat.Template) {
		x.Chat.Template, y.Chat.Template = absolute(a.Dir("chat.template"), x.Chat.Template), absolute(b.Dir("chat.template"), y.Chat.Template)
	}
	x.Name, y.Name = a.RunName(), b.RunName() // null becomes the file's name, which the other file does not have
	return reflect.DeepEqual(x, y)
}

// TestResolvedLoadsAgain from another folder, to the same values and the same hash, and resolves to the same values.
func TestResolvedLoadsAgain(t *testing.T) {
	for _, file := range corpus(t) {
		r, err := Load(file)
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		text := r.Resolved()
		path := filepath.Join(t.TempDir(), "resolved.yaml")
		if err := os.WriteFile(path, text, 0o644); err != nil {
			t.Fatal(err)
		}
		again, err := Load(path)
		if err != nil {
			t.Fatalf("%s resolves to\n%s\nwhich does not load: %v", file, text, err)
		}
		if !same(r, again) {
			t.Errorf("%s: resolved, it has other values:\n%s", file, text)
		}
		if d := Diff(r, again); len(d) > 0 {
			t.Errorf("%s: resolved, it differs in %v", file, d)
		}
		if r.Hash() != again.Hash() {
			t.Errorf("%s: resolved, it has another hash", file)
		}
	}
}

// TestResolvedNamesOrigins compares the page of a recipe with a parent and a --set line by line.
func TestResolvedNamesOrigins(t *testing.T) {
	write(t, map[string]string{
		"base.yaml":   "base_model: sandbox/bytes-tiny\nlr_schedule: {type: wsd}\n",
		"recipe.yaml": "extends: [base.yaml]\nseed: 7\ndataset: {train: a.jsonl}\nloss: {type: cross_entropy}\n",
	})
	r, err := Load("recipe.yaml", "train.batch_size=4", "test.expect={train/loss: < 4}")
	if err != nil {
		t.Fatal(err)
	}
	got := string(r.Resolved())
	for _, line := range []string{
		"seed: 7 # recipe.yaml:2", "base_model: sandbox/bytes-tiny # parent base.yaml:1", "version: 1 # default", "extends: [] # merged",
		"  batch_size: 4 # --set", "  type: wsd # parent base.yaml:2", "  decay_ratio: 0.2 # default", "      format: auto # default",
		"    - path: " + quote(absolute(".", "a.jsonl")) + " # recipe.yaml:3", `    train/loss: "< 4.0" # --set`, "  gradient_accumulation: auto # default",
	} {
		if !strings.Contains("\n"+got, "\n"+line+"\n") {
			t.Errorf("no line %q in\n%s", line, got)
		}
	}
	for _, l := range strings.Split(strings.TrimSpace(got), "\n") {
		if !strings.HasSuffix(l, ":") && !strings.Contains(l, " # ") {
			t.Errorf("a value without an origin: %q", l)
		}
	}
}

// TestEveryKeyIsResolved: the recipes of testdata/full give every key of the schema, and resolve prints each of them.
func TestEveryKeyIsResolved(t *testing.T) {
	given, printed := map[string]bool{}, map[string]bool{}
	for _, loop := range []string{"supervised", "preference", "reinforcement", "distillation"} {
		data, err := os.ReadFile("testdata/full/" + loop + ".yaml")
		if err != nil {
			t.Fatal(err)
		}
		r := must(t, string(data))
		again := must(t, string(r.Resolved()))
		if len(Diff(r, again)) > 0 {
			t.Errorf("%s resolves to\n%s\ndiffering in %v", loop, r.Resolved(), Diff(r, again))
		}
		for _, l := range r.lines() {
			if printed[l.k.Path] = true; r.Given(l.key) {
				given[l.k.Path] = true
			}
		}
		for key := range r.places {
			given[key] = true
		}
	}
	adam := []string{"optimizer.beta1", "optimizer.beta2", "optimizer.eps"} // the recipe's optimizer is the other
	var all func(*Key)
	all = func(k *Key) {
		for _, c := range k.Keys {
			if k.Kind == Column { // printed as one value
				continue
			}
			if !printed[c.Path] {
				t.Errorf("%s is never resolved", c.Path)
			}
			if !given[c.Path] && !slices.Contains(adam, c.Path) && !strings.HasPrefix(c.Path, "eval.sampling_params.") && !strings.HasPrefix(c.Path, "dataset.validation.N.") &&
				!strings.HasPrefix(c.Path, "teacher.init_from.") && !strings.HasPrefix(c.Path, "teacher.compute_config.") {
				t.Errorf("%s is in no recipe of testdata/full", c.Path)
			}
			all(c)
		}
		if k.Elem != nil {
			all(k.Elem)
		}
	}
	all(root)
}
