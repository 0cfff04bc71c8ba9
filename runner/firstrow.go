package runner

import (
	"fmt"
	"slices"

	"trainer/internal/dataset"
	"trainer/loss"
)

// RowDifference is the first row that two datasets do not have alike.
type RowDifference struct {
	Row  int    `json:"row"` // from 1, in file order
	A    string `json:"a"`   // where it is; empty where that side has no such row
	B    string `json:"b"`
	What string `json:"what"`
}

// FirstRow finds the first training row that a and b render differently; nil: there is none.
func FirstRow(a, b *Inputs) (*RowDifference, error) {
	n, m := a.Train.Len(), b.Train.Len()
	for i := range min(n, m) {
		x, err := a.Train.Row(i)
		if err != nil {
			return nil, err
		}
		y, err := b.Train.Row(i)
		if err != nil {
			return nil, err
		}
		if what := rowDiffers(x, y); what != "" {
			return &RowDifference{i + 1, x.At.String(), y.At.String(), what}, nil
		}
	}
	switch {
	case n > m:
		return &RowDifference{Row: m + 1, A: a.Train.At(m).String(), What: fmt.Sprintf("%d rows more", n-m)}, nil
	case m > n:
		return &RowDifference{Row: n + 1, B: b.Train.At(n).String(), What: fmt.Sprintf("%d rows more", m-n)}, nil
	}
	return nil, nil
}

// rowDiffers says how, in tokens counted from 1; empty: not at all.
func rowDiffers(a, b dataset.Row) string {
	if len(a.Data) != len(b.Data) {
		return fmt.Sprintf("%d and %d examples", len(a.Data), len(b.Data))
	}
	for i := range a.Data {
		x, y := tokensOf(a.Data[i]), tokensOf(b.Data[i])
		t := firstDifference(x, y)
		w := firstDifference(a.Data[i].Weights, b.Data[i].Weights)
		switch {
		case t >= 0:
			return fmt.Sprintf("%d and %d tokens, the first that differs is token %d", len(x), len(y), t+1)
		case w >= 0:
			return fmt.Sprintf("the same %d tokens, with other weights from token %d on", len(x), w+2)
		case a.Data[i].Desirable != b.Data[i].Desirable:
			return fmt.Sprintf("the same %d tokens, with the other label", len(x))
		}
	}
	return ""
}

// tokensOf are all tokens of an example.
func tokensOf(d loss.Datum) []int32 {
	if len(d.Targets) == 0 {
		return d.Input
	}
	return append(slices.Clone(d.Input), d.Targets[len(d.Targets)-1:]...)
}

// firstDifference is an index, -1 where there is none.
func firstDifference[T comparable](a, b []T) int {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return i
		}
	}
	if len(a) != len(b) {
		return min(len(a), len(b))
	}
	return -1
}
