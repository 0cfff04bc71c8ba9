package dataset

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

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
	taught  int32  // of the prompt that a teacher is given in its place; 0: it is the same
	file    int32  // in index.files
	sum     uint32 // of its bytes, so that a file that changes under the run is noticed
}

// index is what the rows of both sets need to be read again. Read-only once the scan is over.
type index struct {
	section  recipe.Dataset
	template *chat.Template
	files    []hub.File
	owner    []*source       // of each file
	copies   string          // the folder of what was unpacked; empty: there is none
	soft     *loss.ForwardKL // sends a row as copies; nil: the loss sends it once
}

// rendered is a row in token ids: the examples that it makes, or the two sides of a pair, the chosen one first.
type rendered struct {
	sides     []chat.Example
	taught    []int32 // the prompt that a teacher is given in place of the one of sides; nil: the same
	pair      bool    // the sides are compared with one another
	desirable bool    // the first side is one that is wanted: the chosen one, or of a row that is labelled so
	cut       bool    // to dataset.max_length
	dropped   bool    // overlong, and goes by dataset.overlong
	same      bool    // a pair of two equal sides, and goes by dataset.on_identical_pair
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
	longest := max(longestOf(r.sides), len(r.taught))
	if longest > x.section.MaxLength {
		if f = x.shorten(s, &r, longest); f != nil || r.dropped {
			return r, f
		}
	}
	return r, x.trains(s, r, longest)
}

// trains is the fault of a row of which nothing is trained, or of a pair of which one side is not.
func (x *index) trains(s *source, r rendered, longest int) *fault {
	parts := [][]chat.Example{r.sides}
	if r.pair {
		parts = [][]chat.Example{r.sides[:1], r.sides[1:]}
	}
	for i, exs := range parts {
		var f *fault
		switch {
		case s.format.untrained || trainedIn(exs) > 0:
			continue
		case r.cut:
			f = noTraining("no trained token is left of %d when dataset.overlong: %s keeps %d", longest, x.section.Overlong, x.section.MaxLength)
		default:
			f = noTraining("no trained token%s%s", x.why(s), strangers(exs))
		}
		f.key = r.side(i)
		return f
	}
	return nil
}

// render makes the examples of a row, of whatever dialect it is.
func (s *source) render(given value, t *chat.Template) (r rendered, f *fault) {
	if f = cmp.Or(s.unheard(given), unseenMedia(given)); f != nil {
		return r, f
	}
	row, f := s.canonical(given)
	switch {
	case f != nil:
	case s.format.sides != nil:
		r, f = s.format.sides(s, row, t)
		r.pair = len(r.sides) == 2
	default:
		r.sides, f = s.format.encode(s, row, t)
		if f == nil && s.teacher != nil && s.format.untrained {
			r.taught, f = s.teacherPrompt(row, t)
		}
	}
	return r, s.restore(given, f)
}

// shorten does what dataset.overlong says to a row of which the longest side has n tokens.
func (x *index) shorten(s *source, r *rendered, n int) *fault {
	limit := x.section.MaxLength
	switch how := x.section.Overlong; {
	case how == "drop":
		r.dropped = true
	case how == "error":
		what := "tokens"
		if longestOf(r.sides) < n {
			what += " of the teacher's prompt"
		}
		return &fault{overlong: true, msg: fmt.Sprintf(
			"%d %s, and dataset.max_length is %d; raise it, or set dataset.overlong to drop, keep_start or keep_end", n, what, limit)}
	case s.format.compared():
		return r.shortenCompared(n-limit, how)
	default:
		if over := len(r.taught) - limit; over > 0 && how == "keep_end" {
			r.taught = r.taught[over:]
		} else if over > 0 {
			r.taught = r.taught[:limit]
		}
		r.sides, r.cut = cutTo(r.sides, limit, how == "keep_end", s.format.untrained), true
	}
	return nil
}

// cutTo cuts the examples of a row to limit tokens; one of which nothing trained is left goes, unless none is to train.
func cutTo(exs []chat.Example, limit int, end, untrained bool) []chat.Example {
	kept := make([]chat.Example, 0, len(exs))
	for _, ex := range exs {
		if n := len(ex.IDs); n > limit && end {
			ex = ex.Cut(n-limit, n)
		} else if n > limit {
			ex = ex.Cut(0, limit)
		}
		if untrained || trainedIn([]chat.Example{ex}) > 0 {
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

// strangers says which roles of a row are ones of its own, that it may use for the assistant.
func strangers(exs []chat.Example) string {
	for _, ex := range exs {
		for _, p := range ex.Parts {
			if !slices.Contains([]string{"system", "developer", "user", "assistant", "tool", ""}, p.Role) {
				return fmt.Sprintf("; a message of %q is none of the assistant", p.Role)
			}
		}
	}
	return ""
}

// sent counts the tokens of a row's examples as often as they are sent, and how many of them are predicted with a weight.
func (x *index) sent(exs []chat.Example) (tokens, trained int) {
	if x.soft == nil {
		return tokensIn(exs), trainedIn(exs)
	}
	for _, ex := range exs {
		tokens += len(ex.IDs) * x.soft.Count(ex.Weights, ex.TopIDs)
		for t, w := range ex.Weights {
			if w > 0 {
				trained += min(len(ex.TopIDs[t]), x.soft.TopK)
			}
		}
	}
	return tokens, trained
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
	d := loss.Datum{Input: ex.IDs[:n-1], Targets: ex.IDs[1:], Weights: ex.Weights[1:]}
	if ex.TopIDs != nil {
		d.TopIDs, d.TopLogprobs = ex.TopIDs[1:], ex.TopLogprobs[1:]
	}
	if ex.Teacher != nil {
		d.TeacherLogprobs = ex.Teacher[1:]
	}
	if ex.Sampled != nil {
		d.OldLogprobs = ex.Sampled[1:]
	}
	return d
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
