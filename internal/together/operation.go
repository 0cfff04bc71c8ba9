package together

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"trainer/internal/wire"
	"trainer/runner"
)

// Submit implements runner.Session. A patience of 0 stands for a few retries.
func (s *session) Submit(ctx context.Context, key string, p runner.Prepared) (string, error) {
	var got *outcome
	k := &call{
		method: http.MethodPost, path: s.operations(p.Op), body: p.Body, key: key, most: largeAnswer,
		read: func(_ http.Header, body io.Reader) (err error) {
			got, err = readOperation(p.Op, body)
			return err
		},
	}
	if err := s.c.do(ctx, k, policy{effect: true, once: p.Once, patience: s.spec.Patience}); err != nil {
		return "", err
	}
	s.pace.accepted(got.id, p.Work, time.Now(), got.final)
	if got.final {
		s.mu.Lock()
		s.early[got.id] = got
		s.mu.Unlock()
	}
	return got.id, s.prove(ctx, p, got.id)
}

func (s *session) operations(op runner.OpName) string {
	return s.path() + "/operations/" + string(op)
}

// Wait implements runner.Session: besides *runner.Failed and ErrGone, *runner.TimedOut when the operation has run for
// longer than the session's OperationTimeout (0: no limit), and *runner.Unclear when nobody has answered for longer than
// its Patience. How often it looks is decided by pace.
func (s *session) Wait(ctx context.Context, op runner.OpName, id string) (runner.Result, error) {
	if got := s.take(id); got != nil {
		return s.result(ctx, op, got)
	}
	w := s.pace.watch(op, id)
	defer w.leave()
	for {
		if err := w.sleep(ctx); err != nil {
			return runner.Result{}, fmt.Errorf("waiting for %s %s: %w", op, id, err)
		}
		asked := time.Now()
		got, err := s.ask(ctx, op, id)
		switch {
		case gone(err):
			return runner.Result{}, fmt.Errorf("%s %s: %w", op, id, runner.ErrGone)
		case unanswered(ctx, err):
			return runner.Result{}, &runner.Unclear{Request: fmt.Sprintf("waiting for %s %s", op, id), Err: err}
		case err != nil:
			return runner.Result{}, err
		case got.final:
			w.ended()
			return s.result(ctx, op, got)
		}
		w.running(asked)
		if most := s.spec.OperationTimeout; most > 0 && w.elapsed() > most {
			return runner.Result{}, &runner.TimedOut{Op: op, ID: id, After: most}
		}
	}
}

// unanswered tells a read that found no service from one that was refused or called off.
func unanswered(ctx context.Context, err error) bool {
	var no *runner.Refused
	return err != nil && ctx.Err() == nil && !errors.As(err, &no)
}

// take returns the end of an operation that its POST was answered with, once.
func (s *session) take(id string) *outcome {
	s.mu.Lock()
	defer s.mu.Unlock()
	got := s.early[id]
	delete(s.early, id)
	return got
}

// Look implements runner.Session.
func (s *session) Look(ctx context.Context, op runner.OpName, id string) (bool, error) {
	got, err := s.ask(ctx, op, id)
	if gone(err) {
		return false, fmt.Errorf("%s %s: %w", op, id, runner.ErrGone)
	}
	return err == nil && got.final, err
}

// ask reads the operation once.
func (s *session) ask(ctx context.Context, op runner.OpName, id string) (got *outcome, err error) {
	k := &call{
		method: http.MethodGet, path: s.operations(op) + "/" + url.PathEscape(id), most: largeAnswer,
		read: func(_ http.Header, body io.Reader) (err error) {
			got, err = readOperation(op, body)
			return err
		},
	}
	err = s.c.do(ctx, k, policy{patience: s.spec.Patience})
	return got, err
}

// outcome is what one answer says of an operation.
type outcome struct {
	id     string
	final  bool
	failed *wire.OperationError // of a FAILED one
	res    runner.Result
	output *wire.ForwardBackwardOutput // of a COMPLETED forward-backward
	sample *wire.SampleOutput          // of a COMPLETED sample
	err    error                       // what a COMPLETED one lacks
}

// result makes the end of an operation, with what is stored outside.
func (s *session) result(ctx context.Context, op runner.OpName, l *outcome) (runner.Result, error) {
	switch {
	case l.failed != nil:
		return runner.Result{}, &runner.Failed{Op: op, ID: l.id, Code: l.failed.Code.Name(), Message: s.c.redact(l.failed.Message)}
	case l.err != nil:
		return runner.Result{}, fmt.Errorf("%s %s: COMPLETED, but %w", op, l.id, l.err)
	case l.sample != nil:
		return s.sampled(ctx, op, l)
	case l.output == nil:
		return l.res, nil
	}
	o := l.output
	if o.PayloadID != "" {
		inline := *o
		err := s.fetch(ctx, o.PayloadID, func(body io.Reader) error {
			*o = inline // a cut attempt may have left parts
			return o.Merge(body)
		})
		if err != nil {
			return runner.Result{}, fmt.Errorf("%s %s: reading its stored output: %w", op, l.id, err)
		}
	}
	if o.Loss == nil {
		return runner.Result{}, fmt.Errorf("%s %s: COMPLETED, but its output has no loss", op, l.id)
	}
	return runner.Result{Loss: *o.Loss, Metrics: o.Metrics, Logprobs: o.Logprobs}, nil
}

// sampled makes the end of a sample.
func (s *session) sampled(ctx context.Context, op runner.OpName, l *outcome) (runner.Result, error) {
	o := l.sample
	if o.PayloadID != "" {
		err := s.fetch(ctx, o.PayloadID, func(body io.Reader) error {
			var stored wire.SampleOutput
			err := json.NewDecoder(body).Decode(&stored)
			if stored.Results != nil {
				o.Results = stored.Results
			}
			return err
		})
		if err != nil {
			return runner.Result{}, fmt.Errorf("%s %s: reading its stored output: %w", op, l.id, err)
		}
	}
	samples, err := samplesOf(o)
	if err != nil {
		return runner.Result{}, fmt.Errorf("%s %s: its output: %w", op, l.id, err)
	}
	return runner.Result{Samples: samples}, nil
}

// fetch gives merge what is stored under the id of a payload.
func (s *session) fetch(ctx context.Context, payload string, merge func(io.Reader) error) error {
	var from wire.DownloadURL
	k := &call{method: http.MethodPost, path: s.path() + "/payloads/" + url.PathEscape(payload) + "/download-url", read: into(&from)}
	if err := s.c.do(ctx, k, reading); err != nil {
		return err
	}
	if from.DownloadURL == "" {
		return fmt.Errorf("%s: the answer has no download_url", k.name())
	}
	return s.c.do(ctx, &call{
		method: http.MethodGet, url: from.DownloadURL, most: largeAnswer,
		read: func(_ http.Header, body io.Reader) error { return merge(body) },
	}, reading)
}

// readOperation reads the answer to a POST or GET of op.
func readOperation(op runner.OpName, body io.Reader) (*outcome, error) {
	switch op {
	case runner.OpForwardBackward:
		w, err := wire.DecodeForwardBackwardOperation(body)
		if err != nil {
			return nil, err
		}
		return seen(w, func(l *outcome, o *wire.ForwardBackwardOutput) error { l.output = o; return nil })
	case runner.OpSample:
		return decode(body, func(l *outcome, o *wire.SampleOutput) error { l.sample = o; return nil })
	case runner.OpCustom:
		return decodeEmpty(body)
	case runner.OpOptimStep:
		return decode(body, func(l *outcome, o *wire.OptimStepOutput) error {
			if o.Step == nil {
				return errors.New("its output has no step")
			}
			l.res.Step = int64(*o.Step)
			return nil
		})
	case runner.OpWeightsSync:
		return decode(body, func(l *outcome, o *wire.WeightsSyncOutput) error {
			if o.WeightsVersion == nil {
				return errors.New("its output has no weights_version")
			}
			l.res.Version = int64(*o.WeightsVersion)
			return nil
		})
	case runner.OpTrainingCheckpoint:
		return decode(body, func(l *outcome, o *wire.TrainingCheckpointOutput) error {
			c := o.Checkpoint
			if c == nil || c.ID == "" {
				return errNoCheckpoint
			}
			l.res.Step = int64(c.Step)
			l.res.Checkpoint = &runner.SavedCheckpoint{ID: c.ID, Step: int64(c.Step), CreatedAt: c.CreatedAt}
			if a := c.Registration; a != nil {
				l.res.Checkpoint.Registered, l.res.Checkpoint.Revision = a.ID, a.RevisionID
			}
			return nil
		})
	case runner.OpInferenceCheckpoint:
		return decode(body, func(l *outcome, o *wire.InferenceCheckpointOutput) error {
			c := o.Checkpoint
			if c == nil || c.ID == "" {
				return errNoCheckpoint
			}
			l.res.Step = int64(c.Step)
			l.res.Checkpoint = &runner.SavedCheckpoint{ID: c.ID, Step: int64(c.Step), CreatedAt: c.CreatedAt}
			registered(l.res.Checkpoint, c.Registration)
			return nil
		})
	}
	return nil, fmt.Errorf("%q is not an operation of this client", op)
}

func decode[O any](body io.Reader, take func(*outcome, *O) error) (*outcome, error) {
	var w wire.Operation[O]
	if err := json.NewDecoder(body).Decode(&w); err != nil {
		return nil, err
	}
	return seen(&w, take)
}

// decodeEmpty reads an operation whose end says nothing but that it has ended: it may come without output.
func decodeEmpty(body io.Reader) (*outcome, error) {
	var w wire.Operation[struct{}]
	if err := json.NewDecoder(body).Decode(&w); err != nil {
		return nil, err
	}
	w.Output = &struct{}{}
	return seen(&w, func(*outcome, *struct{}) error { return nil })
}

// seen judges the envelope; take reads the output of an operation that is COMPLETED.
func seen[O any](w *wire.Operation[O], take func(*outcome, *O) error) (*outcome, error) {
	l := &outcome{id: w.ID, final: w.Status.Final()}
	switch {
	case w.ID == "" || w.Status == "":
		return nil, errors.New("an operation without an id or a status")
	case w.Status == wire.OperationFailed:
		l.failed = &wire.OperationError{Code: "UNSPECIFIED", Message: "the service gives no reason"}
		if w.Error != nil {
			l.failed = w.Error
		}
	case w.Status == wire.OperationCompleted && w.Output == nil:
		l.err = errors.New("without output")
	case w.Status == wire.OperationCompleted:
		l.err = take(l, w.Output)
	}
	return l, nil
}
