package dataset

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"

	"trainer/internal/chat"
	"trainer/internal/diag"
	"trainer/internal/hub"
	"trainer/loss"
	"trainer/recipe"
)

// entry is what is kept of a row: where it is, and how much. 40 bytes, however long the row.
type entry struct {
	offset  int64
	length  int32 // bytes
	line    int32
	tokens  int32 // of all its examples
	longest int32 // tokens of the longest of them
	trained int32
	file    int32  // in index.files
	sum     uint32 // of its bytes, so that a file that changes under the run is noticed
}

// index is what the rows of both sets need to be read again. Read-only once the scan is over.
type index struct {
	section  recipe.Dataset
	template *chat.Template
	files    []hub.File
	owner    []*source // of each file
	copies   string    // the folder of what was unpacked; empty: there is none
}

// encode renders one row and cuts its examples to length. dropped: one is overlong, and the row goes by dataset.overlong.
func (x *index) encode(s *source, raw []byte) (exs []chat.Example, cut, dropped bool, f *fault) {
	if err := check(raw); err != nil {
		return nil, false, false, bad("", "not JSON: %v", err)
	}
	row := trimmed(raw)
	if !row.isObject() {
		return nil, false, false, bad("", "%s where a row is due, as {\"…\": …}", row.kind())
	}
	given := row
	if f = s.unheard(row); f == nil {
		row, f = s.canonical(row)
	}
	if f == nil {
		exs, f = s.format.encode(s, row, x.template)
		f = s.restore(given, f)
	}
	if f != nil {
		if f.other {
			f.msg += s.shape()
		}
		return nil, false, false, f
	}
	longest := longestOf(exs)
	if limit := x.section.MaxLength; longest > limit {
		switch x.section.Overlong {
		case "drop":
			return nil, false, true, nil
		case "keep_start", "keep_end":
			exs, cut = cutTo(exs, limit, x.section.Overlong == "keep_end"), true
		default:
			return nil, false, false, &fault{overlong: true, msg: fmt.Sprintf(
				"%d tokens, and dataset.max_length is %d; raise it, or set dataset.overlong to drop, keep_start or keep_end", longest, limit)}
		}
	}
	if trainedIn(exs) > 0 {
		return exs, cut, false, nil
	}
	if cut {
		return nil, false, false, noTraining("no trained token is left of %d when dataset.overlong: %s keeps %d", longest, x.section.Overlong, x.section.MaxLength)
	}
	return nil, false, false, noTraining("no trained token%s", x.why(s))
}

// cutTo cuts the examples of a row to limit tokens; one of which nothing trained is left goes, where another stays.
func cutTo(exs []chat.Example, limit int, end bool) []chat.Example {
	kept := make([]chat.Example, 0, len(exs))
	for _, ex := range exs {
		if n := len(ex.IDs); n > limit && end {
			ex = ex.Cut(n-limit, n)
		} else if n > limit {
			ex = ex.Cut(0, limit)
		}
		if trainedIn([]chat.Example{ex}) > 0 {
			kept = append(kept, ex)
		}
	}
	return kept
}

// why says what decides which tokens of the source train.
func (x *index) why(s *source) string {
	if x.template == nil || s.format.bare {
		return "; every weight is 0"
	}
	return "; chat.train_on is " + x.template.TrainOn()
}

// trainedIn counts the tokens that are predicted with a weight.
func trainedIn(exs []chat.Example) int {
	n := 0
	for _, ex := range exs {
		for _, w := range ex.Weights[1:] {
			if w > 0 {
				n++
			}
		}
	}
	return n
}

// longestOf is the tokens of the longest example.
func longestOf(exs []chat.Example) int {
	n := 0
	for _, ex := range exs {
		n = max(n, len(ex.IDs))
	}
	return n
}

// tokensIn counts the tokens of a row's examples.
func tokensIn(exs []chat.Example) int {
	n := 0
	for _, ex := range exs {
		n += len(ex.IDs)
	}
	return n
}

// datum shifts: entry t speaks of predicting token t+1 from those up to t.
func datum(ex chat.Example) loss.Datum {
	n := len(ex.IDs)
	return loss.Datum{Input: ex.IDs[:n-1], Targets: ex.IDs[1:], Weights: ex.Weights[1:]}
}

// place is where the row is, as messages show it.
func (x *index) place(e entry) diag.Pos {
	return diag.Pos{File: x.files[e.file].Name, Line: int(e.line)}
}

// ErrChanged is a row that is no longer what was checked when its file was opened.
var ErrChanged = errors.New("the file has changed since it was checked; a run needs its rows unchanged")

// read returns the examples of an entry's row, rendered again.
func (x *index) read(e entry) ([]chat.Example, error) {
	raw := make([]byte, e.length)
	f, err := os.Open(x.files[e.file].Path)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", x.place(e), err)
	}
	defer f.Close()
	if _, err := f.ReadAt(raw, e.offset); err != nil && err != io.EOF {
		return nil, fmt.Errorf("read %s: %w", x.place(e), err)
	}
	if crc32.ChecksumIEEE(raw) != e.sum {
		return nil, fmt.Errorf("%s: %w", x.place(e), ErrChanged)
	}
	exs, _, _, bad := x.encode(x.owner[e.file], raw)
	if bad != nil {
		return nil, fmt.Errorf("%s", bad.at(x.place(e)))
	}
	return exs, nil
}

// trimmed is the checked row without space around it.
func trimmed(raw []byte) value {
	for len(raw) > 0 && isSpace(raw[0]) {
		raw = raw[1:]
	}
	return value(trimSpace(raw, 0))
}
