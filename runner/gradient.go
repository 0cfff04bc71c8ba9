package runner

import (
	"context"
	"fmt"

	"trainer/loss"
)

// Batch is what one optimiser step trains on, reduced, in parts of one request each.
type Batch struct {
	Parts [][]loss.Datum
	Raw   [][][]float64 // weights before the reduction, as Parts: [parts][rows][T]
	Scale float64       // one factor that the reduction put on every weight; 0: it differs by row
	Sum   float64       // Σ of Raw
	Rows  []string      // place of each row, in order
	Hash  string        // SHA-256 of the tokens and raw weights, in order
	// Metrics of the data: tokens, trained_tokens, epoch.
	Metrics map[string]float64
	// Losses are the losses of Parts, where they differ from the recipe's by part; nil: they do not.
	Losses []loss.Loss
	// Empty says why nothing of the step is trained; empty where something is.
	Empty string
	// Unscored is why no completion of the rollout batch has a reward, which is why the step is Empty; else empty.
	Unscored string
}

// batches gives the data of a step: the same step, the same batch, in any life. release returns once nothing needs the
// weights before step's sync any more.
type batches interface {
	next(ctx context.Context, step int) (Batch, error)
	release(ctx context.Context, step int) error
}

// gradient leaves a batch's gradient at the service. check refuses a run that can't go on, before a resource is asked for.
// open and begin get what all steps need before the first of them, and end in order when stop does: open once the resource
// is there, begin once the session is. prepare makes the requests of a step that are known ahead, and may run steps ahead; submit is in
// step order, and puts optim in flight together with the last of its own. evals puts the scoring of the held-out rows in
// flight.
type gradient interface {
	check(ctx context.Context, r *run) error
	open(ctx, stop context.Context, r *run) error
	begin(ctx, stop context.Context, r *run) error
	prepare(ctx context.Context, s Session, step int, b Batch) ([]item, error)
	submit(ctx context.Context, l *ledger, b Batch, items []item, optim item) (collect, *operation, error)
	evals(ctx context.Context, r *run, done, updates int) (collect, error)
}

// collect returns the metrics of a step, or of an evaluation, once its operations have ended.
type collect func(context.Context) (map[string]float64, error)

// remote: the service computes the loss. Nothing is waited for.
type remote struct {
	loss loss.Loss
	soft *loss.ForwardKL // sends a sequence as copies; nil: it is sent once
}

func (g remote) check(context.Context, *run) error { return nil }

func (g remote) open(context.Context, context.Context, *run) error { return nil }

func (g remote) begin(context.Context, context.Context, *run) error { return nil }

func (g remote) prepare(ctx context.Context, s Session, step int, b Batch) ([]item, error) {
	items := make([]item, len(b.Parts))
	for i, part := range b.Parts {
		l := g.loss
		if b.Losses != nil {
			l = b.Losses[i]
		}
		p, err := s.Prepare(ctx, Forward{Loss: l, Data: part, Backward: true, Logprobs: b.Scale == 0})
		if err != nil {
			return nil, err
		}
		items[i] = item{slot: slot{step: step, kind: kindForwardBackward, index: i}, body: p}
		if b.Scale == 0 {
			items[i].digest = tokenLoss(b.Raw[i])
		}
	}
	return items, nil
}

func (g remote) submit(ctx context.Context, l *ledger, b Batch, items []item, optim item) (collect, *operation, error) {
	ops, err := l.submit(ctx, append(items, optim)...)
	if err != nil {
		return nil, nil, err
	}
	parts := ops[:len(items)]
	return func(ctx context.Context) (map[string]float64, error) { return gather(ctx, b, parts) }, ops[len(items)], nil
}

// evals asks for the held-out rows, a request for each max_batch_size of them, and makes eval/loss, per trained token, of the
// answers.
func (g remote) evals(ctx context.Context, r *run, done, updates int) (collect, error) {
	return g.scoring(ctx, r, done, updates, r.in.heldRows(), func(row int) ([]loss.Datum, error) { return r.heldOut(row, row+1) })
}

// scoring is evals of n times what of gives.
func (g remote) scoring(ctx context.Context, r *run, done, updates, n int, of func(int) ([]loss.Datum, error)) (collect, error) {
	var ops []*operation
	sum := 0.0
	var taught loss.Teaching
	var ahead []loss.Datum // read, not yet submitted
	for row, chunk, most := 0, 0, max(1, r.limits.MaxBatch); row < n || len(ahead) > 0; chunk++ {
		for ; row < n && len(ahead) < most; row++ {
			more, err := of(row)
			if err != nil {
				return nil, err
			}
			for _, d := range more {
				for _, w := range d.Weights {
					sum += w
				}
			}
			if g.soft != nil {
				taught = taught.And(g.soft.Teaching(more))
				more = g.soft.Copies(more)
			}
			ahead = append(ahead, more...)
		}
		data := ahead[:min(len(ahead), most)]
		if ahead = ahead[len(data):]; len(data) == 0 {
			break
		}
		p, err := r.session.Prepare(ctx, Forward{Loss: g.loss, Data: data})
		if err != nil {
			return nil, fmt.Errorf("prepare the evaluation: %w", err)
		}
		o, err := r.ledger.submit(ctx, item{slot: slot{step: done, kind: kindEval, index: chunk}, body: p, expect: updates})
		if err != nil {
			return nil, err
		}
		ops = append(ops, o...)
	}
	return func(ctx context.Context) (map[string]float64, error) {
		total := 0.0
		for _, o := range ops {
			res, err := o.wait(ctx)
			if err != nil {
				return nil, err
			}
			total += res.Loss
		}
		m := map[string]float64{evalLoss: total / sum}
		if g.soft != nil {
			m[evalForwardKL], m["eval/"+teacherMass] = m[evalLoss]-taught.Entropy, taught.Mass
		}
		return m, nil
	}, nil
}

// gather waits for the parts of a step: train/loss is per trained token whatever the reduction; the service's own
// numbers are means over the parts.
func gather(ctx context.Context, b Batch, ops []*operation) (map[string]float64, error) {
	m := map[string]float64{}
	total, counts := 0.0, map[string]int{}
	for _, o := range ops {
		r, err := o.wait(ctx)
		if err != nil {
			return nil, err
		}
		if r.TokenLoss != nil {
			total += *r.TokenLoss
		} else if b.Scale > 0 {
			total += r.Loss / b.Scale
		}
		for k, v := range r.Metrics {
			m["api/"+k] += v
			counts["api/"+k]++
		}
	}
	for k, n := range counts {
		m[k] /= float64(n)
	}
	if b.Sum > 0 {
		m["train/loss"] = total / b.Sum
		if entropy, soft := b.Metrics[teacherEntropy]; soft {
			m[forwardKL] = m["train/loss"] - entropy
		}
	}
	return m, nil
}

// tokenLoss makes Σ w·(−ℓ) of the returned log-probabilities, under the weights before the reduction.
func tokenLoss(weights [][]float64) func(*Result) {
	return func(r *Result) {
		sum := 0.0
		for i, row := range r.Logprobs {
			for t, lp := range row {
				if w := weights[i][t]; w != 0 {
					sum -= w * lp
				}
			}
		}
		r.TokenLoss, r.Logprobs = &sum, nil
	}
}
