package probe

import (
	"context"
	"fmt"
	"math"
	"slices"

	"trainer/internal/wire"
	"trainer/runner"
)

const (
	trained = 16 // positions of the row that gradients are seen by
	length  = 64
	faint   = 1e-6 // a weight whose position counts as trained, and gives next to no gradient
)

// rig is the row that gradients are seen by, and what has been learned of how its loss answers to steps.
type rig struct {
	noise float64 // share of the loss by which it differs from one time to the next
	loss  float64 // of the row, under the weights now
	eps   float64 // at which a step of the row's gradient lowers the loss by drop; 0: not found yet
	drop  float64
	err   error // why no eps was found
}

// lesson is the row: its first positions are trained, the others have the weight rest.
func lesson(rest float64) wire.Sample {
	r := row(length, 3)
	for t := trained; t < length; t++ {
		r.Weights[t] = rest
	}
	return r
}

// repeatedForward scores the lesson a few times, which tells the noise of its loss.
func (p *probe) repeatedForward(ctx context.Context) (Finding, error) {
	least, most := math.Inf(1), math.Inf(-1)
	const times = 5
	for range times {
		l, err := p.loss(ctx, true, lesson(0))
		if err != nil {
			return Finding{}, err
		}
		least, most, p.rig.loss = min(least, l), max(most, l), l
	}
	if !(least > 0) {
		return Finding{}, unknown("the cross-entropy of %d tokens is %g", trained, least)
	}
	if p.rig.noise = (most - least) / least; p.rig.noise == 0 {
		return Finding{Value: "identical", How: fmt.Sprintf("%d forward passes over the same tokens gave the same loss", times)}, nil
	}
	return Finding{Value: "differs", How: fmt.Sprintf("%d forward passes over the same tokens gave losses %.2g%% apart", times, 100*p.rig.noise)}, nil
}

// step takes a linear step over what has been gathered.
func (p *probe) step(ctx context.Context, eps float64) error {
	body, err := p.optimStep(linear(eps), 0)
	if err != nil {
		return err
	}
	return p.do(ctx, wire.KindOptimStep, body, 0, &wire.OptimStepOutput{})
}

// lowered scores the lesson, and returns by how much its loss is lower than it was when it was last scored.
func (p *probe) lowered(ctx context.Context) (float64, error) {
	now, err := p.loss(ctx, true, lesson(0))
	if err != nil {
		return 0, err
	}
	drop := p.rig.loss - now
	p.rig.loss = now
	return drop, nil
}

// once gathers the gradient of each batch and takes a step, which lowers the lesson's loss by drop.
func (p *probe) once(ctx context.Context, eps float64, batches ...[]wire.Sample) (drop float64, err error) {
	for _, b := range batches {
		if _, err := p.loss(ctx, false, b...); err != nil {
			return 0, err
		}
	}
	if err := p.step(ctx, eps); err != nil {
		return 0, err
	}
	return p.lowered(ctx)
}

// rounds is how many single steps make a measure of one.
const rounds = 3

// measure sets the rig's drop: the mean of a few steps, since a single one has the noise of two losses.
func (p *probe) measure(ctx context.Context) error {
	for range rounds {
		if _, err := p.loss(ctx, false, lesson(0)); err != nil {
			return err
		}
		if err := p.step(ctx, p.rig.eps); err != nil {
			return err
		}
	}
	drop, err := p.lowered(ctx)
	if err != nil {
		return err
	}
	if p.rig.drop = drop / rounds; !(p.rig.drop > 0) {
		return unknown("%d steps against the gradient changed the loss by %+.3g", rounds, -drop)
	}
	return nil
}

// calibrate finds an eps at which a step can be told from noise and is still small, and measures what it does.
func (p *probe) calibrate(ctx context.Context) error {
	if p.rig.eps > 0 || p.rig.err != nil {
		return p.rig.err
	}
	eps, err := p.findEps(ctx)
	if err == nil {
		p.rig.eps = eps
		err = p.measure(ctx)
	}
	if err != nil && reason(err) != "" {
		p.rig.err = err
	}
	return err
}

// findEps begins where a step does nothing.
func (p *probe) findEps(ctx context.Context) (float64, error) {
	if _, err := p.lowered(ctx); err != nil {
		return 0, err
	}
	seen, enough := max(3*p.rig.noise, 1e-4), max(10*p.rig.noise, 0.02)
	if enough > 0.1 {
		return 0, unknown("the loss of the same tokens differs by %.2g%% from one time to the next: steps cannot be told from noise", 100*p.rig.noise)
	}
	for eps, tries := 1e6, 0; eps > 1e-9 && tries < 24; tries++ {
		before := p.rig.loss
		drop, err := p.once(ctx, eps, []wire.Sample{lesson(0)})
		share := drop / before
		switch {
		case err != nil:
			return 0, err
		case share >= enough/2:
			return eps, nil
		case share < -enough:
			return 0, unknown("a step against the gradient raised the loss from %.4g to %.4g", before, p.rig.loss)
		case share < seen:
			eps /= min(100, 0.5*enough/seen) // so that a drop just below what can be seen does not become a leap
		default:
			eps /= min(100, 1.2*enough/share)
		}
	}
	return 0, unknown("no step moves the loss: its gradient does not reach the weights that Adam moves")
}

// firstStep takes a step too small to matter, and reads the session's counters.
func (p *probe) firstStep(ctx context.Context) (Finding, error) {
	body, err := p.optimStep(linear(1e6), 0)
	if err != nil {
		return Finding{}, err
	}
	if _, err := p.loss(ctx, false, lesson(0)); err != nil {
		return Finding{}, err
	}
	var out wire.OptimStepOutput
	if err := p.do(ctx, wire.KindOptimStep, body, 0, &out); err != nil {
		return Finding{}, err
	}
	st, err := p.service.Join(runner.SessionSpec{Resource: p.res.ID}, p.session).State(ctx)
	if err != nil {
		return Finding{}, err
	}
	said := "nothing"
	if out.Step != nil {
		said = fmt.Sprint(int64(*out.Step))
	}
	return Finding{
		Value: fmt.Sprintf("step %d, trainer_step %d, target %d, applied %d", st.Step, st.TrainerStep, st.Target, st.Applied),
		How:   "the session's counters after one optim-step, which answered " + said,
	}, nil
}

// copies and calls are how often the lesson is in a forward-backward, and how many of these come before a step: nine times
// the gradient, unless something divides it.
const copies, calls = 3, 3

// gradNormalization compares a step of the gradient of one row with one of the same row nine times.
func (p *probe) gradNormalization(ctx context.Context) (Finding, error) {
	if err := p.calibrate(ctx); err != nil {
		return Finding{}, err
	}
	// At a third of the rate nine times the gradient is three times the step, which is small enough to be linear.
	ratio, err := p.nineTimes(ctx, p.rig.eps*copies)
	if ratio *= copies; err == nil && ratio > copies*math.Sqrt(calls) {
		return Finding{Value: "none", How: nine(ratio)}, nil
	}
	if err == nil { // something divides: the full rate shows it better
		ratio, err = p.nineTimes(ctx, p.rig.eps)
	}
	switch {
	case err != nil:
		return Finding{}, err
	case !(ratio > 1/math.Sqrt(calls)):
		return Finding{}, unknown("%s: which decides nothing", nine(ratio))
	case ratio > math.Sqrt(calls):
		return Finding{}, unknown("%s: the gradient is divided by the rows of a call, or by the calls, but not both", nine(ratio))
	}
	return p.divisor(ctx, nine(ratio))
}

func nine(ratio float64) string {
	return fmt.Sprintf("%d rows over %d calls moved the loss %.1f times as far as one", copies*calls, calls, ratio)
}

// nineTimes takes a step of the lesson copies times in each of so many calls, and returns how far it moves the loss: 1 is
// what single steps do at the rig's eps, before and after.
func (p *probe) nineTimes(ctx context.Context, eps float64) (float64, error) {
	batch := make([]wire.Sample, copies)
	for i := range batch {
		batch[i] = lesson(0)
	}
	before := p.rig.drop
	many, err := p.once(ctx, eps, slices.Repeat([][]wire.Sample{batch}, calls)...)
	if err == nil {
		err = p.measure(ctx)
	}
	return many / math.Sqrt(before*p.rig.drop), err
}

// divisor tells whether what divides the gradient is the number of trained positions: with four times as many, of which
// the added ones have next to no weight, a step at four times the rate is the same.
func (p *probe) divisor(ctx context.Context, seen string) (Finding, error) {
	const more = length / trained
	one := p.rig.drop
	drop, err := p.once(ctx, p.rig.eps/more, []wire.Sample{lesson(faint)})
	if err != nil {
		return Finding{}, err
	}
	ratio := drop / one
	seen = fmt.Sprintf("%s; with %d times the positions, but no more gradient, it moved %.2f times as far", seen, more, ratio/more)
	switch {
	case ratio > 0.5 && ratio < math.Sqrt(more)*0.9:
		return Finding{Value: "valid_tokens", How: seen}, nil
	case ratio > math.Sqrt(more)*1.1:
		return Finding{}, unknown("%s: it is divided, but by the rows or by the sum of weights, which the sandbox has no value for", seen)
	}
	return Finding{}, unknown("%s: which decides nothing", seen)
}
