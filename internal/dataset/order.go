package dataset

import (
	"math"
	"math/bits"
	"slices"
)

// What the draws of this package are for; part of their key, so that no two of them agree.
const (
	forShuffle = 1
	forShare   = 2 // plus the source's index, shifted
	forHeldOut = 3
)

// draw gives the random numbers of one purpose by their index: splitmix64 (Steele, Lea, Flood 2014) as a counter. The
// order of every run ever made depends on these bits, so they never change.
type draw uint64

const golden = 0x9e3779b97f4a7c15

func newDraw(seed int64, purpose, epoch uint64) draw {
	return draw(mix(mix(mix(uint64(seed)+golden)+purpose+golden) + epoch + golden))
}

func (d draw) at(n uint64) uint64 { return mix(uint64(d) + (n+1)*golden) }

func mix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// shuffle permutes s: Fisher and Yates from the end, index j of i+1 by the high half of a product, whose bias is below
// len(s) / 2^64.
func (d draw) shuffle(s []int) {
	for i := len(s) - 1; i > 0; i-- {
		j, _ := bits.Mul64(d.at(uint64(len(s)-1-i)), uint64(i+1))
		s[i], s[j] = s[j], s[i]
	}
}

// permutation is of 0 to n-1.
func (d draw) permutation(n int) []int {
	p := upTo(0, n)
	d.shuffle(p)
	return p
}

func upTo(from, to int) []int {
	s := make([]int, 0, to-from)
	for i := from; i < to; i++ {
		s = append(s, i)
	}
	return s
}

// part is the rows of one source in a set, and how often an epoch sees each.
type part struct {
	from, to int
	weight   float64
}

// times splits the weight: so many times every row, and so many rows once more.
func (p part) times() (whole, more int) {
	w, share := math.Modf(p.weight)
	return int(w), int(math.Round(share * float64(p.to-p.from)))
}

func (p part) epochLen() int {
	whole, more := p.times()
	return whole*(p.to-p.from) + more
}

// appendEpoch appends the part's rows in file order, as often as the weight says. The rows beyond whole times are a window of one
// seeded permutation that moves on with the epoch, so that over the epochs every row comes up equally often.
func (p part) appendEpoch(out []int, seed int64, source, epoch int) []int {
	whole, more := p.times()
	for range whole {
		for i := p.from; i < p.to; i++ {
			out = append(out, i)
		}
	}
	if more == 0 {
		return out
	}
	n, at := p.to-p.from, len(out)
	once := newDraw(seed, forShare+uint64(source)<<8, 0).permutation(n)
	start := uint64(epoch) % uint64(n) * uint64(more) % uint64(n)
	for i := range more {
		out = append(out, p.from+once[(int(start)+i)%n])
	}
	slices.Sort(out[at:])
	return out
}

// Order returns the rows of an epoch as indices into the set, [EpochLen]: a function of the set, seed and epoch (>= 0)
// alone. Shuffled, every epoch has another order; else it is file order, one source after the other.
func (s *Set) Order(seed int64, epoch int) []int {
	out := make([]int, 0, s.EpochLen())
	for i, p := range s.parts {
		out = p.appendEpoch(out, seed, i, epoch)
	}
	if s.shuffle {
		newDraw(seed, forShuffle, uint64(epoch)).shuffle(out)
	}
	return out
}

// EpochLen is the number of rows an epoch, the same for all: the rows of each source times its weight, rounded.
func (s *Set) EpochLen() int {
	n := 0
	for _, p := range s.parts {
		n += p.epochLen()
	}
	return n
}

// heldOut draws which k of n rows are held out, in file order.
func heldOut(seed int64, n, k int) []int {
	p := newDraw(seed, forHeldOut, 0).permutation(n)[:k]
	slices.Sort(p)
	return p
}
