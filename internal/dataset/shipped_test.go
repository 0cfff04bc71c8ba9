package dataset

import (
	"slices"
	"testing"

	"trainer/recipe"
)

func TestTheShippedRowsAreShortAndAllDifferent(t *testing.T) {
	f := newFixture(t, nil, recipe.Source{Path: "quickstart.jsonl"})
	f.r.Dataset.Train[0].Dir = "../../recipes/data"
	f.r.Dataset.MaxLength = 80
	data := f.mustOpen(t)
	rows := f.rows(t, data.Train)
	if different := slices.Compact(slices.Sorted(slices.Values(rows))); len(rows) < 300 || len(different) != len(rows) {
		t.Errorf("%d rows, %d of them different", len(rows), len(different))
	}
}
