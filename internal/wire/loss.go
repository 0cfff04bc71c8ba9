package wire

import (
	"fmt"

	"trainer/loss"
)

// LossType is an enum.
type LossType string

// The losses that the service computes.
const (
	LossCrossEntropy LossType = "LOSS_TYPE_CROSS_ENTROPY"
)

// LossConfig is the loss of a forward-backward.
type LossConfig struct {
	Type LossType `json:"type"`
}

// lossRow is one loss that the service computes: the recipe's word for it, and both ways between value and wire form.
type lossRow struct {
	name string
	typ  LossType
	to   func(loss.Loss) (LossConfig, bool) // false: another loss
	from func(LossConfig) loss.Loss
}

func lossRows() []lossRow {
	return []lossRow{
		{
			name: "cross_entropy", typ: LossCrossEntropy,
			to: func(l loss.Loss) (LossConfig, bool) {
				_, ok := l.(*loss.CrossEntropy)
				return LossConfig{Type: LossCrossEntropy}, ok
			},
			from: func(LossConfig) loss.Loss { return &loss.CrossEntropy{} },
		},
	}
}

// Losses returns the recipe's names of the losses that the service computes.
func Losses() []string {
	var names []string
	for _, row := range lossRows() {
		names = append(names, row.name)
	}
	return names
}

// FromLoss returns the wire form of l; an error names a loss that the service does not compute.
func FromLoss(l loss.Loss) (LossConfig, error) {
	for _, row := range lossRows() {
		if c, ok := row.to(l); ok {
			return c, nil
		}
	}
	return LossConfig{}, fmt.Errorf("encoding the loss: %T is not a loss that the service computes; it has %v", l, Losses())
}

// ToLoss is the inverse of FromLoss; an error names an unknown type.
func ToLoss(c LossConfig) (loss.Loss, error) {
	for _, row := range lossRows() {
		if row.typ == c.Type {
			return row.from(c), nil
		}
	}
	return nil, fmt.Errorf("loss.type: %q is not a loss that is computed here; it has %v", string(c.Type), Losses())
}
