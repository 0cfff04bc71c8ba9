package schedule

import (
	"fmt"
	"math"
)

// WSD is warm-up, stable, decay: the peak is held, and the last DecayRatio of the run falls. Source: Hu et al. 2024
// (arXiv 2404.06395); the forms as in transformers' get_wsd_schedule and Hägele et al. 2024 (arXiv 2405.18392).
type WSD struct {
	// DecayRatio is the share of the whole run, warm-up included, that decays: round(ratio × T) steps; 0.2 by default.
	DecayRatio float64 `yaml:"decay_ratio" validate:"gte=0,lte=1"`
	// Decay is the form of the fall: linear (the default), cosine, or 1-sqrt, which falls fast first.
	Decay string `yaml:"decay" validate:"oneof=linear cosine 1-sqrt"`
}

// Factor implements Schedule: the share of the peak without a warm-up.
func (w *WSD) Factor(step, steps int) float64 { return w.factor(step, steps, w.decaySteps(steps)) }

func (w *WSD) share(r Ramp, step, steps int) float64 {
	return r.above(w.factor(step, steps, w.decaySteps(r.Warmup+steps)))
}

func (w *WSD) decaySteps(total int) int { return int(math.Round(w.DecayRatio * float64(total))) }

// factor falls over the last decay steps of steps: the first of them is still at the peak, as everywhere.
func (w *WSD) factor(step, steps, decay int) float64 {
	stable := steps - decay
	if step < stable || decay == 0 {
		return 1
	}
	switch v := left(step-stable, decay); w.Decay {
	case "cosine":
		return halfCosine(v)
	case "1-sqrt":
		// 1 − √u without the cancellation at its end.
		return v / (1 + math.Sqrt(gone(step-stable, decay)))
	default:
		return v
	}
}

// fits refuses a warm-up that reaches into the decay: the rate would fall from a peak that it never had.
func (w *WSD) fits(warmup, total int) error {
	if decay := w.decaySteps(total); warmup+decay > total {
		return fmt.Errorf("wsd: warm-up of %d steps and decay of %d do not fit in a run of %d", warmup, decay, total)
	}
	return nil
}
