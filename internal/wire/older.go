package wire

import (
	"fmt"
	"math"
	"slices"
)

// mark notes the shape that the member being read is of. A body has one: two would say the same tensors twice.
func (s *scanner) mark(shape Shape) {
	switch {
	case s.marked == "":
		s.shape, s.marked = shape, string(s.where)
	case s.shape != shape:
		s.fail("is of the %s shape, and %s is of the %s shape; a body has one", shape, s.marked, s.shape)
	}
}

// olderInputs reads loss_inputs. What this shape has nowhere, or elsewhere, is refused: left out, a mask would train what
// it should not.
func (s *scanner) olderInputs(x *Sample) {
	s.object(func(name string) {
		if s.null() {
			return
		}
		row := olderObject(name)
		switch {
		case name == "target_tokens":
			s.within(name, func() { x.Targets = s.olderTokens() })
		case name == "weights":
			s.within(name, func() { x.Weights = s.olderFloats(true) })
		case row != nil:
			s.objects[len(s.objects)-1] = append(s.objects[len(s.objects)-1], row.typ)
			s.within(name, func() { s.olderTensors(x, row.typ) })
		case name == "mask":
			s.within(name, func() { s.fail("is not in the %s shape; give weights", April2026) })
		case tensorNamed(name) != nil:
			s.within(name, func() { s.fail("stands in the object of its loss, as grpo_inputs.%s", name) })
		default:
			s.skip()
		}
	})
}

// olderObject is the loss whose tensors name holds, as grpo_inputs; nil for none. A loss that has no such object is found
// too, and then refused.
func olderObject(name string) *lossRow {
	for i := range lossRows {
		if lossRows[i].inputs() == name {
			return &lossRows[i]
		}
	}
	return nil
}

// olderTensors reads the object of a loss.
func (s *scanner) olderTensors(x *Sample, t LossType) {
	if len(april[t]) == 0 {
		s.skip() // checkOlder refuses it as a whole
		return
	}
	s.object(func(name string) {
		tensor := tensorNamed(name)
		switch {
		case s.null():
		case tensor == nil:
			s.skip()
		case !slices.Contains(april[t], name):
			s.within(name, func() { s.fail("is not a tensor of %s in the %s shape", t, April2026) })
		default:
			s.within(name, func() { *tensor.of(x) = s.olderFloats(false) })
		}
	})
}

// D_TYPE_* of the older shape. A dtype that is not sent, or is unspecified, is that of the tensor.
const (
	dtypeUnspecified = "D_TYPE_UNSPECIFIED"
	dtypeInt64       = "D_TYPE_INT64"
	dtypeFloat32     = "D_TYPE_FLOAT32"
	dtypeBFloat16    = "D_TYPE_BFLOAT16"
)

func (s *scanner) olderTokens() []int32 {
	dtype := s.tensor(func() { s.tokens(true) })
	if s.err == nil && dtype != "" && dtype != dtypeUnspecified && dtype != dtypeInt64 {
		s.fail("dtype is %q, want %s", dtype, dtypeInt64)
	}
	return clone(s.ints)
}

// olderFloats reads numbers, rounded to float32, and further to bfloat16 where the dtype says so.
func (s *scanner) olderFloats(counts bool) []float64 {
	dtype, integers := s.floats32()
	if s.err != nil {
		return nil
	}
	switch dtype {
	case "", dtypeUnspecified, dtypeFloat32:
	case dtypeBFloat16:
		s.roundToBFloat16()
	case dtypeInt64:
		if !counts {
			s.fail("dtype is %s, want %s or %s", dtype, dtypeFloat32, dtypeBFloat16)
		} else if !integers {
			s.fail("dtype is %s, but a value is no integer", dtype)
		}
	default:
		s.fail("dtype is %q, want %s, %s or %s", dtype, dtypeFloat32, dtypeBFloat16, dtypeInt64)
	}
	return clone(s.floats)
}

// roundToBFloat16 keeps the upper half of each float32, rounded to the nearest, of two the even one.
func (s *scanner) roundToBFloat16() {
	for i, v := range s.floats {
		b := math.Float32bits(float32(v))
		b += 0x7fff + b>>16&1
		f := float64(math.Float32frombits(b &^ 0xffff))
		if f-f != 0 {
			s.within("data", func() { s.index = i; s.fail("%v is beyond bfloat16", v) })
			return
		}
		s.floats[i] = f
	}
}

// checkOlder holds a body of the older shape to what one member says of another, once all are read. loss is nil for a body
// without one. Of the short body that goes with an upload the experts are those of the whole one: they say nothing here.
func (s *scanner) checkOlder(loss *LossConfig, samples []Sample, uploaded bool) {
	if s.err != nil || s.shape != April2026 {
		return
	}
	var t LossType
	if loss != nil {
		if t = loss.Type; !s.shape.has(t) {
			s.err = fmt.Errorf("loss.type: %s", s.shape.lacks(t))
			return
		}
	}
	for i := range samples {
		err := checkObjects(t, s.objects[i])
		if x := &samples[i]; uploaded {
			x.Experts = nil
		} else if x.Experts != nil && err == nil {
			if err = x.Experts.check(len(x.Tokens)); err != nil {
				err = fmt.Errorf("routed_experts.%w", err)
			}
		}
		if err != nil {
			s.err = fmt.Errorf("samples[%d].%w", i, err)
			return
		}
	}
}

// checkObjects wants the object of t, where that has one, and no other.
func checkObjects(t LossType, have []LossType) error {
	for _, other := range have {
		switch {
		case other == t && len(april[t]) > 0:
		case t == "":
			return fmt.Errorf("loss_inputs.%s: is of a loss, and this request has none", rowOf(other).inputs())
		case other == t:
			return fmt.Errorf("loss_inputs.%s: %s has no tensors of its own in the %s shape", rowOf(other).inputs(), t, April2026)
		default:
			return fmt.Errorf("loss_inputs.%s: is not of %s", rowOf(other).inputs(), t)
		}
	}
	if len(april[t]) > 0 && len(have) == 0 {
		return fmt.Errorf("loss_inputs.%s: is required by %s", rowOf(t).inputs(), t)
	}
	return nil
}
