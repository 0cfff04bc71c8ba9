package dataset

import (
	"errors"
	"fmt"
	"strings"

	"trainer/internal/chat"
	"trainer/internal/diag"
)

// fault is what is wrong with a row. key is the place in the row, as messages.2.role; empty for the row as a whole.
type fault struct {
	key, msg string
	overlong bool // dataset.overlong decides, not on_bad_row
	other    bool // the row has another shape, as far as one can tell
	// untrained: nothing of the row would train. Such rows have one cause, as a rule, so they are told together.
	untrained bool
}

func bad(key, format string, a ...any) *fault {
	return &fault{key: key, msg: fmt.Sprintf(format, a...)}
}

// noTraining is the fault of a row of which nothing would train.
func noTraining(format string, a ...any) *fault {
	f := bad("", format, a...)
	f.untrained = true
	return f
}

func (f *fault) at(pos diag.Pos) diag.Problem { return diag.Problem{Pos: pos, Key: f.key, Msg: f.msg} }

// missing says what the row has instead.
func missing(row value, path string) *fault {
	names := columnNames(row)
	switch {
	case len(names) == 0:
		return bad(path, "missing; the row is empty")
	case len(names) > 8:
		names = append(names[:8], "…")
	}
	hint := diag.DidYouMean(path, names)
	f := bad(path, "missing%s; the row has %s", hint, strings.Join(names, ", "))
	f.other = hint == ""
	return f
}

// columnNames are the keys of a row in file order.
func columnNames(row value) []string {
	var names []string
	for key := range row.members() {
		names = append(names, string(key))
	}
	return names
}

// fromChat places a fault of the template in the row: place gives the key of a message (-1: the conversation) and of one
// of its fields ("": the message).
func fromChat(err error, place func(message int, field string) string) *fault {
	var f *chat.Fault
	if !errors.As(err, &f) {
		return bad("", "%v", err)
	}
	return bad(place(f.Message, f.Key), "%s", f.Msg)
}
