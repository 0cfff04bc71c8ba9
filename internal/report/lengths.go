package report

import "trainer/runner"

// Lengths draws a histogram for width columns (0 is 80), a line a bound; nil where there is nothing to draw.
func Lengths(h runner.Histogram, width int) []string {
	if width <= 0 {
		width = 80
	}
	return histogram(h, width)
}
