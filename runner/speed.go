package runner

// speedSteps is over how many of the newest steps a speed is told. Steps that are in flight together may land in one
// instant, so the time of one says little.
const speedSteps = 16

// speed keeps the tokens and the seconds of the newest steps. The zero value is ready; not safe for concurrent use.
type speed struct {
	tokens, seconds [speedSteps]float64
	next, kept      int
}

// add takes a step and returns tokens a second over those that are kept; ok is false while no time has passed.
func (s *speed) add(tokens, seconds float64) (perSecond float64, ok bool) {
	s.tokens[s.next], s.seconds[s.next] = tokens, seconds
	s.next, s.kept = (s.next+1)%speedSteps, min(s.kept+1, speedSteps)
	var all, took float64
	for i := range s.tokens {
		all, took = all+s.tokens[i], took+s.seconds[i]
	}
	return all / took, took > 0
}

// perStep is how many seconds one of the newest steps took; 0 before the first.
func (s *speed) perStep() float64 {
	took := 0.0
	for _, t := range s.seconds {
		took += t
	}
	return took / float64(max(1, s.kept))
}
