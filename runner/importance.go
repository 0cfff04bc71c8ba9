package runner

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"trainer/internal/rollout"
	"trainer/loss"
)

// capped is remote for a sampler whose probabilities are not quite the trainer's: each rollout batch is scored by the session
// that trains, before it is trained, and the ratio of that to what sampling returned, held to a cap, weighs the advantage of
// each token. The ratio of the loss is then to the trainer's own log-probabilities, so that it begins at 1, and no token is
// corrected twice. Source: Yao et al. 2025, truncated importance sampling. It is used by one stage at a time, but for prepare.
type capped struct {
	remote
	r      *run
	source *fromRollouts
	cap    float64

	batch int         // the one that rows are of
	rows  [][]float64 // [B][T], of what a batch trains, in order; nil before the first
}

// prepare makes the requests that score a batch, ahead of its first step. What trains is made of the answers.
func (g *capped) prepare(ctx context.Context, s Session, step int, _ Batch) ([]item, error) {
	d, err := g.source.batch(ctx, step/g.source.per)
	if err != nil || step != g.source.first(d, step) {
		return nil, err
	}
	if _, ok := g.r.scored(step / g.source.per); ok {
		return nil, nil
	}
	parts := slices.Collect(slices.Chunk(rollout.Step(d.groups), g.r.mostSequences()))
	return scoring(ctx, s, slot{step: step, kind: kindForward}, parts)
}

// submit scores the batch where that is due, which waits for every step before it, then sends the step.
func (g *capped) submit(ctx context.Context, l *ledger, b Batch, items []item, optim item) (collect, *operation, error) {
	step := optim.slot.step
	if err := g.score(ctx, l, step, items); err != nil {
		return nil, nil, err
	}
	b, m, err := g.weigh(ctx, b, step)
	if err != nil {
		return nil, nil, fmt.Errorf("step %d: %w", step+1, err)
	}
	trains, err := g.remote.prepare(ctx, l.session, step, b)
	if err != nil {
		return nil, nil, fmt.Errorf("prepare step %d: %w", step+1, err)
	}
	for i := range trains {
		trains[i].expect = optim.expect - 1
	}
	of, op, err := g.remote.submit(ctx, l, b, trains, optim)
	if err != nil {
		return nil, nil, err
	}
	return func(ctx context.Context) (map[string]float64, error) {
		got, err := of(ctx)
		for k, v := range m {
			if got != nil {
				got[k] = v
			}
		}
		return got, err
	}, op, nil
}

// score makes rows those of the batch of step. They are on the disk, and in the journal, before anything of them trains.
func (g *capped) score(ctx context.Context, l *ledger, step int, items []item) error {
	b := step / g.source.per
	if g.rows != nil && g.batch == b {
		return nil
	}
	var err error
	if rec, ok := g.r.scored(b); ok {
		g.rows, err = g.r.readScores(rec)
	} else if len(items) == 0 {
		err = fmt.Errorf("rollout batch %d was not scored before its first step", b+1)
	} else if g.rows, err = l.score(ctx, items); err == nil {
		err = g.r.storeScores(b, g.rows)
	}
	g.batch = b
	if err != nil {
		g.rows = nil
	}
	return err
}

// weigh puts the weights into the advantages of a step, and the trainer's log-probabilities in the place of the sampler's.
func (g *capped) weigh(ctx context.Context, b Batch, step int) (Batch, map[string]float64, error) {
	d, err := g.source.batch(ctx, step/g.source.per)
	if err != nil {
		return b, nil, err
	}
	at := 0
	for n := range step % g.source.per % g.r.in.Recipe.Rollout.Minibatches {
		data, _ := g.source.share(d, n)
		at += len(data)
	}
	sum, over, tokens := 0.0, 0, 0
	parts := make([][]loss.Datum, len(b.Parts))
	for p, part := range b.Parts {
		for _, x := range part {
			if at >= len(g.rows) {
				return b, nil, errors.New("the scores are not those of its rollout batch")
			}
			row := g.rows[at]
			w, err := loss.ImportanceWeights(row, x, loss.TokenTruncate, g.cap)
			if err != nil {
				return b, nil, err
			}
			advantages, old := make([]float64, len(w)), make([]float64, len(w))
			for t := range w {
				if x.Weights[t] == 0 {
					continue
				}
				advantages[t], old[t] = x.Advantages[t]*w[t], row[t]
				sum += w[t]
				tokens++
				if w[t] >= g.cap {
					over++
				}
			}
			x.Advantages, x.OldLogprobs = advantages, old
			parts[p] = append(parts[p], x)
			at++
		}
	}
	b.Parts = parts
	n := float64(max(1, tokens))
	return b, map[string]float64{"importance/weight": sum / n, "importance/capped_fraction": float64(over) / n}, nil
}

// first is the step of a batch before which it is scored: the first that trains something.
func (f *fromRollouts) first(d *drawn, step int) int {
	begin := step / f.per * f.per
	for n := range f.per {
		if _, out := f.r.past.skip[begin+n]; out {
			continue
		}
		if data, _ := f.share(d, n%f.r.in.Recipe.Rollout.Minibatches); len(data) > 0 {
			return begin + n
		}
	}
	return begin
}

// scored is the record of what the session that trains has scored of a batch.
func (r *run) scored(b int) (scoredRecord, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	rec, ok := r.past.scored[b]
	return rec, ok
}

// storeScores brings the log-probabilities of a batch to the disk, then writes into the journal that they are there.
func (r *run) storeScores(b int, rows [][]float64) error {
	data := appendRows(nil, rows)
	rec := scoredRecord{Batch: b, Gen: r.gen.gen, File: fmt.Sprintf("%s/batch-%06d.g%d.logprobs", samplesName, b+1, r.gen.gen), SHA256: hashOf(data)}
	if err := r.putSamples(rec.File, data); err != nil {
		return err
	}
	if err := r.journal.Append(recScored, rec); err != nil {
		return &journalError{fmt.Errorf("journal the scores of the rollout batch: %w", err)}
	}
	r.note(func(p *past) { p.scored[b] = rec })
	return nil
}

func (r *run) readScores(rec scoredRecord) ([][]float64, error) {
	data, err := os.ReadFile(filepath.Join(r.world.Dir, filepath.FromSlash(rec.File)))
	if err != nil {
		return nil, fmt.Errorf("read the scores of rollout batch %d: %w", rec.Batch+1, err)
	}
	if hashOf(data) != rec.SHA256 {
		return nil, fmt.Errorf("%w: %s is not what was written there", ErrDrift, rec.File)
	}
	return readRows(data)
}

// mostSequences is how many a request that scores carries.
func (r *run) mostSequences() int {
	if r.limits.MaxBatch > 0 {
		return r.limits.MaxBatch
	}
	return sequencesARequest
}
