package loss

import (
	"errors"
	"fmt"
	"math"
)

// Slopes is what finite differences say of a gradient.
type Slopes struct {
	Positions int     // that were moved
	Worst     float64 // relative error of the gradient at the worst of them
	Sequence  int     // where it is
	Position  int
	Grad      float64 // what the loss gives there
	Slope     float64 // what the value does there
	Same      bool    // the same question had the same answer, to the bit
}

// Tolerance is the relative error that a right gradient stays below, where the loss is computed in float64.
const Tolerance = 1e-4

// Right says whether the gradient is that of the value.
func (s Slopes) Right() bool { return s.Worst <= Tolerance }

// Of the differences.
const (
	nudge        = 1e-4 // nats
	mostNudged   = 12   // positions: each costs two evaluations
	bent         = 1e-2 // relative difference of the two slopes beside a kink
	leastOfScale = 1e-3 // a gradient this much smaller than the largest is compared with that share of it
)

// ErrNothingTrained is of a step in which no position has a weight.
var ErrNothingTrained = errors.New("no position has a weight")

// MadeUp returns log-probabilities of a step as a model might have them, between −4 and −0.1, [B][T], the same for the same
// step, and the step with others as its reference, so that neither is a special case. step is not changed.
func MadeUp(step []Datum) (now [][]float64, out []Datum) {
	n := 0
	for _, d := range step {
		row := make([]float64, len(d.Weights))
		ref := make([]float64, len(d.Weights))
		for t := range row {
			n++
			row[t], ref[t] = filling(n, math.Phi), filling(n, math.Sqrt2)
		}
		d.RefLogprobs = ref
		now, out = append(now, row), append(out, d)
	}
	return now, out
}

// filling is the n-th of a sequence that fills the interval evenly.
func filling(n int, by float64) float64 {
	_, frac := math.Modf(float64(n) * by)
	return -4 + 3.9*frac
}

// Compare holds the gradient of eval, a loss of step, to central differences of its value at now, [B][T], which is as it was
// when it returns. Where the value has a kink, whatever lies between its two slopes is right. The error is that of eval, or
// ErrNothingTrained.
func Compare(eval func(now [][]float64) (Result, error), now [][]float64, step []Datum) (Slopes, error) {
	here, err := eval(now)
	if err != nil {
		return Slopes{}, err
	}
	again, err := eval(now)
	if err != nil {
		return Slopes{}, err
	}
	places := positions(step)
	if len(places) == 0 {
		return Slopes{}, ErrNothingTrained
	}
	out := Slopes{Positions: len(places), Same: same(here, again), Worst: -1}
	least := max(leastOfScale*largest(here.Grads), math.SmallestNonzeroFloat32)
	for _, p := range places {
		up, err := moved(eval, now, p, nudge)
		if err != nil {
			return Slopes{}, err
		}
		down, err := moved(eval, now, p, -nudge)
		if err != nil {
			return Slopes{}, err
		}
		grad := here.Grads[p.sequence][p.position]
		slope, off := slopeAt(here.Value, up, down, grad, least)
		if off > out.Worst {
			out.Worst, out.Sequence, out.Position, out.Grad, out.Slope = off, p.sequence, p.position, grad, slope
		}
	}
	return out, nil
}

type place struct{ sequence, position int }

// positions are some that have a weight: first, last and middle ones of the sequences, in turn.
func positions(step []Datum) (out []place) {
	var trained [][]int
	for _, d := range step {
		var ts []int
		for t, w := range d.Weights {
			if w != 0 {
				ts = append(ts, t)
			}
		}
		trained = append(trained, ts)
	}
	seen := map[place]bool{}
	for _, share := range []float64{0, 1, 0.5, 0.25, 0.75} {
		for i, ts := range trained {
			if len(ts) == 0 || len(out) == mostNudged {
				continue
			}
			p := place{i, ts[int(math.Round(share*float64(len(ts)-1)))]}
			if !seen[p] {
				seen[p] = true
				out = append(out, p)
			}
		}
	}
	return out
}

func moved(eval func(now [][]float64) (Result, error), now [][]float64, p place, by float64) (float64, error) {
	row := now[p.sequence]
	was := row[p.position]
	defer func() { row[p.position] = was }()
	row[p.position] += by
	r, err := eval(now)
	if err != nil {
		return 0, fmt.Errorf("sequence %d, position %d, moved by %g: %w", p.sequence, p.position, by, err)
	}
	return r.Value, nil
}

// slopeAt is the slope that grad is compared with, and how far off it is, relative to the larger of both and at least least.
func slopeAt(here, up, down, grad, least float64) (slope, off float64) {
	left, right := (here-down)/nudge, (up-here)/nudge
	slope = (up - down) / (2 * nudge)
	if math.Abs(right-left) > bent*max(math.Abs(left), math.Abs(right), least) { // a kink: any slope between is one
		slope = min(max(grad, min(left, right)), max(left, right))
	}
	return slope, math.Abs(grad-slope) / max(math.Abs(grad), math.Abs(slope), least)
}

func largest(grads [][]float64) (most float64) {
	for _, row := range grads {
		for _, g := range row {
			most = max(most, math.Abs(g))
		}
	}
	return most
}

func same(a, b Result) bool {
	if a.Value != b.Value {
		return false
	}
	for i := range a.Grads {
		for t := range a.Grads[i] {
			if a.Grads[i][t] != b.Grads[i][t] {
				return false
			}
		}
	}
	return true
}
