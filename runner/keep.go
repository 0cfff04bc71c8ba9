package runner

import (
	"cmp"
	"fmt"
	"slices"

	"trainer/recipe"
)

// forgetRecord says that a checkpoint is not shown or copied any more. It stays at the service, which deletes none, and a
// rollback may still begin from it.
type forgetRecord struct {
	ID  string `json:"id"`
	Why string `json:"why"`
}

// Why a checkpoint is kept.
const (
	keptNewest = "newest"
	keptLast   = "keep_last"
	keptBest   = "keep_best"
	keptInUse  = "in use" // the session began from it
)

// metric is what a checkpoint of so many done steps measures: an evaluation of those weights, else the step that made them.
func (p *past) metric(name string, done int) (float64, bool) {
	if v, ok := p.evals[done].Metrics[name]; ok {
		return v, true
	}
	m, _ := p.step(done)
	v, ok := m.Metrics[name]
	return v, ok
}

// keeps says which checkpoints of the lineage are kept, by id, and why; each kind by itself. The newest is always among
// them, and so is the one that the session in use began from.
func (p *past) keeps(c recipe.Checkpoint) map[string]string {
	kept := map[string]string{}
	for _, kind := range []string{"training", "inference"} {
		var all []checkpointRecord
		for _, s := range p.saves {
			if s.Kind == kind && p.forgotten[s.ID] == "" {
				all = append(all, s)
			}
		}
		slices.SortStableFunc(all, func(a, b checkpointRecord) int { return cmp.Compare(b.Done, a.Done) })
		for i, s := range all {
			switch {
			case i == 0:
				kept[s.ID] = keptNewest
			case i < c.KeepLast:
				kept[s.ID] = keptLast
			}
		}
		if id := p.best(all, c.KeepBest); id != "" && kept[id] != keptNewest {
			kept[id] = keptBest
		}
	}
	if g := p.last(); g != nil && g.from.CheckpointID != "" && kept[g.from.CheckpointID] == "" {
		kept[g.from.CheckpointID] = keptInUse
	}
	return kept
}

// best is the id of the checkpoint with the best metric, of equal ones the newest; "" where none has it.
func (p *past) best(newestFirst []checkpointRecord, rule *recipe.KeepBest) (id string) {
	if rule == nil {
		return ""
	}
	best := 0.0
	for _, s := range newestFirst {
		v, ok := p.metric(rule.Metric, s.Done)
		better := v < best
		if rule.Mode == "max" {
			better = v > best
		}
		if ok && (id == "" || better) {
			id, best = s.ID, v
		}
	}
	return id
}

// retain forgets what is not kept, and lets the copies know. The records are on disk before a copy goes.
func (r *run) retain() error {
	r.mu.Lock()
	kept := r.past.keeps(r.in.Recipe.Checkpoint)
	var due []forgetRecord
	for _, s := range r.past.saves {
		if kept[s.ID] == "" && r.past.forgotten[s.ID] == "" {
			due = append(due, forgetRecord{s.ID, fmt.Sprintf("checkpoint.keep_last %d", r.in.Recipe.Checkpoint.KeepLast)})
		}
	}
	r.mu.Unlock()
	for i, f := range due {
		write := r.journal.Add
		if i == len(due)-1 {
			write = r.journal.Append
		}
		if err := write(recForget, f); err != nil {
			return fmt.Errorf("journal what is forgotten: %w", err)
		}
	}
	r.mu.Lock()
	for _, f := range due {
		r.past.forget(f)
	}
	r.mu.Unlock()
	r.copies.poke()
	return nil
}

func (p *past) forget(f forgetRecord) {
	if p.forgotten == nil {
		p.forgotten = map[string]string{}
	}
	p.forgotten[f.ID] = cmp.Or(f.Why, "forgotten")
}
