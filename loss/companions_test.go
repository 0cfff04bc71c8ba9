package loss

import (
	"reflect"
	"testing"
)

// The KL term of kto pairs each prompt with the completion of the next row, weights and all, and the last with the first.
func TestCompanionsOfKTO(t *testing.T) {
	step := []Datum{
		{Input: []int32{1, 2, 3}, Targets: []int32{2, 3, 4}, Weights: []float64{0, 1, 1}, Desirable: true}, // 1 2 | 3 4
		{Input: []int32{5, 6}, Targets: []int32{6, 7}, Weights: []float64{0, 0.5}},                         // 5 6 | 7
		{Input: []int32{8, 9}, Targets: []int32{9, 10}, Weights: []float64{1, 1}},                          // 8 | 9 10
	}
	want := []Datum{
		{Input: []int32{1, 2}, Targets: []int32{2, 7}, Weights: []float64{0, 0.5}, Mismatched: true},
		{Input: []int32{5, 6, 9}, Targets: []int32{6, 9, 10}, Weights: []float64{0, 1, 1}, Mismatched: true},
		{Input: []int32{8, 3}, Targets: []int32{3, 4}, Weights: []float64{1, 1}, Mismatched: true},
	}
	if got := newKTO().Companions(step); !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if got := newKTO().Companions(step[:1]); got != nil {
		t.Errorf("of one row: %+v", got)
	}
	weightless := Datum{Input: []int32{1, 2}, Targets: []int32{2, 3}, Weights: []float64{0, 0}}
	for _, d := range newKTO().Companions([]Datum{weightless, weightless}) {
		if len(d.Input) != len(d.Targets) || len(d.Input) != len(d.Weights) || len(d.Input) == 0 {
			t.Errorf("of rows without weight: %+v", d)
		}
	}
}

// What a loss says of itself is what its Eval asks for.
func TestUsesReferenceIsWhatEvalNeeds(t *testing.T) {
	d := Datum{Input: []int32{1}, Targets: []int32{2}, Weights: []float64{1}}
	for _, k := range Kinds() {
		if k.Loop != Preference || k.Name == "command" { // which a key decides
			continue
		}
		l := k.New()
		r, ok := l.(Referenced)
		_, err := l.Eval([][]float64{{-1}, {-2}}, []Datum{d, d})
		if uses := ok && r.UsesReference(); uses != (err != nil) {
			t.Errorf("%s: uses a reference: %v; without one Eval says %v", k.Name, uses, err)
		}
	}
}
