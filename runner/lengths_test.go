package runner

import (
	"slices"
	"testing"
)

func TestHistogram(t *testing.T) {
	for _, c := range []struct{ lengths, bounds, counts []int }{
		{nil, []int{16}, []int{0}},
		{[]int{1, 16}, []int{16}, []int{2}},
		{[]int{1, 16, 17, 65}, []int{16, 32, 64, 128}, []int{2, 1, 0, 1}},
	} {
		if h := NewHistogram(c.lengths); !slices.Equal(h.Bounds, c.bounds) || !slices.Equal(h.Counts, c.counts) {
			t.Errorf("%v: got %v %v, want %v %v", c.lengths, h.Bounds, h.Counts, c.bounds, c.counts)
		}
	}
}
