// Command gen writes what is derived from the recipe's structs: recipe/schema.json, the JSON Schema, docs/recipe.md,
// the reference page, and docs/rewards.md, that of the graders. It reads their keys, defaults and bounds through recipe.Keys, and their comments from the source, so
// that no file can say anything else than what Load does. It runs in the folder of the recipe package, by go generate.
package main

import (
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	if err := write("."); err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

// write makes the files; dir is the recipe package's folder.
func write(dir string) error {
	c, err := comments(dir, filepath.Join(dir, "../schedule"), filepath.Join(dir, "../loss"), filepath.Join(dir, "../internal/grader"))
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "schema.json"), schema(c), 0o644); err != nil {
		return fmt.Errorf("writing the schema: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "../docs/recipe.md"), reference(c), 0o644); err != nil {
		return fmt.Errorf("writing the reference: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "../docs/rewards.md"), rewardsPage(c), 0o644); err != nil {
		return fmt.Errorf("writing the page of the rewards: %w", err)
	}
	return nil
}
