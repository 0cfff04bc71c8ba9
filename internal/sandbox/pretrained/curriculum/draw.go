package curriculum

import "math/rand/v2"

// draw gives the random choices of one lesson. Only the source is borrowed: its numbers are specified, so a choice is the same
// under every version of Go.
type draw struct{ source *rand.PCG }

func newDraw(a, b uint64) *draw { return &draw{rand.NewPCG(a, b)} }

// below is a number from 0 to n-1.
func (d *draw) below(n int) int { return int(d.source.Uint64() % uint64(n)) }

// between is a number from low to high, both included.
func (d *draw) between(low, high int) int { return low + d.below(high-low+1) }

// of picks one.
func (d *draw) of(from []string) string { return from[d.below(len(from))] }

// word is letters drawn from an alphabet.
func (d *draw) word(length int, alphabet string) string {
	b := make([]byte, length)
	for i := range b {
		b[i] = alphabet[d.below(len(alphabet))]
	}
	return string(b)
}

// name is a made-up one, as Bolira: there are thousands, so that most are never trained.
func (d *draw) name() string {
	first := string("BDFGKLMNPRSTV"[d.below(13)])
	name := first + d.word(1, "aeiou")
	for range d.between(1, 2) {
		name += d.word(1, "bdfgklmnprstv") + d.word(1, "aeiou")
	}
	return name
}
