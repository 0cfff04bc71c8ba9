package report

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/rs/zerolog"

	"trainer/runner"
)

// Lines is a sink for what is not a terminal: a log line a step, an evaluation, a checkpoint, a change of stage, a
// retry and a warning, as zerolog's console writer has them, with readable key=value pairs. Close returns the first
// error of a write.
type Lines struct {
	Out      io.Writer
	Color    bool
	Quiet    bool           // only warnings, and an end that is not complete
	Location *time.Location // of the clock in front; nil is the machine's

	out *sticky
	log zerolog.Logger
	run *course
	now func() time.Time // time.Now but in tests
}

var _ runner.Sink = (*Lines)(nil)

// Open implements runner.Sink: it writes which run it is.
func (l *Lines) Open(_ context.Context, r runner.RunInfo) error {
	l.out, l.run = &sticky{w: l.Out}, newCourse(r)
	l.log = zerolog.New(zerolog.ConsoleWriter{
		Out: l.out, NoColor: !l.Color, TimeFormat: time.TimeOnly, TimeLocation: l.Location, FieldsOrder: lineOrder(),
	})
	if l.Quiet {
		l.log = l.log.Level(zerolog.WarnLevel)
	}
	if l.now == nil {
		l.now = time.Now
	}
	if r.StandIn {
		l.log.Warn().Time(zerolog.TimestampFieldName, l.now()).Msg(standInNote(r))
	}
	l.log.Info().Time(zerolog.TimestampFieldName, l.now()).Str("id", r.ID).Str("dir", r.Dir).Msg(opening(r))
	return nil
}

// Emit implements runner.Sink.
func (l *Lines) Emit(e runner.Event) {
	l.run.add(e)
	ev := l.log.WithLevel(level(e)).Time(zerolog.TimestampFieldName, e.Time)
	for _, f := range l.fields(e) {
		ev.Str(f.name, printable(f.value))
	}
	ev.Msg(l.message(e))
}

// Close implements runner.Sink.
func (l *Lines) Close(context.Context) error {
	if l.out == nil || l.out.err == nil {
		return nil
	}
	return fmt.Errorf("writing log lines: %w", l.out.err)
}

func (l *Lines) message(e runner.Event) string {
	if e.Kind != runner.StepEvent {
		return l.run.sentence(e)
	}
	text := "step " + l.run.progress()
	if e.Text != "" { // it was left out
		text += " " + printable(e.Text)
	}
	return text
}

func (l *Lines) fields(e runner.Event) []field {
	switch e.Kind {
	case runner.StepEvent:
		fields := stepFields(l.run.run, e.Metrics)
		if d, ok := l.run.eta.left(e.Time); ok {
			fields = append(fields, field{"eta", Duration(d)})
		}
		if m := mark(l.run.run); m != "" {
			fields = append(fields, field{"model", m})
		}
		return fields
	case runner.EvalEvent:
		return evalFields(e.Metrics)
	case runner.EndEvent:
		return l.run.endFields()
	}
	return nil
}

// level is what Level filters on and the line shows.
func level(e runner.Event) zerolog.Level {
	return [...]zerolog.Level{note: zerolog.InfoLevel, caution: zerolog.WarnLevel, fault: zerolog.ErrorLevel}[severityOf(e)]
}

// lineOrder keeps the fields of a step in the order of headlines, which zerolog would sort.
func lineOrder() []string {
	order := make([]string, 0, len(headlines)+4)
	for _, h := range headlines {
		order = append(order, h.name)
	}
	return append(order, "eta", trainLoss, evalLoss, rewardMean, evalReward, evalPass, costUSD)
}
