package wire

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
)

// RoutedExperts are the experts that sampling chose, so that training can take the same: Data is row-major over Shape,
// which is [tokens, layers, topk], each at least 1.
type RoutedExperts struct {
	Shape [3]int
	Data  []uint16
}

// check holds the selections to a sample of so many tokens of model_input. They cover it, or all but its last token; one
// more is that of the last target, which the sampled sequence had too.
func (e *RoutedExperts) check(tokens int) error {
	n, want := e.Shape[0], 1
	for _, d := range e.Shape {
		if d < 1 {
			return fmt.Errorf("shape: has %d, want three numbers of at least 1: [num_tokens, num_layers, topk]", d)
		}
		if want > len(e.Data)/d {
			want = len(e.Data) + 1 // more than there are, however many
			break
		}
		want *= d
	}
	switch {
	case want != len(e.Data):
		return fmt.Errorf("data: has %d bytes, want 2 for each of the %dx%dx%d of shape", 2*len(e.Data), e.Shape[0], e.Shape[1], e.Shape[2])
	case n < tokens-1 || n > tokens+1:
		return fmt.Errorf("shape: covers %d tokens of a sample with %d of model_input; want all of them, or all but the last", n, tokens)
	}
	return nil
}

// experts reads {"data":"…","shape":[…]}.
func (s *scanner) experts() *RoutedExperts {
	e := &RoutedExperts{Data: []uint16{}}
	s.object(func(name string) {
		if s.null() {
			return
		}
		switch name {
		case "data":
			s.within(name, func() { e.Data = s.uint16s() })
		case "shape":
			s.within(name, func() { e.Shape = s.threeDimensions() })
		default:
			s.skip()
		}
	})
	return e
}

func (s *scanner) threeDimensions() (shape [3]int) {
	n := 0
	s.list(func() {
		if v := s.int64(); n < len(shape) {
			shape[n] = int(v)
		}
		n++
	})
	if s.err == nil && n != len(shape) {
		s.fail("has %d numbers, want [num_tokens, num_layers, topk]", n)
	}
	return shape
}

// uint16s reads base64 text of little-endian numbers. It is as long as its sample has it: only the input bounds it.
func (s *scanner) uint16s() []uint16 {
	s.longest = math.MaxInt
	text := s.string()
	s.longest = longestString
	if s.err != nil {
		return nil
	}
	b, err := base64.StdEncoding.AppendDecode(nil, text)
	if err != nil {
		s.fail("is not base64: %w", err)
		return nil
	}
	if len(b)%2 != 0 {
		s.fail("has %d bytes, which are no 16-bit numbers", len(b))
		return nil
	}
	list := make([]uint16, len(b)/2)
	for i := range list {
		list[i] = binary.LittleEndian.Uint16(b[2*i:])
	}
	return list
}

// appendExperts writes the inverse of experts.
func appendExperts(dst []byte, e *RoutedExperts) []byte {
	b := make([]byte, 0, 2*len(e.Data))
	for _, v := range e.Data {
		b = binary.LittleEndian.AppendUint16(b, v)
	}
	dst = base64.StdEncoding.AppendEncode(append(dst, `{"data":"`...), b)
	dst = append(dst, `","shape":[`...)
	for i, d := range e.Shape {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = strconv.AppendInt(dst, int64(d), 10)
	}
	return append(dst, "]}"...)
}
