package report

import (
	"math"
	"slices"
)

// point is a value after X steps; a Y that is not finite is a gap in the curve.
type point struct {
	X int
	Y float64
}

// gap tells whether nothing can be drawn there: not finite, or so large that axes could not hold it.
func (p point) gap() bool { return !(math.Abs(p.Y) < 1e100) }

// series is points ascending by X, each X once.
type series []point

// add appends a point. One at or before the newest X replaces what came from there on: those steps were taken back.
func (s series) add(p point) series { return append(s.until(p.X), p) }

// until is the points before x.
func (s series) until(x int) series {
	i, _ := slices.BinarySearchFunc(s, x, func(p point, x int) int { return p.X - x })
	return s[:i]
}

// gaps counts the points that cannot be drawn.
func (s series) gaps() (n int) {
	for _, p := range s {
		if p.gap() {
			n++
		}
	}
	return n
}

// span is the least and the greatest value that can be drawn; ok is false when there is none.
func (s series) span() (low, high float64, ok bool) {
	for _, p := range s {
		switch {
		case p.gap():
		case !ok:
			low, high, ok = p.Y, p.Y, true
		default:
			low, high = min(low, p.Y), max(high, p.Y)
		}
	}
	return low, high, ok
}

// downsample returns at most most points of s in its order, most >= 5: the first, the last, and of each of equal
// stretches between them the lowest, the highest and a gap. So no extreme is lost and every point is one of s.
func (s series) downsample(most int) series {
	if len(s) <= most {
		return s
	}
	inner := s[1 : len(s)-1]
	buckets := (most - 2) / 3
	out := make(series, 0, most)
	out = append(out, s[0])
	for b := range buckets {
		out = append(out, extremes(inner[b*len(inner)/buckets:(b+1)*len(inner)/buckets])...)
	}
	return append(out, s[len(s)-1])
}

// extremes are the lowest, the highest and the first undrawable point of s, in order, each once.
func extremes(s series) series {
	low, high, hole := -1, -1, -1
	for i, p := range s {
		switch {
		case p.gap():
			if hole < 0 {
				hole = i
			}
		case low < 0:
			low, high = i, i
		case p.Y < s[low].Y:
			low = i
		case p.Y > s[high].Y:
			high = i
		}
	}
	at := []int{low, high, hole}
	slices.Sort(at)
	var out series
	for _, i := range slices.Compact(at) {
		if i >= 0 {
			out = append(out, s[i])
		}
	}
	return out
}

// smooth is the exponential moving average over about window points, corrected for its start (Kingma and Ba 2015, arXiv
// 1412.6980, section 3), so the first value is the series' own. A gap stays a gap and does not enter the average.
func (s series) smooth(window int) series {
	keep := 1 - 1/float64(max(1, window))
	mean, weight := 0.0, 0.0
	out := make(series, len(s))
	for i, p := range s {
		if out[i] = p; p.gap() {
			continue
		}
		mean, weight = keep*mean+(1-keep)*p.Y, keep*weight+(1-keep)
		out[i].Y = mean / weight
	}
	return out
}

// median of the values that can be drawn; NaN of none.
func (s series) median() float64 {
	var values []float64
	for _, p := range s {
		if !p.gap() {
			values = append(values, p.Y)
		}
	}
	if len(values) == 0 {
		return math.NaN()
	}
	slices.Sort(values)
	return values[len(values)/2]
}

// sum of the values that can be drawn.
func (s series) sum() (total float64) {
	for _, p := range s {
		if !p.gap() {
			total += p.Y
		}
	}
	return total
}

// at is the value at x, where there is one.
func (s series) at(x int) (float64, bool) {
	i, ok := slices.BinarySearchFunc(s, x, func(p point, x int) int { return p.X - x })
	if !ok {
		return 0, false
	}
	return s[i].Y, true
}
