package wire

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// DecodeForwardBackward reads the body of a forward-backward, inline or uploaded. It is strict about types and about what
// a tensor says of itself: target_tokens are integers of dtype int64, weights and mask numbers of dtype float32 or integers
// of dtype int64, the other tensors numbers of dtype float32. A parameter that its loss does not have is refused; other
// members and tensors that it does not know are skipped. A body of the shape April2026 is read into the same value; what
// Shape's two forms can't both mean is refused: both in one body, the object of another loss, none of the loss's own, a
// loss that the shape lacks. An error names the place. More than maxSamples samples are refused
// (0: any number). Memory is bounded by the input, which the caller bounds. Lengths are not compared, and presence is the
// caller's to check: an absent tensor is nil.
func DecodeForwardBackward(r io.Reader, maxSamples int) (*ForwardBackward, error) {
	s := newScanner(r)
	f := &ForwardBackward{}
	s.object(func(name string) {
		switch name {
		case "loss":
			if !s.null() {
				s.within(name, func() { s.lossConfig(&f.Loss) })
			}
		case "samples":
			if !s.null() {
				s.within(name, func() { f.Samples = s.samples(maxSamples) })
			}
		case "forward_only":
			s.within(name, func() { f.ForwardOnly = s.boolean() })
		case "return_loss_fn_outputs":
			s.within(name, func() { f.ReturnOutputs = s.boolean() })
		case "payload_id":
			f.PayloadID = s.text(name)
		default:
			s.skip()
		}
	})
	s.end()
	s.checkOlder(&f.Loss, f.Samples, f.PayloadID != "")
	if s.err != nil {
		return nil, fmt.Errorf("reading the body: %w", s.err)
	}
	f.Shape = s.shape
	return f, nil
}

// DecodeCustomForwardBackward is as DecodeForwardBackward. The dtype of a gradient is D_TYPE_FLOAT32 or float32, and may be
// left out, or D_TYPE_UNSPECIFIED.
func DecodeCustomForwardBackward(r io.Reader, maxSamples int) (*CustomForwardBackward, error) {
	s := newScanner(r)
	f := &CustomForwardBackward{}
	s.object(func(name string) {
		switch name {
		case "samples":
			if !s.null() {
				s.within(name, func() { f.Samples = s.samples(maxSamples) })
			}
		case "gradients":
			if !s.null() {
				s.within(name, func() { f.Gradients = s.gradients(maxSamples) })
			}
		case "payload_id":
			f.PayloadID = s.text(name)
		default:
			s.skip()
		}
	})
	s.end()
	s.checkOlder(nil, f.Samples, f.PayloadID != "")
	if s.err != nil {
		return nil, fmt.Errorf("reading the body: %w", s.err)
	}
	f.Shape = s.shape
	return f, nil
}

func (s *scanner) gradients(most int) [][]float64 {
	list := [][]float64{}
	s.array(func(i int) {
		if most > 0 && i >= most {
			s.fail("more than %d gradients", most)
			return
		}
		dtype, _ := s.floats32()
		if s.err == nil && dtype != "" && dtype != "D_TYPE_UNSPECIFIED" && dtype != "float32" && dtype != "D_TYPE_FLOAT32" {
			s.fail("dtype is %q, want D_TYPE_FLOAT32", dtype)
		}
		list = append(list, clone(s.floats))
	})
	return list
}

func (s *scanner) lossConfig(c *LossConfig) {
	s.object(func(name string) {
		if name == "type" {
			c.Type = LossType(s.text(name))
			return
		}
		for i := range lossRows {
			if row := &lossRows[i]; name == row.object() && !s.null() {
				s.within(name, func() { c.Params = append(c.Params, s.lossParams(row)) })
				return
			}
		}
		s.skip()
	})
}

// lossParams refuses what the loss does not have: a limit that is not applied trains something else.
func (s *scanner) lossParams(row *lossRow) LossParams {
	p := LossParams{Of: row.typ}
	s.object(func(name string) {
		switch number, word := p.number(name), p.word(name); {
		case !slices.Contains(row.params, name):
			s.within(name, func() { s.fail("is not a parameter of %s", row.typ) })
		case s.null():
		case number != nil:
			s.within(name, func() { *number = new(s.float32()) })
		default:
			*word = s.word(name)
		}
	})
	return p
}

func (s *scanner) samples(most int) []Sample {
	list := []Sample{}
	s.shape, s.marked, s.objects = Current, "", s.objects[:0] // where the member stands twice, the last counts
	s.array(func(i int) {
		if most > 0 && i >= most {
			s.fail("more than %d samples", most)
			return
		}
		s.objects = append(s.objects, nil)
		list = append(list, s.sample())
	})
	return list
}

func (s *scanner) sample() (x Sample) {
	s.object(func(name string) {
		if s.null() {
			return
		}
		switch name {
		case "model_input":
			s.within(name, func() { x.Tokens = s.modelInput() })
		case "loss_fn_inputs":
			s.within(name, func() { s.mark(Current); s.lossInputs(&x) })
		case "loss_inputs":
			s.within(name, func() { s.mark(April2026); s.olderInputs(&x) })
		case "routed_experts":
			s.within(name, func() { s.mark(April2026); x.Experts = s.experts() })
		case "routed_experts_key":
			s.within(name, func() { s.mark(Current); x.RoutedExpertsKey = string(s.string()) })
		default:
			s.skip()
		}
	})
	return x
}

func (s *scanner) lossInputs(x *Sample) {
	s.object(func(name string) {
		if s.null() {
			return
		}
		if name == "target_tokens" {
			s.within(name, func() { x.Targets = s.tokenTensor() })
			return
		}
		if t := tensorNamed(name); t != nil {
			s.within(name, func() { *t.of(x) = s.floatTensor(t.counts) })
			return
		}
		s.skip()
	})
}

// modelInput joins the tokens of every chunk.
func (s *scanner) modelInput() []int32 {
	s.ints = s.ints[:0]
	s.only("chunks", func() {
		s.ints = s.ints[:0]
		s.array(func(int) {
			s.only("encoded_text", func() {
				s.only("tokens", func() { s.tokens(true) })
			})
		})
	})
	return clone(s.ints)
}

// only reads an object of which one member counts, and must be there.
func (s *scanner) only(member string, read func()) {
	found := false
	s.object(func(name string) {
		if name != member || s.null() {
			s.skip()
			return
		}
		found = true
		s.within(name, read)
	})
	if !found {
		s.within(member, s.missing)
	}
}

func (s *scanner) missing() { s.fail("is required") }

// tokens appends a list of token ids to s.ints; as strings too, where quoted says so.
func (s *scanner) tokens(quoted bool) {
	s.list(func() {
		if quoted && s.peek() == '"' {
			s.ints = append(s.ints, s.quotedToken())
			return
		}
		s.ints = append(s.ints, s.token())
	})
}

func (s *scanner) quotedToken() int32 {
	text := s.string()
	v, err := strconv.ParseInt(string(text), 10, 32)
	if s.err == nil && (err != nil || text[0] == '+') {
		s.fail("%.40q is not a token id", text)
	}
	return int32(v)
}

// list reads an array of scalars: as array, but the place is made only for an error.
func (s *scanner) list(element func()) {
	if !s.take('[') {
		return
	}
	if s.peek() == ']' {
		s.pos++
		return
	}
	for s.index = 0; s.err == nil; s.index++ {
		element()
		if !s.another(']') {
			break
		}
	}
	s.index = -1
}

// tokenTensor reads {"data":[…],"dtype":"int64"}.
func (s *scanner) tokenTensor() []int32 {
	dtype := s.tensor(func() { s.tokens(false) })
	if s.err == nil && dtype != "int64" {
		s.fail("dtype is %q, want int64", dtype)
	}
	return clone(s.ints)
}

// floatTensor reads {"data":[…],"dtype":"float32"}, values rounded to float32; or integers under int64 where they count.
func (s *scanner) floatTensor(counts bool) []float64 {
	dtype, integers := s.floats32()
	switch {
	case s.err != nil:
	case dtype == "int64" && counts && !integers:
		s.fail("dtype is int64, but a value is no integer")
	case dtype != "float32" && counts && dtype != "int64":
		s.fail("dtype is %q, want float32 or int64", dtype)
	case dtype != "float32" && !counts:
		s.fail("dtype is %q, want float32", dtype)
	}
	return clone(s.floats)
}

// floats32 reads a tensor's object into s.floats, and says whether every value was written as an integer.
func (s *scanner) floats32() (dtype string, integers bool) {
	integers = true
	dtype = s.tensor(func() {
		integers = true
		s.list(func() {
			n := s.number()
			v, ok := n.float()
			if s.err == nil && (!ok || !fitsFloat32(v)) {
				s.fail("%.40s is beyond float32", n.text)
			}
			integers = integers && n.integer
			s.floats = append(s.floats, float64(float32(v)))
		})
	})
	return dtype, integers
}

// tensor reads a tensor's object: data at its values, which go to s.ints or s.floats, and the dtype. A shape must be that of
// the data, and the members of a sparse tensor are refused: what they stand for is not what is read. Of a member that stands
// twice the last counts.
func (s *scanner) tensor(data func()) (dtype string) {
	s.ints, s.floats = s.ints[:0], s.floats[:0]
	found, length := false, -1
	s.object(func(name string) {
		switch {
		case name == "data":
			s.ints, s.floats, found = s.ints[:0], s.floats[:0], true
			s.within(name, data)
		case name == "dtype":
			dtype = s.word(name)
		case s.null():
			s.skip()
		case name == "shape":
			s.within(name, func() { length = s.oneDimension() })
		case strings.HasPrefix(name, "sparse_"):
			s.within(name, func() { s.fail("a sparse tensor is not taken; write all of its values into data") })
		default:
			s.skip()
		}
	})
	if !found {
		s.within("data", s.missing)
	}
	if n := max(len(s.ints), len(s.floats)); length >= 0 && length != n {
		s.within("shape", func() { s.fail("is [%d], and data has %d values", length, n) })
	}
	return dtype
}

// oneDimension reads a shape of one entry.
func (s *scanner) oneDimension() (length int) {
	entries := 0
	s.list(func() {
		length = s.small()
		entries++
	})
	if s.err == nil && (entries != 1 || length < 0) {
		s.fail("a tensor has one dimension, so its shape has one entry of at least 0")
	}
	return length
}

// clone is never nil: nil says that a member is absent.
func clone[T any](list []T) []T {
	if len(list) == 0 {
		return []T{}
	}
	return slices.Clone(list)
}
