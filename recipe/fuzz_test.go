package recipe

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"trainer/internal/diag"
)

// FuzzLoad: any bytes and any --set either load, and then resolve to a recipe that loads with the same hash, or are
// refused by problems that all have a place and a message on one line.
func FuzzLoad(f *testing.F) {
	for _, pattern := range []string{"testdata/valid/*.yaml", "testdata/full/*.yaml"} {
		files, _ := filepath.Glob(pattern)
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(data, "seed=1")
		}
	}
	files, _ := filepath.Glob("testdata/errors/*.txtar")
	for _, file := range files {
		a, err := txtar.ParseFile(file)
		if err != nil {
			f.Fatal(err)
		}
		set := "optimizer.type=muon"
		for _, part := range a.Files {
			if part.Name == "set" {
				set, _, _ = strings.Cut(string(part.Data), "\n")
			}
		}
		f.Add(a.Files[0].Data, set)
	}
	for _, set := range []string{"", "=", ".=1", "dataset.train.0.path=a", "dataset.train.9999999999.path=a", "chat.args.a.b.c={a: [1]}", "lr_schedule={type: wsd}", "loss.type=dpo", "test.expect.a.b=< 1", "dataset.train.fields.x.column=b", "a=\x00", "description=\xff"} {
		f.Add([]byte(minimal), set)
	}
	for _, text := range []string{"<<: {a: 1}\n<<: 2", "? [", "&a : *a", "- - -", "%TAG ! x\n---\na: !y b", "{<<: [*a]}", "a: &a\n  <<: *a", "\t", "a: |\n\t", "'", "\"\\x", "!!map [1]", "!!str {a: 1}", "!!int {}", "loss: {type: {}}", "loss: [type]", "lora_config: {null: 1}", "extends: [recipe.yaml, '']", "dataset: {train: [[a]]}", "eval: 3\nrollout: 3\nloss: {type: ppo}"} {
		f.Add([]byte(text), "seed=1")
	}
	f.Fuzz(func(t *testing.T, data []byte, set string) {
		r, err := in(string(data), set)
		if err != nil {
			checkProblems(t, err)
			return
		}
		again, err := in(string(r.Resolved()))
		if err != nil {
			t.Fatalf("resolves to\n%s\nwhich does not load: %v", r.Resolved(), err)
		}
		if again.Hash() != r.Hash() || len(Diff(r, again)) > 0 {
			t.Fatalf("resolves to\n%s\nwhich differs in %v", r.Resolved(), Diff(r, again))
		}
	})
}

func checkProblems(t *testing.T, err error) {
	var list diag.List
	if !errors.As(err, &list) || len(list) == 0 {
		t.Fatalf("got %v, want a diag.List", err)
	}
	for _, p := range list {
		if p.Pos.File == "" || p.Msg == "" || strings.ContainsFunc(p.String(), func(r rune) bool { return r < ' ' }) {
			t.Fatalf("a problem without a place, a message or a line of its own: %q", p)
		}
	}
}
