package dataset

import "fmt"

// Tally is what became of the rows of a source. Read is the sum of Kept, Bad and Dropped.
type Tally struct {
	Name      string `json:"name"`           // as the recipe gives it
	Format    string `json:"format"`         // never auto
	Told      string `json:"format_by"`      // what told the format
	Read      int    `json:"rows_read"`      // up to limit
	Kept      int    `json:"rows"`           // before rows are held out
	Bad       int    `json:"bad"`            // and skipped, as dataset.on_bad_row says
	Untrained int    `json:"untrained"`      // of Bad: nothing of them would train
	Dropped   int    `json:"dropped"`        // overlong
	Cut       int    `json:"cut"`            // of Kept: overlong, and cut
	Tokens    int64  `json:"tokens"`         // of Kept
	Trained   int64  `json:"trained_tokens"` // of Tokens
}

// told sums a source up that was read.
func (t *tally) told(s *source) Tally {
	out := Tally{Name: s.section.Path, Format: s.format.name, Told: s.by(), Read: t.seen, Kept: len(t.entries),
		Bad: t.skipped, Untrained: t.skippedUntrained, Dropped: t.dropped, Cut: t.cut}
	for _, e := range t.entries {
		out.Tokens += int64(e.tokens)
		out.Trained += int64(e.trained)
	}
	return out
}

// by says what told the format.
func (s *source) by() string {
	if s.section.Format != "auto" {
		return "the recipe"
	}
	return fmt.Sprintf("the columns of %s", s.first)
}
