package runner

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestWhatTwoLocksDoNotHaveAlike(t *testing.T) {
	base := func() Lock { return Lock{"recipe": "1", "dataset.train": "d", "seed.order": "5"} }
	with := func(pairs ...string) Lock {
		l := base()
		for i := 0; i < len(pairs); i += 2 {
			l[pairs[i]] = pairs[i+1]
			if pairs[i+1] == "" {
				delete(l, pairs[i])
			}
		}
		return l
	}
	for _, c := range []struct {
		name string
		a, b Lock
		want []string
	}{
		{"the same", base(), base(), nil},
		{"another value", base(), with("seed.order", "6"), []string{"seed.order: was 5, is 6"}},
		{"one has it, the other not", with("tokenizer", "t"), with("dataset.validation", "v"), []string{"dataset.validation: was none, is v", "tokenizer: was t, is none"}},
		{"what decides no result", with("binary", "1", "backend", "service", "run", "x", "wire", "2026-04"), with("binary", "2", "backend", "sandbox"), nil},
		{"the recipe by its hash", base(), with("recipe", "2"), []string{"recipe: was 1, is 2"}},
		{"the recipe by its values", with("recipe.train.batch_size", "4"), with("recipe", "2", "recipe.train.batch_size", "8"), []string{"recipe.train.batch_size: was 4, is 8"}},
		{"values where one lock has none", with("recipe.train.batch_size", "4"), with("recipe", "2"), []string{"recipe: was 1, is 2"}},
		{"a default that a newer program has too", with("recipe.a", "4"), with("recipe.a", "4", "recipe.b", "1"), nil},
		{"numbers by their size", base(), with("dataset.train.10", "x", "dataset.train.9", "y"), []string{"dataset.train.9: was none, is y", "dataset.train.10: was none, is x"}},
	} {
		var got []string
		for _, d := range c.a.Compare(c.b) {
			got = append(got, d.Text("was", "is"))
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}

func TestALockFileIsReadAsItWasSaved(t *testing.T) {
	path := filepath.Join(t.TempDir(), "r.lock.yaml")
	want := Lock{"recipe": "1", "revision.hf://a/b@refs%2Fpr%2F1": strings.Repeat("a", 40), "recipe.chat.system": `"a: b # c"`}
	if err := want.Save(path); err != nil {
		t.Fatal(err)
	}
	got, err := ReadLockFile(path)
	if err != nil || len(got.Compare(want)) > 0 || len(got) != len(want) {
		t.Errorf("got %v, %v", got, err)
	}
	if pins := got.Pins(); len(pins) != 1 || pins["hf://a/b@refs%2Fpr%2F1"] != strings.Repeat("a", 40) {
		t.Errorf("pins are %v", pins)
	}
	for text, want := range map[string]string{
		"":                      "is not a lock: it has no hash of a recipe",
		"seed: 1\n":             "is not a lock: it has no hash of a recipe",
		"recipe: 1\nrecipe":     ":2: is no line of a lock",
		"recipe: 1\nrecipe: 1":  ":2: is no line of a lock",
		"<<<<<<< HEAD\nrecipe:": ":1: is no line of a lock",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadLockFile(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %s", text, err, want)
		}
	}
	if _, err := ReadLockFile(path + "x"); err == nil || !strings.Contains(err.Error(), "is not there; `trainer lock` makes it") {
		t.Errorf("got %v", err)
	}
}
