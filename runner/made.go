package runner

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"trainer/internal/download"
	"trainer/internal/journal"
	"trainer/recipe"
)

// States of a checkpoint of a run folder.
const (
	StateKept       = "kept"
	StateForgotten  = "forgotten"  // by checkpoint.keep_last; it stays at the service
	StateAbandoned  = "abandoned"  // a rollback has gone back behind it
	StateUnverified = "unverified" // not every step in it was seen to end as expected: a resume does not begin from it
)

// Made is a checkpoint as the journal of its run tells of it.
type Made struct {
	Done       int       `json:"step"` // steps in the weights
	Kind       string    `json:"kind"` // training, inference
	ID         string    `json:"id"`
	Session    string    `json:"session_id"`
	Registered string    `json:"registered,omitempty"` // id in the project's models
	Revision   string    `json:"revision,omitempty"`
	Variant    string    `json:"variant,omitempty"` // of an inference checkpoint: merged, adapter
	Verified   bool      `json:"verified"`
	State      string    `json:"state"`
	Why        string    `json:"why,omitempty"`    // it is kept, or forgotten
	Metric     *float64  `json:"metric,omitempty"` // Checkpoints.Metric under these weights; nil: not measured
	CreatedAt  time.Time `json:"created_at,omitzero"`
	Copy       string    `json:"copy,omitempty"`       // its folder, where the run has a copy
	Whole      bool      `json:"copy_whole,omitempty"` // the copy is whole
	Size       int64     `json:"bytes,omitempty"`      // of the copy's files; 0: not known
}

// Checkpoints are those that a run folder tells of, in order of their steps.
type Checkpoints struct {
	RunID     string
	BaseModel string
	LoRA      bool
	Sessions  []string // of the run, in order
	Metric    string   // the name of Made.Metric: what keep_best looks at, else eval/loss
	Made      []Made
}

// ReadCheckpoints reads them from the journal and the resolved recipe of dir, without a lock and without the service, also
// while the run goes on.
func ReadCheckpoints(dir string) (Checkpoints, error) {
	rec, err := recipe.Load(filepath.Join(dir, ResolvedName))
	if err != nil {
		return Checkpoints{}, fmt.Errorf("read the recipe of the run: %w", err)
	}
	records, err := journal.Read(dir)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil // a life that has not come to its first record
	}
	if err != nil {
		return Checkpoints{}, err
	}
	p, err := recall(records)
	if err != nil {
		return Checkpoints{}, err
	}
	c := Checkpoints{BaseModel: rec.BaseModel, LoRA: rec.LoRA != nil, Metric: evalLoss}
	if b := rec.Checkpoint.KeepBest; b != nil {
		c.Metric = b.Metric
	}
	if p.run != nil {
		c.RunID = p.run.RunID
	}
	for _, g := range p.gens {
		if g.id != "" {
			c.Sessions = append(c.Sessions, g.id)
		}
	}
	if err := c.gather(p, records); err != nil {
		return Checkpoints{}, err
	}
	c.judge(p, rec, dir)
	slices.SortStableFunc(c.Made, func(a, b Made) int { return a.Done - b.Done })
	return c, nil
}

// gather finds what was verified, and what was saved and never was.
func (c *Checkpoints) gather(p *past, records []journal.Record) error {
	created := map[string]time.Time{}
	for _, g := range p.gens {
		for _, in := range g.intents {
			got := g.results[in.Key].Checkpoint
			if got == nil {
				continue
			}
			kind := "training"
			if in.Kind == kindInference {
				kind = "inference"
			}
			created[got.ID] = got.CreatedAt
			c.Made = append(c.Made, Made{Done: in.Step, Kind: kind, ID: got.ID, Session: g.id, Registered: got.Registered, Revision: got.Revision,
				Variant: variantOf(kind, *got, c.LoRA), State: StateUnverified, CreatedAt: got.CreatedAt})
		}
	}
	for _, r := range records {
		if r.Type != recCheckpoint {
			continue
		}
		var v checkpointRecord
		if err := json.Unmarshal(r.Data, &v); err != nil {
			return err
		}
		m := Made{Done: v.Done, Kind: v.Kind, ID: v.ID, Registered: v.Registered, Revision: v.Revision,
			Variant: variantOf(v.Kind, v.saved().SavedCheckpoint, c.LoRA), Verified: true, CreatedAt: r.Time}
		if i := slices.IndexFunc(c.Made, func(m Made) bool { return m.ID == v.ID }); i >= 0 {
			m.Session, m.CreatedAt = c.Made[i].Session, created[v.ID]
			c.Made = slices.Delete(c.Made, i, i+1)
		}
		c.Made = append(c.Made, m)
	}
	return nil
}

func variantOf(kind string, c SavedCheckpoint, lora bool) string {
	if kind != "inference" {
		return ""
	}
	return Variant(c, lora)
}

// judge says what each verified one is for now, what it measures, and where its copy is.
func (c *Checkpoints) judge(p *past, rec *recipe.Recipe, dir string) {
	kept := p.keeps(rec.Checkpoint)
	for i := range c.Made {
		m := &c.Made[i]
		inLine := slices.ContainsFunc(p.saves, func(s checkpointRecord) bool { return s.ID == m.ID })
		switch {
		case !m.Verified:
		case !inLine:
			m.State = StateAbandoned
		case p.forgotten[m.ID] != "":
			m.State, m.Why = StateForgotten, p.forgotten[m.ID]
		default:
			m.State, m.Why = StateKept, kept[m.ID]
		}
		if v, ok := p.metric(c.Metric, m.Done); ok && inLine {
			m.Metric = &v
		}
		if m.Kind != "inference" {
			continue
		}
		at := CopyDir(dir, m.Done, m.Variant)
		if label, size, whole, err := download.Read(at); err == nil && label.Checkpoint == m.ID {
			m.Copy, m.Size, m.Whole = at, size, whole
		}
	}
}

// IsRun says whether dir is a run folder.
func IsRun(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, ResolvedName))
	return err == nil
}
