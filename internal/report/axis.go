package report

import (
	"math"
	"strconv"
)

// axis maps values to the share of its length, 0 at the low end.
type axis struct {
	low, high float64 // low < high
	log       bool    // then low > 0
}

// logFrom is the ratio of greatest to least from which a linear axis would hide the smaller values.
const logFrom = 200

// newAxis holds [low, high] with a little air; values of very different size, all above 0, get a logarithmic one unless
// linear says otherwise.
func newAxis(low, high float64, linear bool) axis {
	if low > 0 && high/low > logFrom && !linear {
		return axis{low / 1.1, high * 1.1, true}
	}
	air := (high - low) * 0.05
	size := math.Max(math.Abs(low), math.Abs(high))
	switch {
	case size == 0:
		air = 1
	case high-low <= size*1e-9: // one value, as far as a reader cares
		air = size * 0.1
	}
	a := axis{low: low - air, high: high + air}
	if low >= 0 && low < high*0.5 {
		a.low = 0
	}
	return a
}

// share of the axis at v, 0 to 1 within it.
func (a axis) share(v float64) float64 {
	if a.log {
		return (math.Log(v) - math.Log(a.low)) / (math.Log(a.high) - math.Log(a.low))
	}
	return (v - a.low) / (a.high - a.low)
}

// ticks are round values within the axis, about count of them and never more than three times that.
func (a axis) ticks(count int) []float64 {
	if a.log {
		return a.decades(count)
	}
	step := roundUp((a.high - a.low) / float64(count) / 1.5)
	var ticks []float64
	first := math.Ceil(a.low / step)
	for i := range 3 * count {
		v := (first + float64(i)) * step
		if v > a.high {
			break
		}
		ticks = append(ticks, v)
	}
	return ticks
}

// decades are the powers of ten, with 2 and 5 of each where the axis has few.
func (a axis) decades(count int) []float64 {
	from, to := int(math.Floor(math.Log10(a.low))), int(math.Ceil(math.Log10(a.high)))
	every := max(1, (to-from)/count)
	factors := []float64{1, 2, 5}
	if math.Log10(a.high/a.low) > 0.6*float64(count) {
		factors = factors[:1]
	}
	var ticks []float64
	for e := from; e <= to; e += every {
		for _, f := range factors {
			if v := f * math.Pow10(e); v >= a.low && v <= a.high {
				ticks = append(ticks, v)
			}
		}
	}
	return ticks
}

// roundUp is the next of 1, 2, 5 times a power of ten.
func roundUp(v float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(v)))
	for _, f := range []float64{1, 2, 5} {
		if v <= f*power {
			return f * power
		}
	}
	return 10 * power
}

// label is a tick's text, with the digits that tell it from its neighbours.
func (a axis) label(v float64) string {
	size := math.Max(math.Abs(a.low), math.Abs(a.high))
	switch {
	case a.log:
		return strconv.FormatFloat(v, 'g', 4, 64)
	case v == 0:
		return "0"
	case size >= 1e4 && size < 1e12 && a.high-a.low >= size/100:
		return Short(v)
	case size >= 1e5 || size < 1e-2:
		digits := math.Ceil(math.Log10(size / (a.high - a.low)))
		return strconv.FormatFloat(v, 'e', 1+int(math.Min(12, math.Max(0, digits))), 64)
	}
	decimals := math.Ceil(-math.Log10((a.high - a.low) / 8))
	return strconv.FormatFloat(v, 'f', int(math.Min(12, math.Max(0, decimals))), 64)
}

// stepTicks are round step numbers from first to last, about count of them.
func stepTicks(first, last, count int) []int {
	step := max(1, int(roundUp(math.Max(1, float64(last-first)/float64(count)))))
	var ticks []int
	for v := (first + step - 1) / step * step; v <= last; v += step {
		ticks = append(ticks, v)
	}
	return ticks
}
