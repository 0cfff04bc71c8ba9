// Package report is for a person's eyes, and for programs that read in a person's stead: a progress bar, log lines, JSON
// lines, the files of the run folder that tell what happened, and report.html. Telling never decides: a sink only turns
// the events of package runner into text, all sinks from the same values, so that the terminal, the log and the page
// cannot disagree. Numbers that are not finite are shown as such, never dropped, and text that came from elsewhere (a
// service's message, a model's name) reaches a terminal without its control characters and a page escaped.
package report

import (
	"io"

	"trainer/runner"
)

// Options say where a run is told and how. The zero value tells nobody.
type Options struct {
	Out, Err io.Writer // results and JSON lines; progress and log lines. nil drops them
	TTY      bool      // Err is a terminal that a bar can be drawn on
	OutTTY   bool      // Out is a terminal too, on which the caller prints the outcome, so that the bar does not
	JSON     bool      // events as JSON lines on Out, in place of progress and log lines
	Dir      string    // the run folder, which exists; empty writes no files
	Width    int       // columns of Err where it cannot be asked itself; 0 is 80
	Color    bool      // of what goes to Err
	Quiet    bool      // only warnings, and an end that is not complete
}

// Sinks returns who is told: JSON, Lines or Progress, and Files where there is a run folder.
func Sinks(o Options) []runner.Sink {
	var sinks []runner.Sink
	if o.Dir != "" {
		sinks = append(sinks, &Files{Dir: o.Dir})
	}
	out, errw := orDiscard(o.Out), orDiscard(o.Err)
	switch {
	case o.JSON:
		sinks = append(sinks, &JSON{Out: out})
	case o.TTY && !o.Quiet:
		sinks = append(sinks, &Progress{Out: errw, Width: o.Width, Color: o.Color, Brief: o.OutTTY})
	default:
		sinks = append(sinks, &Lines{Out: errw, Color: o.Color, Quiet: o.Quiet})
	}
	return sinks
}

func orDiscard(w io.Writer) io.Writer {
	if w == nil {
		return io.Discard
	}
	return w
}
