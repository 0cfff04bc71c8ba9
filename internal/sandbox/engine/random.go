package engine

import (
	"hash/fnv"
	"math"

	"trainer/internal/sandbox/engine/kernel"
)

// stream is the random numbers of one name under one seed. Number i is a function of (seed, name, i): nothing to advance,
// nothing to save. Source of the mixing: SplitMix64 (Steele, Lea, Flood 2014).
type stream uint64

func newStream(seed uint64, name string) stream {
	h := fnv.New64a()
	h.Write([]byte(name))
	return stream(mix(mix(seed+golden) ^ h.Sum64()))
}

const golden = 0x9e3779b97f4a7c15

func mix(z uint64) uint64 {
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb
	return z ^ (z >> 31)
}

// uniform is in [0, 1), a multiple of 2^-53.
func (s stream) uniform(i uint64) float64 {
	return float64(mix(uint64(s)+(i+1)*golden)>>11) / (1 << 53)
}

// normal is the i-th standard normal number. Source: Box and Muller 1958, one of the two.
func (s stream) normal(i uint64) float64 {
	u, v := 1-s.uniform(2*i), s.uniform(2*i+1)
	_, cos := kernel.SinCos(v)
	return math.Sqrt(float64(-2*kernel.Log(u))) * cos
}
