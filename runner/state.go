package runner

import (
	"fmt"
	"maps"
	"path/filepath"
	"time"

	"trainer/internal/journal"
	"trainer/recipe"
)

// State is what a run folder says of its run.
type State struct {
	Dir       string
	RunID     string // empty before the run has begun
	Name      string
	BaseModel string // empty where the recipe in the folder cannot be read
	Loss      string
	Backend   string // service or sandbox; empty before the run has begun
	// Status is complete, interrupted, budget or failed, as the last life has ended; running while a process works in the
	// folder; died where a life has not come to its end; new before the first.
	Status     string
	Evaluates  bool // nothing is trained
	Done       int  // steps in the weights
	Steps      int  // of the plan of the last life
	Lives      int
	Began      time.Time // of the first life; zero before
	Told       time.Time // of the last record
	CostUSD    float64   // as metered when a resource was last seen
	Metrics    map[string]float64
	Checkpoint string // the newest training checkpoint; empty: none
	Saved      int    // the steps in it
	Registered string // the model that the newest inference checkpoint is registered as; empty: none
	Holdings   Holdings
}

// ReadState reads it, without asking anybody.
func ReadState(dir string) (State, error) {
	s := State{Dir: dir, Name: filepath.Base(dir), Status: "new"}
	if r, err := recipe.Load(filepath.Join(dir, ResolvedName)); err == nil { // the journal tells the rest all the same
		s.Name, s.BaseModel, s.Loss = r.RunName(), r.BaseModel, r.Loss.Type
	}
	lock, err := ReadLock(dir)
	if err != nil {
		return s, err
	}
	s.Evaluates, s.Backend = lock.Evaluates(), lock[lockBackend]
	h, records, err := readHoldings(dir)
	if err != nil || h.past == nil {
		return s, err
	}
	s.Holdings, s.RunID = h, h.RunID
	s.read(h.past, records)
	return s, nil
}

func (s *State) read(p *past, records []journal.Record) {
	s.Done, s.CostUSD, s.Metrics = p.done(), p.spent(""), map[string]float64{}
	for _, rec := range records {
		if rec.Type == recLife {
			s.Lives++
		}
		if s.Began.IsZero() {
			s.Began = rec.Time
		}
		s.Told = rec.Time
	}
	if p.life != nil {
		s.Steps = p.life.Steps
	}
	switch {
	case s.Holdings.Alive != nil:
		s.Status = "running"
	case p.end != nil:
		s.Status = p.end.Outcome
	case p.life != nil:
		s.Status = "died"
	}
	if n := len(p.steps); n > 0 {
		maps.Copy(s.Metrics, p.steps[n-1].Metrics)
	}
	for done := p.done(); done >= 0; done-- {
		if e, ok := p.evals[done]; ok {
			maps.Copy(s.Metrics, e.Metrics)
			break
		}
	}
	if c, ok := p.newest(); ok {
		s.Checkpoint, s.Saved = c.ID, c.Done
	}
	for _, c := range p.saves {
		if c.Kind == "inference" && c.Registered != "" {
			s.Registered = c.Registered
		}
	}
}

// Way is what to do about the run, "" where nothing is to be done.
func (s *State) Way() string {
	switch {
	case s.Holdings.Elsewhere != nil:
		return s.Holdings.Elsewhere.Error()
	case s.Status == "running" || s.Status == "complete" || s.Status == "new":
		return ""
	case s.Evaluates:
		return "an evaluation is not continued; ask for it again"
	case s.Checkpoint == "" && s.Done > 0:
		return fmt.Sprintf("`trainer resume %s` continues while its session lives; nothing was saved", s.Dir)
	}
	return fmt.Sprintf("`trainer resume %s` continues", s.Dir)
}
