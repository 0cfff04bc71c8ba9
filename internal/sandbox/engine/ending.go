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
