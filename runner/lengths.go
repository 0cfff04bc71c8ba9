package runner

import "trainer/internal/dataset"

// Lengths counts the rows of a set, each once, by their length in tokens.
func Lengths(s *dataset.Set) Histogram { return histogram(s) }
