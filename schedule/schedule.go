// Package schedule gives the learning rate as a pure function of the step: no state, no clock, so that a resumed run,
// a replayed step and a plan made a week earlier agree on every rate. A shape says how the rate falls after warm-up, one
// file a shape; Ramp puts the warm-up before it and the floor under it, and Rates gives a whole run.
package schedule

// Schedule is the shape of the decay after warm-up: a struct whose fields are its recipe parameters (yaml tags are the
// keys, validate tags their bounds).
type Schedule interface {
	// Factor returns the share of the peak, in [0, 1], for 0-based step of steps, both counted after warm-up:
	// 1 at step 0 (but for one_cycle), the end of the shape at step == steps, which is one past the last.
	Factor(step, steps int) float64
}

// Kind is a row of the table of schedules. New returns a pointer to a fresh struct with its defaults set.
type Kind struct {
	Name string
	New  func() Schedule
}

// Kinds is the table, in the order of the reference; a new schedule is one file and one row.
func Kinds() []Kind {
	return []Kind{
		{"constant", func() Schedule { return &Constant{} }},
		{"linear", func() Schedule { return &Linear{} }},
		{"cosine", func() Schedule { return &Cosine{} }},
		{"cosine_with_restarts", func() Schedule { return &CosineWithRestarts{NumCycles: 1} }},
		{"polynomial", func() Schedule { return &Polynomial{Power: 1} }},
		{"inverse_sqrt", func() Schedule { return &InverseSqrt{} }},
		{"exponential", func() Schedule { return &Exponential{} }},
		{"step", func() Schedule { return &Step{Gamma: 0.1} }},
		{"piecewise", func() Schedule { return &Piecewise{} }},
		{"wsd", func() Schedule { return &WSD{DecayRatio: 0.2, Decay: "linear"} }},
		{"one_cycle", func() Schedule { return &OneCycle{StartRatio: 0.04} }},
	}
}

// left is the share of the shape that is still ahead, in [0, 1]: 1 at step 0, 0 at steps and after it. It is taken from
// what remains rather than as 1 - step/steps, which would lose the last digits where they decide whether a rate is 0.
func left(step, steps int) float64 {
	switch {
	case step >= steps:
		return 0
	case step <= 0:
		return 1
	}
	return float64(steps-step) / float64(steps)
}

// gone is the share of the shape that is behind, in [0, 1].
func gone(step, steps int) float64 {
	switch {
	case step >= steps:
		return 1
	case step <= 0:
		return 0
	}
	return float64(step) / float64(steps)
}
