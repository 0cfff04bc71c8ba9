package runner

import (
	"testing"

	"trainer/internal/dataset"
	"trainer/loss"
)

func TestHowTwoRowsDiffer(t *testing.T) {
	row := func(ds ...loss.Datum) dataset.Row { return dataset.Row{Data: ds} }
	d := loss.Datum{Input: []int32{1, 2}, Targets: []int32{2, 3}, Weights: []float64{0, 1}}
	other := func(f func(*loss.Datum)) loss.Datum {
		c := d
		f(&c)
		return c
	}
	for _, c := range []struct {
		name string
		a, b dataset.Row
		want string
	}{
		{"the same", row(d), row(d), ""},
		{"the last token", row(d), row(other(func(d *loss.Datum) { d.Targets = []int32{2, 4} })), "3 and 3 tokens, the first that differs is token 3"},
		{"one is longer", row(d), row(other(func(d *loss.Datum) { d.Input, d.Targets = []int32{1, 2, 3}, []int32{2, 3, 4} })), "3 and 4 tokens, the first that differs is token 4"},
		{"a mask", row(d), row(other(func(d *loss.Datum) { d.Weights = []float64{0, 0} })), "the same 3 tokens, with other weights from token 3 on"},
		{"a label", row(d), row(other(func(d *loss.Datum) { d.Desirable = true })), "the same 3 tokens, with the other label"},
		{"the second side", row(d, d), row(d, loss.Datum{Input: []int32{9}}), "3 and 1 tokens, the first that differs is token 1"},
		{"examples", row(d), row(d, d), "1 and 2 examples"},
		{"nothing to predict", row(loss.Datum{Input: []int32{1}}), row(loss.Datum{Input: []int32{1}}), ""},
	} {
		if got := rowDiffers(c.a, c.b); got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}
