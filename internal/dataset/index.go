package dataset

import (
	"errors"
	"fmt"

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
	tokens  int32
	trained int32
	longest int32  // tokens of its longest sequence
	file    int32  // in index.files
	sum     uint32 // of its bytes, so that a file that changes under the run is noticed
}

// index is what the rows of both sets need to be read again. Read-only once the scan is over.
type index struct {
	section  recipe.Dataset
	template *chat.Template
	files    []hub.File
	owner    []*source // of each file
}

// rendered is a row in token ids: one sequence, or the two sides of a pair, the chosen one first.
type rendered struct {
	sides     []chat.Example
	desirable bool // the first side is one that is wanted: the chosen one, or of a row that is labelled so
	cut       bool // to dataset.max_length
	dropped   bool // overlong, and goes by dataset.overlong
	same      bool // a pair of two equal sides, and goes by dataset.on_identical_pair
}

// count adds the sides up.
func (r rendered) count() (tokens, trained, longest int32) {
	for _, ex := range r.sides {
		tokens += int32(len(ex.IDs))
		trained += int32(trainedIn(ex))
		longest = max(longest, int32(len(ex.IDs)))
	}
	return tokens, trained, longest
}

// encode renders one row and cuts it to length.
func (x *index) encode(s *source, raw []byte) (r rendered, f *fault) {
	if err := check(raw); err != nil {
		return r, bad("", "not JSON: %v", err)
	}
	row := trimmed(raw)
	if !row.isObject() {
		return r, bad("", "%s where a row is due, as {\"…\": …}", row.kind())
	}
	if r, f = s.render(row, x.template); f != nil {
		if f.other {
			f.msg += s.shape()
		}
		return r, f
	}
	if r.same = r.identical(); r.same && x.section.OnIdenticalPair != "keep" {
		if x.section.OnIdenticalPair == "error" {
			return r, bad("", "the chosen and the rejected side are the same: there is nothing to prefer; dataset.on_identical_pair: drop leaves such pairs out")
		}
		return r, nil
	}
	r.same = false
	n := 0
	for _, ex := range r.sides {
		n = max(n, len(ex.IDs))
	}
	if n > x.section.MaxLength {
		if f = x.shorten(&r, n); f != nil || r.dropped {
			return r, f
		}
	}
	for i, ex := range r.sides {
		if trainedIn(ex) > 0 || s.format.untrained {
			continue
		}
		if r.cut {
			return r, bad(r.side(i), "no trained token is left of %d when dataset.overlong: %s keeps %d", n, x.section.Overlong, x.section.MaxLength)
		}
		return r, bad(r.side(i), "no trained token%s", x.why(s))
	}
	return r, nil
}

// render makes the sides of a row.
func (s *source) render(row value, t *chat.Template) (rendered, *fault) {
	if s.format.sides != nil {
		return s.format.sides(s, row, t)
	}
	ex, f := s.format.encode(s, row, t)
	return rendered{sides: []chat.Example{ex}}, f
}

// shorten does what dataset.overlong says to a row of which n tokens is the longest side.
func (x *index) shorten(r *rendered, n int) *fault {
	limit := x.section.MaxLength
	switch how := x.section.Overlong; {
	case how == "drop":
		r.dropped = true
	case how == "error":
		return &fault{overlong: true, msg: fmt.Sprintf(
			"%d tokens, and dataset.max_length is %d; raise it, or set dataset.overlong to drop, keep_start or keep_end", n, limit)}
	case len(r.sides) > 1:
		return r.shortenPair(n-limit, how)
	case how == "keep_start":
		ex := r.sides[0]
		r.sides[0], r.cut = chat.Example{IDs: ex.IDs[:limit], Weights: ex.Weights[:limit]}, true
	default:
		r.sides[0], r.cut = behind(r.sides[0], n-limit), true
	}
	return nil
}

// behind is what stands behind the first n tokens.
func behind(ex chat.Example, n int) chat.Example {
	return chat.Example{IDs: ex.IDs[n:], Weights: ex.Weights[n:]}
}

// why says what decides which tokens of the source train.
func (x *index) why(s *source) string {
	if x.template == nil || s.format.bare {
		return "; every weight is 0"
	}
	return "; chat.train_on is " + x.template.TrainOn()
}

// trainedIn counts the tokens that are predicted with a weight.
func trainedIn(ex chat.Example) int {
	n := 0
	for _, w := range ex.Weights[1:] {
		if w > 0 {
			n++
		}
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

// read returns the row of an entry, rendered again.
func (x *index) read(e entry) (rendered, error) {
	raw, err := x.raw(e)
	if err != nil {
		return rendered{}, err
	}
	made, bad := x.encode(x.owner[e.file], raw)
	if bad != nil {
		return rendered{}, fmt.Errorf("%s", bad.at(x.place(e)))
	}
	return made, nil
}

// trimmed is the checked row without space around it.
func trimmed(raw []byte) value {
	for len(raw) > 0 && isSpace(raw[0]) {
		raw = raw[1:]
	}
	return value(trimSpace(raw, 0))
}
