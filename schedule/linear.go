package schedule

// Linear falls in a straight line. Without warm-up and floor step k of T has peak × (1 − (k − 1) / T), which is the
// service's documented loop.
type Linear struct{}

// Factor implements Schedule: 1 − u, u the share of the shape that is behind.
func (*Linear) Factor(step, steps int) float64 { return left(step, steps) }
