package report

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"trainer/runner"
)

// RowStats are what the rows of a recipe hold. Rows of BadRows and of overlong ones are in no set.
type RowStats struct {
	Recipe    string        `json:"recipe"`
	Sources   []SourceStats `json:"sources"`
	Sets      []SetStats    `json:"sets"`
	BadRows   []string      `json:"bad_rows,omitempty"` // the first of them, with places
	Doubled   Doubles       `json:"doubled"`            // rows of train with the tokens of an earlier one
	Leaked    Doubles       `json:"leaked"`             // rows of validation with the tokens of one of train
	MaxLength int           `json:"max_length"`         // dataset.max_length, in tokens
	Overlong  string        `json:"overlong"`           // dataset.overlong
	OnBadRow  string        `json:"on_bad_row"`         // dataset.on_bad_row
}

// SourceStats is what became of the rows of a source. Read is the sum of Kept, Bad and Dropped.
type SourceStats struct {
	Name      string `json:"name"`
	Format    string `json:"format"`
	Told      string `json:"format_told"` // what told the format
	Read      int    `json:"rows_read"`
	Kept      int    `json:"rows"`
	Bad       int    `json:"bad"`
	Untrained int    `json:"untrained"`      // of Bad: nothing of them would train
	Dropped   int    `json:"dropped"`        // overlong
	Cut       int    `json:"cut"`            // of Kept: overlong, and cut
	Tokens    int64  `json:"tokens"`         // of Kept
	Trained   int64  `json:"trained_tokens"` // of Tokens
}

// SetStats counts a set. Rows are counted once, whatever their source's weight; lengths are of examples, in tokens.
type SetStats struct {
	Name     string               `json:"name"` // train or validation
	Rows     int                  `json:"rows"`
	Examples int                  `json:"examples"` // that the rows make: at least one each
	Tokens   int64                `json:"tokens"`
	Trained  int64                `json:"trained_tokens"`
	Roles    map[string]RoleStats `json:"roles"` // "": of no message
	Shortest int                  `json:"shortest"`
	Median   int                  `json:"median"`
	P99      int                  `json:"p99"`
	Lengths  runner.Histogram     `json:"lengths"`
}

// RoleStats counts the tokens of the messages of a role.
type RoleStats struct {
	Tokens  int64 `json:"tokens"`
	Trained int64 `json:"trained_tokens"`
}

// Doubles are rows that repeat another.
type Doubles struct {
	Rows  int      `json:"rows"`
	First []string `json:"first,omitempty"` // "a.jsonl:7 is a.jsonl:3"
}

// shownDoubles bounds the doubles that are listed as text.
const shownDoubles = 5

// Stats writes s as text for width columns; 0 is 80.
func Stats(w io.Writer, s RowStats, width int) error {
	var b strings.Builder
	if err := sourceTable(&b, s.Sources); err != nil {
		return err
	}
	for _, set := range s.Sets {
		b.WriteByte('\n')
		if err := setText(&b, set, width); err != nil {
			return err
		}
	}
	for _, line := range s.findings() {
		b.WriteString(line + "\n")
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("writing the counts: %w", err)
	}
	return nil
}

func sourceTable(w io.Writer, sources []SourceStats) error {
	var rows [][]string
	for _, s := range sources {
		rows = append(rows, []string{s.Name, Count(s.Read), Count(s.Kept), Count(s.Bad), Count(s.Untrained), Count(s.Dropped), Count(s.Cut), Count(s.Tokens), Count(s.Trained), s.Format, s.Told})
	}
	return Table(w, []string{"source", "read", "kept", "bad", "untrained", "dropped", "cut", "tokens", "trained", "format", "told"}, rows)
}

func setText(b *strings.Builder, s SetStats, width int) error {
	fmt.Fprintf(b, "%s: %s rows, %s tokens, %s of them trained (%s)\n", s.Name, Count(s.Rows), Count(s.Tokens), Count(s.Trained), percent(s.Trained, s.Tokens))
	if s.Examples > s.Rows {
		fmt.Fprintf(b, "%s examples: a pair is two, and a template that writes history otherwise makes several of a row\n", Count(s.Examples))
	}
	fmt.Fprintf(b, "tokens an example: %s to %s, half of them at most %s, 99 %% at most %s\n", Count(s.Shortest), Count(s.Lengths.Longest), Count(s.Median), Count(s.P99))
	for _, line := range Lengths(s.Lengths, width) {
		b.WriteString("  " + line + "\n")
	}
	if len(s.Roles) == 1 {
		if _, none := s.Roles[""]; none {
			return nil
		}
	}
	var rows [][]string
	for _, role := range slices.Sorted(maps.Keys(s.Roles)) {
		n := s.Roles[role]
		if role == "" {
			role = "(of no message)"
		}
		rows = append(rows, []string{role, Count(n.Tokens), Count(n.Trained)})
	}
	return Table(b, []string{"role", "tokens", "trained"}, rows)
}

// findings are what to look at, with the way out; nothing where all is well.
func (s RowStats) findings() []string {
	var bad, untrained, dropped, cut int
	for _, src := range s.Sources {
		bad, untrained, dropped, cut = bad+src.Bad, untrained+src.Untrained, dropped+src.Dropped, cut+src.Cut
	}
	var out []string
	add := func(lines ...string) { out = append(append(out, ""), lines...) }
	if bad > 0 {
		line := fmt.Sprintf("bad rows: %s", Count(bad))
		if untrained > 0 {
			line += fmt.Sprintf(", of which %s would train nothing", Count(untrained))
		}
		if s.OnBadRow == "error" {
			line += "; a run refuses them, unless dataset.on_bad_row is skip"
		}
		add(append([]string{line}, listed(s.BadRows, bad)...)...)
	}
	switch {
	case dropped > 0 && s.Overlong == "error":
		add(fmt.Sprintf("rows of more than %s tokens: %s; a run refuses them: raise dataset.max_length, or set dataset.overlong to drop, keep_start or keep_end", Count(s.MaxLength), Count(dropped)))
	case dropped > 0:
		add(fmt.Sprintf("rows of more than %s tokens, dropped: %s", Count(s.MaxLength), Count(dropped)))
	case cut > 0:
		add(fmt.Sprintf("rows of more than %s tokens, cut: %s", Count(s.MaxLength), Count(cut)))
	}
	if d := s.Doubled; d.Rows > 0 {
		add(append([]string{fmt.Sprintf("rows of train with the tokens of an earlier one: %s", Count(d.Rows))}, listed(d.First[:min(shownDoubles, len(d.First))], d.Rows)...)...)
	}
	if d := s.Leaked; d.Rows > 0 {
		add(append([]string{fmt.Sprintf("rows of validation with the tokens of one of train: %s; eval/loss is better on them than on unseen rows", Count(d.Rows))}, listed(d.First[:min(shownDoubles, len(d.First))], d.Rows)...)...)
	}
	return out
}

// listed is some lines of all.
func listed(lines []string, all int) []string {
	out := make([]string, 0, len(lines)+1)
	for _, line := range lines {
		out = append(out, "  "+printable(line))
	}
	if len(lines) < all {
		out = append(out, fmt.Sprintf("  and %s more", Count(all-len(lines))))
	}
	return out
}
