package wire

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"slices"
)

// ForwardBackwardOutput is the answer of forward-backward. Its members are pointers and nils so that one part can be read
// over another: what was stored outside replaces what stood inline.
type ForwardBackwardOutput struct {
	Loss      *float64           // for cross-entropy the sum over trained tokens; nil: absent
	Metrics   map[string]float64 // by name; nil: absent
	Logprobs  [][]float64        // loss_fn_outputs, their tensor logprobs: [B][T], values of a float32; nil: absent
	PayloadID string             // large members are stored under it; empty: none
}

// AppendForwardBackwardOutput appends the compact JSON of o, metrics in the order of their names. NaN, an infinity and a
// log-probability beyond float32 are errors; then dst comes back as it was.
func AppendForwardBackwardOutput(dst []byte, o *ForwardBackwardOutput) ([]byte, error) {
	out, err := appendOutput(dst, o)
	if err != nil {
		return dst, fmt.Errorf("encoding the output: %w", err)
	}
	return out, nil
}

func appendOutput(dst []byte, o *ForwardBackwardOutput) ([]byte, error) {
	dst = append(dst, '{')
	open := len(dst)
	member := func(name string) {
		if len(dst) > open {
			dst = append(dst, ',')
		}
		dst = append(appendString(dst, name), ':')
	}
	var err error
	if o.Loss != nil {
		member("loss")
		if dst, err = appendDouble(dst, *o.Loss); err != nil {
			return dst, fmt.Errorf("loss: %w", err)
		}
	}
	if o.Metrics != nil {
		member("metrics")
		if dst, err = appendMetrics(dst, o.Metrics); err != nil {
			return dst, err
		}
	}
	if o.Logprobs != nil {
		member("loss_fn_outputs")
		if dst, err = appendLogprobs(dst, o.Logprobs); err != nil {
			return dst, err
		}
	}
	if o.PayloadID != "" {
		member("payload_id")
		dst = appendString(dst, o.PayloadID)
	}
	return append(dst, '}'), nil
}

func appendMetrics(dst []byte, metrics map[string]float64) ([]byte, error) {
	dst = append(dst, '{')
	for i, name := range slices.Sorted(maps.Keys(metrics)) {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(appendString(dst, name), ':')
		var err error
		if dst, err = appendDouble(dst, metrics[name]); err != nil {
			return dst, fmt.Errorf("metrics.%s: %w", name, err)
		}
	}
	return append(dst, '}'), nil
}

func appendLogprobs(dst []byte, logprobs [][]float64) ([]byte, error) {
	dst = append(dst, '[')
	for i, row := range logprobs {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, `{"tensors":{"logprobs":{"data":[`...)
		var at int
		if dst, at = appendFloats(dst, row); at >= 0 {
			return dst, fmt.Errorf("loss_fn_outputs[%d].tensors.logprobs[%d]: %v is not a finite float32", i, at, row[at])
		}
		dst = append(dst, `],"dtype":"float32"}}}`...)
	}
	return append(dst, ']'), nil
}

// MarshalJSON is AppendForwardBackwardOutput.
func (o ForwardBackwardOutput) MarshalJSON() ([]byte, error) {
	return AppendForwardBackwardOutput(nil, &o)
}

// UnmarshalJSON reads one object over o; null leaves it as it is.
func (o *ForwardBackwardOutput) UnmarshalJSON(b []byte) error {
	if bytes.Equal(b, []byte("null")) {
		return nil
	}
	return o.Merge(bytes.NewReader(b))
}

// Merge reads one JSON object from r over o: members that are there and not null replace those of o. An error leaves o
// partly replaced.
func (o *ForwardBackwardOutput) Merge(r io.Reader) error {
	s := newScanner(r)
	s.output(o)
	s.end()
	return s.err
}

// DecodeForwardBackwardOperation reads an operation of forward-backward, streaming its output. Memory is bounded by the
// input, which the caller bounds.
func DecodeForwardBackwardOperation(r io.Reader) (*Operation[ForwardBackwardOutput], error) {
	s := newScanner(r)
	op := &Operation[ForwardBackwardOutput]{}
	s.object(func(name string) {
		switch name {
		case "id":
			op.ID = s.text(name)
		case "status":
			op.Status = OperationStatus(s.text(name))
		case "output":
			if !s.null() {
				op.Output = &ForwardBackwardOutput{}
				s.within(name, func() { s.output(op.Output) })
			}
		case "error":
			if !s.null() {
				op.Error = &OperationError{}
				s.within(name, func() { s.operationError(op.Error) })
			}
		default:
			s.skip()
		}
	})
	s.end()
	if s.err != nil {
		return nil, s.err
	}
	return op, nil
}

func (s *scanner) operationError(e *OperationError) {
	s.object(func(name string) {
		switch name {
		case "code":
			e.Code = OperationErrorCode(s.text(name))
		case "message":
			e.Message = s.text(name)
		default:
			s.skip()
		}
	})
}

func (s *scanner) output(o *ForwardBackwardOutput) {
	s.object(func(name string) {
		switch name {
		case "loss":
			if !s.null() {
				s.within(name, func() { o.Loss = new(s.double()) })
			}
		case "metrics":
			if !s.null() {
				s.within(name, func() { o.Metrics = s.metrics() })
			}
		case "loss_fn_outputs":
			if !s.null() {
				s.within(name, func() { o.Logprobs = s.logprobs() })
			}
		case "payload_id":
			if !s.null() {
				o.PayloadID = s.text(name)
			}
		default:
			s.skip()
		}
	})
}

func (s *scanner) metrics() map[string]float64 {
	m := map[string]float64{}
	s.object(func(name string) {
		if !s.null() {
			s.within(name, func() { m[name] = s.double() })
		}
	})
	return m
}

func (s *scanner) logprobs() [][]float64 {
	rows := [][]float64{}
	s.array(func(int) {
		var row []float64
		s.object(func(name string) {
			if name != "tensors" || s.null() {
				s.skip()
				return
			}
			s.within(name, func() {
				s.object(func(name string) {
					if name != "logprobs" || s.null() {
						s.skip()
						return
					}
					s.within(name, func() { row = s.floatTensor(false) })
				})
			})
		})
		rows = append(rows, row)
	})
	return rows
}
