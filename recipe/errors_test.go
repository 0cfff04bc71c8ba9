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

// TestErrorsHaveTheirPlaces loads each recipe of testdata/errors and compares every line.
func TestErrorsHaveTheirPlaces(t *testing.T) {
	files, err := filepath.Glob("testdata/errors/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			a, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			parts := unpack(t, a)
			_, err = Load("recipe.yaml", nonEmptyLines(parts["set"])...)
			var list diag.List
			if !errors.As(err, &list) {
				t.Fatalf("%s\ngot error %v, want a diag.List", a.Comment, err)
			}
			if os.Getenv("SHOW") != "" {
				os.Stdout.WriteString("=== " + file + "\n" + err.Error() + "\n")
			}
			if got := err.Error() + "\n"; got != parts["want"] {
				t.Errorf("%s\ngot\n%s\nwant\n%s", a.Comment, got, parts["want"])
			}
		})
	}
}

// unpack writes the files of an archive into a folder of the test, which becomes the working one.
func unpack(t *testing.T, a *txtar.Archive) map[string]string {
	t.Helper()
	dir := t.TempDir()
	parts := map[string]string{}
	for _, f := range a.Files {
		parts[f.Name] = string(f.Data)
		path := filepath.Join(dir, f.Name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, f.Data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	return parts
}

func nonEmptyLines(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool { return r == '\n' })
}
