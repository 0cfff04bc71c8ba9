package runner

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"trainer/internal/journal"
)

// The projections of the journal in the run folder: one line a step of the lineage, one a step that a rollback has
// abandoned, one a checkpoint. They hold nothing of their own and come back when they are deleted.
const (
	metricsName    = "metrics.jsonl"
	abandonedName  = "metrics.abandoned.jsonl"
	checkpointName = "checkpoints.jsonl"
)

// line is a line of metrics.jsonl: step counts from 1, 0 is the evaluation before the first.
func line(gen, done int, metrics ...map[string]float64) []byte {
	all := map[string]float64{}
	for _, m := range metrics {
		maps.Copy(all, m)
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, `{"step":%d,"generation":%d`, done, gen)
	for _, k := range slices.Sorted(maps.Keys(all)) {
		name, _ := json.Marshal(k)
		value, _ := json.Marshal(all[k])
		fmt.Fprintf(&b, ",%s:%s", name, value)
	}
	b.WriteString("}\n")
	return b.Bytes()
}

// project makes the files what the journal says, as far as open steps allow: the line of the last step waits for an
// evaluation that is still due. wrote is the last step that has its line, -1 for none.
func (p *past) project(d journal.Disk, dir string, evalDue func(done int) bool) (wrote int, err error) {
	var lines, gone, saves []byte
	wrote = -1
	if e, ok := p.evals[0]; ok {
		lines, wrote = append(lines, line(e.Gen, 0, e.Metrics)...), 0
	}
	for i, m := range p.steps {
		e, ok := p.evals[m.Done]
		if i == len(p.steps)-1 && !ok && evalDue(m.Done) {
			break
		}
		lines, wrote = append(lines, line(m.Gen, m.Done, m.Metrics, e.Metrics)...), m.Done
	}
	for _, m := range p.abandoned {
		gone = append(gone, line(m.Gen, m.Done, m.Metrics)...)
	}
	for _, c := range p.saves {
		saves = append(saves, checkpointLine(c)...)
	}
	return wrote, errors.Join(
		bring(d, filepath.Join(dir, metricsName), lines),
		bring(d, filepath.Join(dir, abandonedName), gone),
		bring(d, filepath.Join(dir, checkpointName), saves))
}

// bring makes the file hold want, writing only where it differs.
func bring(d journal.Disk, path string, want []byte) error {
	got, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) && len(want) == 0 {
		return nil
	}
	if err == nil && bytes.Equal(got, want) {
		return nil
	}
	return journal.Put(d, path, want)
}

func checkpointLine(c checkpointRecord) []byte {
	b, _ := json.Marshal(struct {
		Step       int    `json:"step"`
		Kind       string `json:"kind"`
		ID         string `json:"id"`
		ServerStep int64  `json:"server_step"`
		Registered string `json:"registered,omitempty"`
		Revision   string `json:"revision,omitempty"`
	}{c.Done, c.Kind, c.ID, c.ServerStep, c.Registered, c.Revision})
	return append(b, '\n')
}

// add appends to a projection; a torn append is mended by the next life.
func add(d journal.Disk, dir, name string, text []byte) error {
	f, err := d.OpenFile(filepath.Join(dir, name), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	return errors.Join(err, f.Close())
}

// stepped, noteEval and noteSave keep the past up to date with what this life has journaled.
func (r *run) stepped(m measured) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.past.steps = append(r.past.steps, m)
	r.summary.Done = m.Done
	if v, ok := m.Metrics["train/loss"]; ok {
		r.summary.LastLoss = v
	}
	r.summary.follow(m.Metrics)
}

func (r *run) noteEval(m measured) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.past.evals[m.Done] = m
	if v, ok := m.Metrics[evalLoss]; ok {
		r.summary.LastEval = v
	}
	r.summary.follow(m.Metrics)
}

func (r *run) noteSave(c checkpointRecord) {
	r.mu.Lock()
	r.past.saves = append(r.past.saves, c)
	r.summary.Saved = slices.Insert(r.summary.Saved, 0, c.saved())
	r.mu.Unlock()
	// A projection that cannot be written now is written by the next life: the journal has it.
	_ = add(r.disk, r.world.Dir, checkpointName, checkpointLine(c))
}

func (r *run) doneSteps() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.past.done()
}

// writeLine appends the line of done, unless an earlier life has written it.
func (r *run) writeLine(done int) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if done <= r.wrote {
		return nil
	}
	e, hasEval := r.past.evals[done]
	m, hasStep := r.past.step(done)
	if !hasStep && !hasEval {
		return nil
	}
	if !hasStep {
		m.Gen = e.Gen
	}
	if err := add(r.disk, r.world.Dir, metricsName, line(m.Gen, done, m.Metrics, e.Metrics)); err != nil {
		return fmt.Errorf("write %s: %w", metricsName, err)
	}
	r.wrote = done
	return nil
}
