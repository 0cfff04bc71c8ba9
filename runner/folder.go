package runner

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"trainer/internal/journal"
	"trainer/recipe"
)

// ResolvedName is the file of a run folder that holds every value of the recipe; resume loads it.
const ResolvedName = "resolved.yaml"

// NewFolder makes the folder of a new run, runs/<name>-<stamp>, with the recipe as it was given, its parents, and the
// resolved recipe in it. Two runs that start in the same second get two folders.
func NewFolder(runs string, r *recipe.Recipe, now time.Time) (string, error) {
	if err := os.MkdirAll(runs, 0o700); err != nil {
		return "", fmt.Errorf("make the folder of runs: %w", err)
	}
	base := filepath.Join(runs, r.RunName()+"-"+now.Format("20060102-150405"))
	dir := base
	for n := 2; ; n++ {
		err := os.Mkdir(dir, 0o700)
		if err == nil {
			break
		}
		if !errors.Is(err, fs.ErrExist) {
			return "", fmt.Errorf("make the run folder: %w", err)
		}
		dir = fmt.Sprintf("%s-%d", base, n)
	}
	for i, f := range r.Files() {
		name := "recipe.yaml"
		if i > 0 {
			name = fmt.Sprintf("parent-%d-%s", i, filepath.Base(f.Path))
		}
		if err := journal.WriteFile(filepath.Join(dir, name), f.Data); err != nil {
			return "", err
		}
	}
	return dir, journal.WriteFile(filepath.Join(dir, ResolvedName), r.Resolved())
}
