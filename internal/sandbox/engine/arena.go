package engine

// arena hands out scratch of unknown content that lives until the next reset, and after the first rounds allocates nothing.
type arena struct {
	slab     []float32
	at, peak int
}

// take returns n numbers, not cleared.
func (a *arena) take(n int) []float32 {
	from := a.at
	a.at += pad16(n)
	a.peak = max(a.peak, a.at)
	if a.at > len(a.slab) {
		return make([]float32, n)
	}
	return a.slab[from : from+n : from+n]
}

// reset takes everything back and grows to the most that was out at a time.
func (a *arena) reset() {
	if a.peak > len(a.slab) {
		a.slab = make([]float32, a.peak)
	}
	a.at = 0
}

// mark and release give back what was taken between them.
func (a *arena) mark() int { return a.at }

func (a *arena) release(mark int) { a.at = mark }
