package report

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/rs/zerolog"

	"trainer/runner"
)

// Files is a sink that keeps the telling in the run folder, which exists: run.json (who the run is, and its plan),
// events.jsonl and trainer.log, to which every life appends, and at the end of a life report.html. All are readable by
// their owner alone. Close returns the first error.
type Files struct {
	Dir string

	events, text *os.File
	toEvents     *sticky
	toLog        *sticky
	encoding     error
	log          zerolog.Logger
	run          *course
}

var _ runner.Sink = (*Files)(nil)

// Names in the run folder that this package writes.
const (
	runFile    = "run.json"
	eventsFile = "events.jsonl"
	logFile    = "trainer.log"
	pageFile   = "report.html"
)

// Open implements runner.Sink.
func (f *Files) Open(_ context.Context, r runner.RunInfo) (err error) {
	if err := writeAbout(f.Dir, r); err != nil {
		return err
	}
	if f.events, err = appendTo(filepath.Join(f.Dir, eventsFile)); err != nil {
		return err
	}
	if f.text, err = appendTo(filepath.Join(f.Dir, logFile)); err != nil {
		return errors.Join(err, f.events.Close())
	}
	f.toEvents, f.toLog, f.run = &sticky{w: f.events}, &sticky{w: f.text}, newCourse(r)
	f.log = zerolog.New(f.toLog)
	f.log.Info().Timestamp().Str("id", r.ID).Str("recipe", r.Recipe).Str("model", mark(r)).Int("done", r.Done).Msg(opening(r))
	return nil
}

// Emit implements runner.Sink.
func (f *Files) Emit(e runner.Event) {
	f.run.add(e)
	line, err := encodeEvent(e)
	if err != nil {
		f.encoding = errors.Join(f.encoding, err)
		return
	}
	_, _ = f.toEvents.Write(line) // the error is kept for Close
	f.logEvent(e)
}

func (f *Files) logEvent(e runner.Event) {
	ev := f.log.WithLevel(level(e)).Time(zerolog.TimestampFieldName, e.Time).Str("kind", string(e.Kind)).Int("done", e.Done)
	for name, v := range e.Metrics {
		ev.Float64(name, v)
	}
	message := f.run.sentence(e)
	if e.Kind == runner.StepEvent {
		message = "step " + f.run.progress()
	}
	ev.Msg(message)
}

// Close implements runner.Sink: it writes report.html.
func (f *Files) Close(context.Context) error {
	if f.events == nil || f.text == nil {
		return nil
	}
	err := errors.Join(f.encoding, f.toEvents.err, f.toLog.err, f.events.Close(), f.text.Close())
	if err != nil {
		err = fmt.Errorf("writing the run folder: %w", err)
	}
	return errors.Join(err, WriteHTML(f.Dir))
}

// appendTo opens a file of lines for appending. A last line that a kill cut in half gets its line break, so that it
// spoils no other.
func appendTo(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening a file of the run folder: %w", err)
	}
	if size, err := f.Seek(0, io.SeekEnd); err == nil && size > 0 {
		last := make([]byte, 1)
		if _, err := f.ReadAt(last, size-1); err == nil && last[0] != '\n' {
			_, _ = f.Write([]byte{'\n'}) // where this fails, the next write fails too, and is kept
		}
	}
	return f, nil
}

// replace writes a file of the run folder whole or not at all.
func replace(path string, data []byte) (err error) {
	tmp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return fmt.Errorf("writing %s: %w", filepath.Base(path), err)
	}
	_, err = io.Copy(tmp, bytes.NewReader(data))
	err = errors.Join(err, tmp.Close())
	if err == nil {
		err = os.Rename(tmp.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("writing %s: %w", filepath.Base(path), errors.Join(err, os.Remove(tmp.Name())))
	}
	return nil
}
