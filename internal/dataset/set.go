package dataset

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"

	"trainer/internal/diag"
	"trainer/loss"
)

// Set is rows that were checked, in file order, one source after the other. It holds where they are, not what they say.
// It is read-only and safe for concurrent use.
type Set struct {
	x       *index
	entries []entry
	parts   []part
	sources []*source // of parts
	shuffle bool
	tag     string // tells the sets of one file apart
}

// Row is a row of the file. Data is a datum of [T] = tokens-1 positions for each of its examples: one, but for a conversation
// that a template writes otherwise once it is history. Of a pair they are two, the chosen side first, which is Desirable, and
// both of one Group. A labelled row is Desirable where its label says so.
type Row struct {
	At   diag.Pos
	Data []loss.Datum
}

// SourceInfo is a source as a set has it. SHA256 is of the file; of the files' hashes, a line each, where a glob has
// several.
type SourceInfo struct {
	Name   string // as the recipe gives it
	Format string // never auto
	Told   string // how the format was told, for a person
	Files  int
	Rows   int // in this set, each once
	SHA256 string
	Counts Counts
}

// Counts are the rows of a whole source, whichever set they went to.
type Counts struct {
	Seen     int // up to the limit
	Bad      int // left out under on_bad_row: skip
	Overlong int // left out under overlong: drop
	Same     int // pairs left out under on_identical_pair: drop
	Cut      int // to max_length, under overlong: keep_start or keep_end

	Untrained       int   // of Bad: nothing of them would train
	Tokens, Trained int64 // of the rows that are not left out
}

// add counts the tokens of rows.
func (c *Counts) add(entries []entry) {
	for _, e := range entries {
		c.Tokens += int64(e.tokens)
		c.Trained += int64(e.trained)
	}
}

// divide splits the set: held are indices in ascending order. Both parts keep file order and sources; a source of which
// one has no row stays in it with none.
func (s *Set) divide(held []int, tag string) (train, out *Set) {
	train = &Set{x: s.x, sources: s.sources, shuffle: s.shuffle, tag: "train, less " + tag, entries: make([]entry, 0, len(s.entries)-len(held))}
	out = &Set{x: s.x, sources: s.sources, tag: tag, entries: make([]entry, 0, len(held))}
	for _, p := range s.parts {
		a, b := len(train.entries), len(out.entries)
		for i := p.from; i < p.to; i++ {
			if len(held) > 0 && held[0] == i {
				held = held[1:]
				out.entries = append(out.entries, s.entries[i])
				continue
			}
			train.entries = append(train.entries, s.entries[i])
		}
		train.parts = append(train.parts, part{a, len(train.entries), p.weight})
		out.parts = append(out.parts, part{b, len(out.entries), 1})
	}
	return train, out
}

// Len is the number of rows, each once.
func (s *Set) Len() int { return len(s.entries) }

// Count returns the tokens of row i, of all its examples after cutting, and how many of them are predicted with a weight. Where
// the loss sends a row as copies, each of them counts.
func (s *Set) Count(i int) (tokens, trained int) {
	return int(s.entries[i].tokens), int(s.entries[i].trained)
}

// PerRow is the number of sequences that a row makes: 2 of pairs, else 1.
func (s *Set) PerRow() int {
	for _, src := range s.sources {
		if src.format.name == "preference" {
			return 2
		}
	}
	return 1
}

// Sequences is how many sequences row i is sent as, each of as many tokens: 1, but where the loss sends a row as copies.
func (s *Set) Sequences(i int) int {
	if s.x.soft == nil {
		return 1
	}
	return int(s.entries[i].tokens / s.entries[i].longest)
}

// Longest returns the tokens of row i's longest sequence: of a pair, the longer side.
func (s *Set) Longest(i int) int { return int(s.entries[i].longest) }

// Taught returns the tokens of the prompt that a teacher is given of row i.
func (s *Set) Taught(i int) int {
	if n := s.entries[i].taught; n > 0 {
		return int(n)
	}
	return int(s.entries[i].tokens)
}

// At is the place of row i, in [0, Len): its file and line.
func (s *Set) At(i int) diag.Pos { return s.x.place(s.entries[i]) }

// Row reads row i, in [0, Len), from its file, renders and shifts it. It is an error when the file has changed.
func (s *Set) Row(i int) (Row, error) {
	e := s.entries[i]
	made, err := s.x.read(e)
	if err != nil {
		return Row{}, err
	}
	row := Row{At: s.At(i), Data: make([]loss.Datum, len(made.sides))}
	for n, ex := range made.sides {
		row.Data[n] = datum(ex)
		row.Data[n].Group, row.Data[n].Desirable = i, made.desirable && n == 0
	}
	return row, nil
}

// Hash names the rows by content, in lower-case hex: the bytes of every file, the limits, and which share this set is.
// Names and places of the files are not in it.
func (s *Set) Hash() string {
	h := sha256.New()
	fmt.Fprintf(h, "rows 1 %s\n", s.tag)
	for _, src := range s.sources {
		limit := -1
		if src.section.Limit != nil {
			limit = *src.section.Limit
		}
		fmt.Fprintf(h, "source limit %d\n", limit)
		for _, f := range src.files {
			fmt.Fprintf(h, "%s %d\n", f.SHA256, f.Size)
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Rendered names the ids and weights of the first 32 rows in file order, in lower-case hex: it changes when the
// template, the masks or the program render otherwise, though file and recipe are the same.
func (s *Set) Rendered() (string, error) {
	h := sha256.New()
	var buf []byte
	for _, e := range s.entries[:min(32, len(s.entries))] {
		made, err := s.x.read(e)
		if err != nil {
			return "", err
		}
		for _, ex := range made.sides {
			buf = binary.LittleEndian.AppendUint64(buf[:0], uint64(len(ex.IDs)))
			for t, id := range ex.IDs {
				buf = binary.LittleEndian.AppendUint32(buf, uint32(id))
				buf = binary.LittleEndian.AppendUint64(buf, math.Float64bits(ex.Weights[t]))
			}
			h.Write(buf)
		}
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// Sources lists where the rows come from, in the recipe's order.
func (s *Set) Sources() []SourceInfo {
	out := make([]SourceInfo, len(s.sources))
	for i, src := range s.sources {
		out[i] = src.info()
		out[i].Rows = s.parts[i].to - s.parts[i].from
	}
	return out
}
