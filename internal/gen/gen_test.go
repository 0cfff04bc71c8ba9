package main

import (
	"os"
	"strings"
	"testing"

	"trainer/recipe"
)

func allComments(t *testing.T) docs {
	t.Helper()
	c, err := comments("../../recipe", "../../schedule", "../../loss", "../grader")
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestFilesAreFresh: what go generate would write is what stands there.
func TestFilesAreFresh(t *testing.T) {
	c := allComments(t)
	for file, want := range map[string][]byte{"../../recipe/schema.json": schema(c), "../../docs/recipe.md": reference(c), "../../docs/rewards.md": rewardsPage(c)} {
		got, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != string(want) {
			t.Errorf("%s is not what the structs say; run go generate ./recipe", file)
		}
	}
	if string(recipe.Schema()) != string(schema(c)) {
		t.Error("recipe.Schema is not the generated schema")
	}
}

// TestEveryKeyIsDocumented, in the comment of its field, and stands on the page.
func TestEveryKeyIsDocumented(t *testing.T) {
	c := allComments(t)
	page := string(reference(c))
	seen := 0
	var walk func(*recipe.Key)
	walk = func(k *recipe.Key) {
		keys := k.Keys
		for _, v := range k.Variants {
			keys = append(keys[:len(keys):len(keys)], v.Keys...)
		}
		for _, key := range keys {
			seen++
			if c.of(key) == "" {
				t.Errorf("%s (%s) has no comment", key.Path, key.Field)
			}
			if !strings.Contains(page, "| `"+key.Name+"` |") {
				t.Errorf("%s is not on the page", key.Path)
			}
			walk(key)
		}
		if k.Elem != nil {
			walk(k.Elem)
		}
	}
	walk(recipe.Keys())
	if seen < 150 {
		t.Errorf("only %d keys", seen)
	}
}

func TestCommentsNameTheirKey(t *testing.T) {
	d := docs{"x.T.LearningRate": "LearningRate is the peak.", "x.T.Every": "Every so many steps.", "x.T.Run": "Running costs.", "x.T.Step": ""}
	for field, want := range map[string]string{"LearningRate": "learning_rate is the peak.", "Every": "learning_rate so many steps.", "Run": "Running costs.", "Step": ""} {
		if got := d.of(&recipe.Key{Name: "learning_rate", Field: "x.T." + field}); got != want {
			t.Errorf("%s: got %q, want %q", field, got, want)
		}
	}
}
