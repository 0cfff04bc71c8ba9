package schedule

// Constant stays at the peak.
type Constant struct{}

// Factor implements Schedule: 1.
func (*Constant) Factor(_, _ int) float64 { return 1 }
