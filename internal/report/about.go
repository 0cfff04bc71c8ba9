package report

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"trainer/runner"
)

// about is run.json: who the run is, and its plan as of its newest life. The folder's own place is not in it, so the
// folder can move.
type about struct {
	ID        string       `json:"id"`
	Name      string       `json:"name"`
	BaseModel string       `json:"base_model"`
	Recipe    string       `json:"recipe"`
	Sandbox   bool         `json:"sandbox"`
	StandIn   bool         `json:"stand_in"`
	USDPerH   float64      `json:"price_usd_per_hour"`
	Start     string       `json:"start,omitempty"`   // where it has begun; empty: at the base model's weights
	Version   string       `json:"version,omitempty"` // of the binary of the newest life
	Plan      *runner.Plan `json:"plan"`
}

func (a about) info() runner.RunInfo {
	return runner.RunInfo{ID: a.ID, Name: a.Name, BaseModel: a.BaseModel, Recipe: a.Recipe, Sandbox: a.Sandbox,
		StandIn: a.StandIn, PriceUSDPerHour: a.USDPerH, Start: a.Start, Version: a.Version, Plan: a.Plan}
}

// writeAbout keeps the recipe's path of the first life: a later one reads the folder's own copy.
func writeAbout(dir string, r runner.RunInfo) error {
	if was, err := readAbout(dir); err == nil && was.ID == r.ID && was.Recipe != "" {
		r.Recipe = was.Recipe
	}
	a := about{r.ID, r.Name, r.BaseModel, r.Recipe, r.Sandbox, r.StandIn, r.PriceUSDPerHour, r.Start, r.Version, r.Plan}
	data, err := json.Marshal(a)
	if err != nil {
		return fmt.Errorf("writing %s: %w", runFile, err)
	}
	return replace(filepath.Join(dir, runFile), append(data, '\n'))
}

// readAbout reads run.json; a folder without one has the folder's name.
func readAbout(dir string) (about, error) {
	a := about{Name: filepath.Base(dir)}
	data, err := os.ReadFile(filepath.Join(dir, runFile))
	if errors.Is(err, fs.ErrNotExist) {
		return a, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &a)
	}
	if err != nil {
		return a, fmt.Errorf("reading %s: %w", filepath.Join(dir, runFile), err)
	}
	return a, nil
}
