package dataset

import (
	"context"
	"os"
	"testing"

	"trainer/internal/hub"
	"trainer/recipe"
)

func TestProblemsOfTheRecipeHaveItsPlaces(t *testing.T) {
	t.Chdir(t.TempDir())
	for name, text := range map[string]string{
		"rows.jsonl": pairRow,
		"recipe.yaml": `base_model: sandbox/bytes-tiny
loss: {type: cross_entropy}
dataset:
  train:
    - path: row.jsonl
    - path: rows.jsonl
      fields: {promt: prompt}
  validation: vals.jsonl
`} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r, err := recipe.Load("recipe.yaml")
	if err != nil {
		t.Fatal(err)
	}
	_, err = Open(context.Background(), r, byteTemplate(t, r.Chat), &hub.Hub{})
	want := `recipe.yaml:5:13: dataset.train.0.path: row.jsonl: no such file; did you mean "rows.jsonl"?
recipe.yaml:7:23: dataset.train.1.fields.promt: not a field of prompt_completion rows (prompt, completion, tools, documents); did you mean "prompt"? (told by the first row, rows.jsonl:1)
recipe.yaml:8:15: dataset.validation.0.path: vals.jsonl: no such file`
	if err == nil || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
}
