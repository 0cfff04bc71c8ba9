package wire

import (
	"fmt"
	"math"
	"slices"
	"strconv"
)

// AppendForwardBackward appends the compact JSON of f. Weights are written in the shortest form that reads back as the
// same float32. NaN, an infinity and what float32 cannot hold are errors that name the sample and the position; then dst
// comes back as it was. It allocates nothing but dst.
func AppendForwardBackward(dst []byte, f *ForwardBackward) ([]byte, error) {
	start := len(dst)
	dst = slices.Grow(dst, likelySize(f))
	dst = append(dst, `{"loss":{"type":`...)
	dst = appendString(dst, string(f.Loss.Type))
	dst = append(dst, `},"samples":[`...)
	for i := range f.Samples {
		if i > 0 {
			dst = append(dst, ',')
		}
		var at int
		if dst, at = appendSample(dst, &f.Samples[i]); at >= 0 {
			return dst[:start], fmt.Errorf("samples[%d].loss_fn_inputs.weights[%d]: %v is not a finite float32",
				i, at, f.Samples[i].Weights[at])
		}
	}
	dst = append(dst, ']')
	if f.ForwardOnly {
		dst = append(dst, `,"forward_only":true`...)
	}
	if f.ReturnOutputs {
		dst = append(dst, `,"return_loss_fn_outputs":true`...)
	}
	if f.PayloadID != "" {
		dst = append(dst, `,"payload_id":`...)
		dst = appendString(dst, f.PayloadID)
	}
	return append(dst, '}'), nil
}

// likelySize is what f takes in most cases, in bytes: a token and its target are up to 7 each in the common vocabularies, a
// weight 2 when it is 0 or 1. Growing once by all of it spares a large body from being copied again and again.
func likelySize(f *ForwardBackward) int {
	n := 256
	for i := range f.Samples {
		n += 160 + 16*len(f.Samples[i].Tokens)
	}
	return n
}

// appendSample returns the position of a weight that cannot be written, or -1.
func appendSample(dst []byte, s *Sample) ([]byte, int) {
	dst = append(dst, `{"model_input":{"chunks":[{"encoded_text":{"tokens":[`...)
	dst = appendInts(dst, s.Tokens)
	dst = append(dst, `]}}]},"loss_fn_inputs":{`...)
	if s.Targets != nil {
		dst = append(dst, `"target_tokens":{"data":[`...)
		dst = appendInts(dst, s.Targets)
		dst = append(dst, `],"dtype":"int64"}`...)
	}
	if s.Weights != nil {
		if s.Targets != nil {
			dst = append(dst, ',')
		}
		dst = append(dst, `"weights":{"data":[`...)
		var at int
		if dst, at = appendFloats(dst, s.Weights); at >= 0 {
			return dst, at
		}
		dst = append(dst, `],"dtype":"float32"}`...)
	}
	return append(dst, '}', '}'), -1
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
		case v == 0: // also of -0: a weight has no sign of zero
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
