package diag

import "strings"

// Nearest returns the name that got most likely means, or "" when none is close: at most two edits (a swap of
// neighbours is one), at most a third of the length of got, letter case and the difference of - and _ being free.
// Of equally close names the first wins.
func Nearest(got string, names []string) string {
	best, least := "", len([]rune(got))/3
	if least > 2 {
		least = 2
	}
	least++
	for _, name := range names {
		if d := distance(fold(got), fold(name)); d < least {
			best, least = name, d
		}
	}
	return best
}

// DidYouMean is `; did you mean "name"?` for the nearest name, or "".
func DidYouMean(got string, names []string) string {
	if n := Nearest(got, names); n != "" {
		return `; did you mean "` + n + `"?`
	}
	return ""
}

func fold(s string) []rune { return []rune(strings.ReplaceAll(strings.ToLower(s), "-", "_")) }

// distance is the optimal string alignment distance: insertions, deletions, substitutions and swaps of neighbours.
func distance(a, b []rune) int {
	prev2, prev, cur := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(a); i++ {
		cur[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			cur[j] = min(prev[j]+1, cur[j-1]+1, prev[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				cur[j] = min(cur[j], prev2[j-2]+1)
			}
		}
		prev2, prev, cur = prev, cur, prev2
	}
	return prev[len(b)]
}
