package report

import (
	"context"
	"fmt"
	"io"

	"trainer/runner"
)

// JSON is a sink that writes each event as one line of JSON, as it is; metrics that are not finite are null. Close
// returns the first error.
type JSON struct {
	Out io.Writer
	err error
}

var _ runner.Sink = (*JSON)(nil)

// Open implements runner.Sink.
func (j *JSON) Open(context.Context, runner.RunInfo) error { return nil }

// Emit implements runner.Sink.
func (j *JSON) Emit(e runner.Event) {
	if j.err != nil {
		return
	}
	line, err := encodeEvent(e)
	if err == nil {
		_, err = j.Out.Write(line)
	}
	if err != nil {
		j.err = fmt.Errorf("writing JSON lines: %w", err)
	}
}

// Close implements runner.Sink.
func (j *JSON) Close(context.Context) error { return j.err }
