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

// entry is what is kept of a row: where it is, and how much. 32 bytes, however long the row.
type entry struct {
	offset  int64
	length  int32 // bytes
	line    int32
	tokens  int32
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
}

// encode renders one row and cuts it to length. dropped: the row is overlong and goes by dataset.overlong.
func (x *index) encode(s *source, raw []byte) (ex chat.Example, cut, dropped bool, f *fault) {
	if err := check(raw); err != nil {
		return ex, false, false, bad("", "not JSON: %v", err)
	}
	row := trimmed(raw)
	if !row.isObject() {
		return ex, false, false, bad("", "%s where a row is due, as {\"…\": …}", row.kind())
	}
	if ex, f = s.format.encode(s, row, x.template); f != nil {
		if f.other {
			f.msg += s.shape()
		}
		return ex, false, false, f
	}
	n, limit := len(ex.IDs), x.section.MaxLength
	if n > limit {
		switch x.section.Overlong {
		case "drop":
			return ex, false, true, nil
		case "keep_start":
			ex, cut = chat.Example{IDs: ex.IDs[:limit], Weights: ex.Weights[:limit]}, true
		case "keep_end":
			ex, cut = chat.Example{IDs: ex.IDs[n-limit:], Weights: ex.Weights[n-limit:]}, true
		default:
			return ex, false, false, &fault{overlong: true, msg: fmt.Sprintf(
				"%d tokens, and dataset.max_length is %d; raise it, or set dataset.overlong to drop, keep_start or keep_end", n, limit)}
		}
	}
	if trainedIn(ex) > 0 || s.format.untrained() {
		return ex, cut, false, nil
	}
	if cut {
		return ex, false, false, bad("", "no trained token is left of %d when dataset.overlong: %s keeps %d", n, x.section.Overlong, limit)
	}
	return ex, false, false, bad("", "no trained token%s", x.why(s))
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
func (x *index) read(e entry) (chat.Example, error) {
	raw, err := x.raw(e)
	if err != nil {
		return chat.Example{}, err
	}
	ex, _, _, bad := x.encode(x.owner[e.file], raw)
	if bad != nil {
		return chat.Example{}, fmt.Errorf("%s", bad.at(x.place(e)))
	}
	return ex, nil
}

// trimmed is the checked row without space around it.
func trimmed(raw []byte) value {
	for len(raw) > 0 && isSpace(raw[0]) {
		raw = raw[1:]
	}
	return value(trimSpace(raw, 0))
}
