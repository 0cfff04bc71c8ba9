package runner

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"trainer/loss"
)

// local: the loss is computed here. A step is scored under the weights that it is to change, the gradient of the whole step
// is made of the log-probabilities, and is sent in as many requests as carry it; so how a step is cut changes nothing.
type local struct {
	name     string // of the loss
	place    string // of its program, where it is one
	loss     loss.Loss
	refs     *references // nil: the loss compares with no reference
	most     int         // sequences a request; 0: any number
	compares bool        // its rows are pairs or labelled
	fromRows bool        // nothing is sampled
	length   int         // tokens of a row; companions that are longer lose the start of their prompt
	// brief bounds the wait for a loss that is a program, as that of the run.
	brief func(context.Context) (context.Context, func())
}

// check: once a step is done, what the reference has not said is never said. Which weights a resource has where the recipe
// names registered ones, only the resource tells.
func (g local) check(ctx context.Context, r *run) error {
	p := &refPass{local: g, r: r, apart: r.in.Recipe.Reference != nil && r.in.Recipe.Reference.CheckpointID != nil, dry: true}
	if g.refs == nil || r.in.Recipe.BaseWeightsRef != nil || p.allowed() == nil {
		return nil
	}
	if err := g.know(ctx, r); err != nil {
		return err
	}
	return p.run(ctx)
}

// know reads what the disk has of the reference.
func (g local) know(ctx context.Context, r *run) error {
	space, err := r.frozen(ctx)
	if err != nil {
		return err
	}
	if s := r.in.Start; s != nil && s.Done > 0 && s.Dir != "" && g.refs.own {
		if err := g.refs.inherit(r.disk, filepath.Join(s.Dir, referencesName)); err != nil {
			return fmt.Errorf("take along what the reference has said to %s: %w", s.Dir, err)
		}
	}
	return g.refs.open(r.disk, space)
}

func (g local) open(ctx, stop context.Context, r *run) error {
	if g.refs == nil || g.refs.whole {
		return nil
	}
	if err := g.know(ctx, r); err != nil {
		return err
	}
	if r.in.Recipe.Reference.CheckpointID == nil {
		return nil // the session that trains has the weights, until its first step
	}
	return g.scoreApart(ctx, stop, r)
}

func (g local) begin(ctx, stop context.Context, r *run) error {
	if g.refs == nil || r.in.Recipe.Reference.CheckpointID != nil {
		return nil
	}
	return (&refPass{local: g, r: r, stop: stop}).run(ctx)
}

// prepare makes the requests that score the step.
func (g local) prepare(ctx context.Context, s Session, step int, b Batch) ([]item, error) {
	parts := append(slices.Clone(b.Parts), g.cut(g.companions(b.data()))...)
	return scoring(ctx, s, slot{step: step, kind: kindForward}, parts)
}

// scoring makes the requests that score parts, from slot on.
func scoring(ctx context.Context, s Session, from slot, parts [][]loss.Datum) ([]item, error) {
	items := make([]item, len(parts))
	for i, part := range parts {
		p, err := s.Prepare(ctx, scoringPass(part))
		if err != nil {
			return nil, err
		}
		items[i] = item{slot: slot{step: from.step, kind: from.kind, index: from.index + i}, body: p}
	}
	return items, nil
}

// scoringPass asks for every log-probability of data: under a weight of 0 the service returns none.
func scoringPass(data []loss.Datum) Forward {
	f := Forward{Loss: &loss.CrossEntropy{}, Data: make([]loss.Datum, len(data)), Logprobs: true}
	for i, d := range data {
		f.Data[i] = loss.Datum{Input: d.Input, Targets: d.Targets, Weights: slices.Repeat([]float64{1}, len(d.Targets)), RoutedExperts: d.RoutedExperts}
	}
	return f
}

// submit scores the step, which waits for every step before it, then sends the gradient.
func (g local) submit(ctx context.Context, l *ledger, b Batch, items []item, optim item) (collect, *operation, error) {
	now, err := l.score(ctx, items)
	if err != nil {
		return nil, nil, err
	}
	step, err := g.step(b.data())
	if err != nil {
		return nil, nil, err
	}
	res, err := g.eval(ctx, loss.Question{Use: loss.ToTrain, Step: optim.slot.step}, now, step)
	if err != nil {
		return nil, nil, g.failed(optim.slot.step, b.Rows, err)
	}
	customs, err := g.customs(ctx, l.session, b, res.Grads, optim)
	if err != nil {
		return nil, nil, err
	}
	ops, err := l.submit(ctx, append(customs, optim)...)
	if err != nil {
		return nil, nil, err
	}
	parts := ops[:len(customs)]
	return func(ctx context.Context) (map[string]float64, error) {
		for _, o := range parts {
			if _, err := o.wait(ctx); err != nil {
				return nil, err
			}
		}
		m := g.figures(res, now, step)
		m[trainLoss] = res.Value
		return m, nil
	}, ops[len(customs)], nil
}

// customs makes the requests that carry the gradients of a step, [B][T].
func (g local) customs(ctx context.Context, s Session, b Batch, grads [][]float64, optim item) ([]item, error) {
	var items []item
	for i, part := range b.Parts {
		p, err := s.Prepare(ctx, Custom{Data: part, Grads: grads[:len(part)]})
		if err != nil {
			return nil, fmt.Errorf("prepare the gradient of step %d: %w", optim.slot.step+1, err)
		}
		grads = grads[len(part):]
		items = append(items, item{slot: slot{step: optim.slot.step, kind: kindCustom, index: i}, body: p, expect: optim.expect - 1})
	}
	return items, nil
}

// evals asks for the held-out rows, all of which make one value, as one step would.
func (g local) evals(ctx context.Context, r *run, done, updates int) (collect, error) {
	data, err := r.heldOut(0, r.in.heldRows())
	if err != nil {
		return nil, err
	}
	parts := append(g.cut(data), g.cut(g.companions(data))...)
	items, err := scoring(ctx, r.session, slot{step: done, kind: kindEval}, parts)
	if err != nil {
		return nil, fmt.Errorf("prepare the evaluation: %w", err)
	}
	for i := range items {
		items[i].expect = updates
	}
	ops, err := r.ledger.submit(ctx, items...)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) (map[string]float64, error) {
		now, err := r.ledger.scored(ctx, ops)
		if err != nil {
			return nil, err
		}
		held, err := g.step(data)
		if err != nil {
			return nil, err
		}
		res, err := g.eval(ctx, loss.Question{Use: loss.ToEvaluate, Step: done}, now, held)
		if err != nil {
			return nil, fmt.Errorf("the loss of the held-out rows: %w", err)
		}
		m := map[string]float64{evalLoss: res.Value}
		for name, v := range g.figures(res, now, held) {
			m["eval/"+name] = v
		}
		return m, nil
	}, nil
}

// eval is the loss of step, once the answers fit it.
func (g local) eval(ctx context.Context, q loss.Question, now [][]float64, step []loss.Datum) (loss.Result, error) {
	if len(now) != len(step) {
		return loss.Result{}, fmt.Errorf("the service scored %d sequences of %d", len(now), len(step))
	}
	if l, ok := g.loss.(*loss.Command); ok {
		short, free := g.brief(ctx)
		defer free()
		return l.Ask(short, q, now, step)
	}
	return g.loss.Eval(now, step)
}

// failed is the error of a step whose loss could not be had. What a program says of the step it says again; that it died, or
// was cut short, is no fault of the step.
func (g local) failed(step int, rows []string, err error) error {
	_, asked := g.loss.(*loss.Command)
	if asked && !errors.Is(err, loss.ErrInvalid) && !errors.Is(err, loss.ErrNonFinite) {
		return &silent{g.place, step, err}
	}
	return &Unfit{step, rows, err}
}

// step is what the loss is computed of: data and its companions, with the reference where there is one.
func (g local) step(data []loss.Datum) ([]loss.Datum, error) {
	step := append(slices.Clone(data), g.companions(data)...)
	if g.refs == nil {
		return step, nil
	}
	for i := range step {
		ref, err := g.refs.of(step[i])
		if err != nil {
			return nil, err
		}
		step[i].RefLogprobs = ref
	}
	return step, nil
}

// companions are what the loss scores beside data, none longer than a row may be.
func (g local) companions(data []loss.Datum) []loss.Datum {
	l, ok := g.loss.(loss.Accompanied)
	if !ok {
		return nil
	}
	out := l.Companions(data)
	for i, d := range out {
		if over := len(d.Input) + 1 - g.length; over > 0 {
			over = min(over, len(d.Input)-1)
			out[i].Input, out[i].Targets, out[i].Weights = d.Input[over:], d.Targets[over:], d.Weights[over:]
		}
	}
	return out
}

// cut splits data over requests. Those of a group stay together where one request takes them.
func (g local) cut(data []loss.Datum) (parts [][]loss.Datum) {
	for len(data) > 0 {
		n := len(data)
		if g.most > 0 && n > g.most {
			n = g.most
			for n > 1 && data[n-1].Group == data[n].Group && !data[n].Mismatched {
				n--
			}
		}
		parts, data = append(parts, data[:n]), data[n:]
	}
	return parts
}

// figures are the metrics of a loss that is computed here: what it says of itself; where rows are compared, the log-probability
// of the sequences that are wanted and of those that are not; and how far all have moved from the reference, in nats a sequence.
func (g local) figures(res loss.Result, now [][]float64, step []loss.Datum) map[string]float64 {
	m := map[string]float64{}
	for name, v := range res.Metrics {
		switch name {
		case "accuracy", "margin":
			m["rewards/"+name] = v
		case "chosen_reward":
			m["rewards/chosen"] = v
		case "rejected_reward":
			m["rewards/rejected"] = v
		case g.name + "_loss": // is train/loss
		default:
			m["loss/"+name] = v
		}
	}
	if _, teaches := g.loss.(*loss.ReverseKL); teaches {
		if g.fromRows {
			m[reverseKL] = m["loss/reverse_kl_k1"]
		}
		return m
	}
	var sum, count [2]float64
	kl, rows := 0.0, 0.0
	for i, d := range step {
		if d.Mismatched {
			continue
		}
		side := 1
		if d.Desirable {
			side = 0
		}
		count[side]++
		rows++
		for t, w := range d.Weights {
			if w == 0 {
				continue
			}
			sum[side] += w * now[i][t]
			if d.RefLogprobs != nil {
				kl += w * (now[i][t] - d.RefLogprobs[t])
			}
		}
	}
	for side, name := range []string{"logps/chosen", "logps/rejected"} {
		if g.compares && count[side] > 0 {
			m[name] = sum[side] / count[side]
		}
	}
	if len(step) > 0 && step[0].RefLogprobs != nil {
		m["kl"] = kl / rows
	}
	return m
}

// data is what a step trains on, in order.
func (b Batch) data() []loss.Datum { return slices.Concat(b.Parts...) }
