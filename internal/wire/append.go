package wire

import (
	"fmt"
	"math"
	"slices"
	"strconv"
)

// AppendForwardBackward appends the compact JSON of f, in its Shape; what that can't say, such as a loss that it lacks, is an
// error. Floats are written in the shortest form that reads back as the same
// float32. NaN, an infinity and what float32 cannot hold are errors that name the place; then dst comes back as it was. It
// allocates nothing but dst.
func AppendForwardBackward(dst []byte, f *ForwardBackward) ([]byte, error) {
	start := len(dst)
	dst = slices.Grow(dst, likelySize(f.Samples))
	if f.Shape != Current && !f.Shape.has(f.Loss.Type) {
		return dst[:start], fmt.Errorf("loss.type: %s", f.Shape.lacks(f.Loss.Type))
	}
	dst, err := appendLoss(append(dst, `{"loss":`...), f.Loss)
	if err != nil {
		return dst[:start], err
	}
	if dst, err = appendSamples(append(dst, ','), f.Samples, f.Shape, f.Loss.Type); err != nil {
		return dst[:start], err
	}
	if f.ForwardOnly {
		dst = append(dst, `,"forward_only":true`...)
	}
	if f.ReturnOutputs {
		dst = append(dst, `,"return_loss_fn_outputs":true`...)
	}
	return append(appendPayload(dst, f.PayloadID), '}'), nil
}

// AppendCustomForwardBackward is as AppendForwardBackward.
func AppendCustomForwardBackward(dst []byte, f *CustomForwardBackward) ([]byte, error) {
	start := len(dst)
	size := likelySize(f.Samples)
	for _, row := range f.Gradients {
		size += 48 + 12*len(row)
	}
	dst = slices.Grow(dst, size)
	dst, err := appendSamples(append(dst, '{'), f.Samples, f.Shape, "")
	if err != nil {
		return dst[:start], err
	}
	dst = append(dst, `,"gradients":[`...)
	for i, row := range f.Gradients {
		if i > 0 {
			dst = append(dst, ',')
		}
		var at int
		if dst, at = appendFloats(append(dst, `{"data":[`...), row); at >= 0 {
			return dst[:start], fmt.Errorf("gradients[%d].data[%d]: %v is not a finite float32", i, at, row[at])
		}
		dst = append(dst, `],"dtype":"D_TYPE_FLOAT32"}`...)
	}
	return append(appendPayload(append(dst, ']'), f.PayloadID), '}'), nil
}

func appendPayload(dst []byte, id string) []byte {
	if id == "" {
		return dst
	}
	return appendString(append(dst, `,"payload_id":`...), id)
}

func appendLoss(dst []byte, c LossConfig) ([]byte, error) {
	dst = appendString(append(dst, `{"type":`...), string(c.Type))
	for i := range c.Params {
		row := rowOf(c.Params[i].Of)
		dst = append(append(append(dst, `,"`...), row.object()...), `":{`...)
		var err error
		if dst, err = appendParams(dst, row, &c.Params[i]); err != nil {
			return dst, err
		}
		dst = append(dst, '}')
	}
	return append(dst, '}'), nil
}

func appendParams(dst []byte, row *lossRow, p *LossParams) ([]byte, error) {
	written := false
	for _, name := range row.params {
		number, word := p.number(name), p.word(name)
		if number != nil && *number == nil || word != nil && *word == "" {
			continue
		}
		if written {
			dst = append(dst, ',')
		}
		written = true
		dst = append(append(append(dst, '"'), name...), `":`...)
		if word != nil {
			dst = appendString(dst, *word)
			continue
		}
		var err error
		if dst, err = appendDouble(dst, **number); err != nil {
			return dst, fmt.Errorf("loss.%s.%s: %w", row.object(), name, err)
		}
	}
	return dst, nil
}

func appendSamples(dst []byte, samples []Sample, shape Shape, t LossType) ([]byte, error) {
	dst = append(dst, `"samples":[`...)
	for i := range samples {
		if i > 0 {
			dst = append(dst, ',')
		}
		var bad *tensor
		var at int
		x := &samples[i]
		switch {
		case shape == Current && x.Experts != nil:
			return dst, fmt.Errorf("samples[%d].routed_experts: the %s shape has a key in their place", i, shape)
		case shape == Current:
			dst, bad, at = appendSample(dst, x)
		case x.Mask != nil:
			return dst, fmt.Errorf("samples[%d].mask: is not in the %s shape; give weights", i, shape)
		default:
			dst, bad, at = appendOlderSample(dst, x, t)
		}
		if bad != nil {
			return dst, fmt.Errorf("samples[%d].%s[%d]: %v is not a finite float32", i, shape.Place(t, bad.name), at, (*bad.of(x))[at])
		}
	}
	return append(dst, ']'), nil
}

// likelySize is what samples take in most cases, in bytes: a token and its target are up to 7 each in the common
// vocabularies, a weight 2 when it is 0 or 1, another number 12. Growing once by all of it spares a large body from being
// copied again and again.
func likelySize(samples []Sample) int {
	n := 512
	for i := range samples {
		x := &samples[i]
		n += 448 + 16*len(x.Tokens) + 12*(len(x.Logprobs)+len(x.Advantages)+len(x.RefLogprobs))
		if x.Experts != nil {
			n += 3 * len(x.Experts.Data)
		}
	}
	return n
}

// appendSample returns the tensor and the position of a value that cannot be written; nil when there is none.
func appendSample(dst []byte, s *Sample) ([]byte, *tensor, int) {
	dst = append(dst, `{"model_input":{"chunks":[{"encoded_text":{"tokens":[`...)
	dst = appendInts(dst, s.Tokens)
	dst = append(dst, `]}}]},"loss_fn_inputs":{`...)
	first := true
	if s.Targets != nil {
		dst = append(dst, `"target_tokens":{"data":[`...)
		dst = appendInts(dst, s.Targets)
		dst = append(dst, `],"dtype":"int64"}`...)
		first = false
	}
	for i := range tensors {
		list := *tensors[i].of(s)
		if list == nil {
			continue
		}
		if !first {
			dst = append(dst, ',')
		}
		first = false
		dst = append(append(append(dst, '"'), tensors[i].name...), `":{"data":[`...)
		var at int
		if dst, at = appendFloats(dst, list); at >= 0 {
			return dst, &tensors[i], at
		}
		dst = append(dst, `],"dtype":"float32"}`...)
	}
	dst = append(dst, '}')
	if s.RoutedExpertsKey != "" {
		dst = appendString(append(dst, `,"routed_experts_key":`...), s.RoutedExpertsKey)
	}
	return append(dst, '}'), nil, 0
}

func appendInts(dst []byte, list []int32) []byte {
	for i, v := range list {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = strconv.AppendInt(dst, int64(v), 10)
	}
	return dst
}

// appendFloats writes float32 values; it returns the index of one that is not, or -1.
func appendFloats(dst []byte, list []float64) ([]byte, int) {
	for i, v := range list {
		if i > 0 {
			dst = append(dst, ',')
		}
		switch {
		case v == 1:
			dst = append(dst, '1')
		case v == 0: // also of -0: nothing on the wire has a sign of zero
			dst = append(dst, '0')
		case !fitsFloat32(v):
			return dst, i
		default:
			dst = strconv.AppendFloat(dst, float64(float32(v)), 'g', -1, 32)
		}
	}
	return dst, -1
}

// fitsFloat32 is false for NaN, the infinities, and what rounds to one of them as a float32.
func fitsFloat32(v float64) bool {
	f := float64(float32(v))
	return f-f == 0
}

// appendString writes a JSON string: plain ASCII as it is, all else through the escapes of JSON.
func appendString(dst []byte, s string) []byte {
	const hex = "0123456789abcdef"
	dst = append(dst, '"')
	for _, r := range s { // an invalid byte arrives as U+FFFD, which is what JSON can say of it
		switch {
		case r == '"' || r == '\\':
			dst = append(dst, '\\', byte(r))
		case r < ' ':
			dst = append(dst, '\\', 'u', '0', '0', hex[r>>4], hex[r&15])
		default:
			dst = append(dst, string(r)...)
		}
	}
	return append(dst, '"')
}

// appendDouble writes a finite number in its shortest form.
func appendDouble(dst []byte, v float64) ([]byte, error) {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return dst, fmt.Errorf("%v is not a finite number", v)
	}
	return strconv.AppendFloat(dst, v, 'g', -1, 64), nil
}
