package wire

import (
	"fmt"
	"slices"
	"strings"
)

// Shape is one of the forms that the samples of a forward-backward and a custom-forward-backward have had. Both say the
// same values. The zero value is Current.
type Shape int

// The shapes.
const (
	Current   Shape = iota // loss_fn_inputs: an open map of tensors, int64 and float32
	April2026              // loss_inputs: tensors of their own and an object a loss, D_TYPE_*; routed_experts inline; no DPPO
)

var shapeWords = []string{"current", "2026-04"}

func (s Shape) String() string { return shapeWords[s] }

// ParseShape is the inverse of String; an error lists the words.
func ParseShape(word string) (Shape, error) {
	i := slices.Index(shapeWords, word)
	if i < 0 {
		return Current, fmt.Errorf("%q is not one of %s", word, strings.Join(shapeWords, ", "))
	}
	return Shape(i), nil
}

// Losses returns the recipe's names of the losses that a body of the shape can ask for.
func (s Shape) Losses() []string {
	var names []string
	for i := range lossRows {
		if s.has(lossRows[i].typ) {
			names = append(names, lossRows[i].name)
		}
	}
	return names
}

// has says whether the shape has the loss; both know only those of lossRows.
func (s Shape) has(t LossType) bool {
	_, older := april[t]
	return s == Current && rowOf(t).name != "" || s == April2026 && older
}

// april are the losses of the shape April2026, each with the tensors of its object in loss_inputs, in the order in which
// they are written. Without tensors there is no object.
var april = map[LossType][]string{
	LossCrossEntropy:       nil,
	LossGRPO:               {"advantages", "logprobs", "reference_logprobs"},
	LossImportanceSampling: {"advantages", "logprobs"},
	LossPPO:                {"advantages", "logprobs"},
	LossCISPO:              {"advantages", "logprobs"},
	LossDRO:                {"advantages", "logprobs"},
}

// Place is where the tensor of a sample stands in a body with the loss t: loss_fn_inputs.logprobs, and in the older shape
// loss_inputs.grpo_inputs.logprobs. t is empty in a body without a loss.
func (s Shape) Place(t LossType, tensor string) string {
	switch {
	case s == Current:
		return "loss_fn_inputs." + tensor
	case slices.Contains(april[t], tensor):
		return "loss_inputs." + rowOf(t).inputs() + "." + tensor
	}
	return "loss_inputs." + tensor
}

// inputs is the name of the row's tensors in the older JSON.
func (r *lossRow) inputs() string { return r.name + "_inputs" }

// lacks is why the older shape cannot ask for t.
func (s Shape) lacks(t LossType) string {
	if rowOf(t).name == "" {
		return fmt.Sprintf("%q is not a loss; the %s shape has %s", string(t), s, strings.Join(s.Losses(), ", "))
	}
	return fmt.Sprintf("%s is not in the %s shape, which has %s; send the samples with loss_fn_inputs, the %s shape",
		t, s, strings.Join(s.Losses(), ", "), Current)
}
