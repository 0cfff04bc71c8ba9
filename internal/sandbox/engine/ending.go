package engine

import (
	"bytes"
	"slices"
)

// ending watches one completion for the end of it.
type ending struct {
	rule *Sampling
	text []byte // the last bytes, as many as a stop text may need
}

// after reports whether the completion ends with id, its newest token. A stop text may begin and end within tokens.
func (e *ending) after(id int32) bool {
	if slices.Contains(e.rule.StopIDs, id) {
		return true
	}
	if len(e.rule.StopTexts) == 0 {
		return false
	}
	longest := 0
	e.text = append(e.text, e.rule.Text(id)...)
	for _, stop := range e.rule.StopTexts {
		if bytes.Contains(e.text, []byte(stop)) {
			return true
		}
		longest = max(longest, len(stop))
	}
	e.text = e.text[max(0, len(e.text)-longest+1):]
	return false
}

// Before is how many of a completion's tokens come before the stop that ended it: before the stop id, or the token that the
// stop text begins in. It is all of them where none ended it.
func (c Completion) Before(s *Sampling) int {
	last := len(c.Tokens) - 1
	if !c.Stopped {
		return last + 1
	}
	if slices.Contains(s.StopIDs, c.Tokens[last]) {
		return last
	}
	var text []byte
	var ends []int
	for _, id := range c.Tokens {
		text = append(text, s.Text(id)...)
		ends = append(ends, len(text))
	}
	first := len(text)
	for _, stop := range s.StopTexts {
		if at := bytes.Index(text, []byte(stop)); at >= 0 {
			first = min(first, at)
		}
	}
	return slices.IndexFunc(ends, func(end int) bool { return end > first })
}
