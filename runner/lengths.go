package runner

// NewHistogram counts lengths, in tokens, which are in ascending order. Its bounds double from 16 on, as those of a plan do.
func NewHistogram(lengths []int) Histogram {
	var h Histogram
	if n := len(lengths); n > 0 {
		h.Longest = lengths[n-1]
	}
	for bound, at := 16, 0; ; bound *= 2 {
		from := at
		for at < len(lengths) && lengths[at] <= bound {
			at++
		}
		h.Bounds, h.Counts = append(h.Bounds, bound), append(h.Counts, at-from)
		if bound >= h.Longest {
			return h
		}
	}
}
