package tokenizer

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// The scan and the heap are two ways to one result; the reference has only the heap.
func TestManyMergesAreFewMerges(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	letters := []rune("aaabehlorstw  ▁▁世界éИ\u0301")
	for name, tok := range small(t) {
		model := tok.vocabulary.(*pipeline).model
		merged := 0
		for range 200 {
			var text strings.Builder
			for range rng.IntN(120) {
				text.WriteRune(letters[rng.IntN(len(letters))])
			}
			var few, many merging
			few.symbols(model, text.String())
			many.symbols(model, text.String())
			before := len(few.syms)
			few.mergeFew(&model.merges)
			many.mergeMany(&model.merges)
			if !slices.Equal(few.syms, many.syms) || !slices.Equal(few.cuts, many.cuts) {
				t.Fatalf("%s: %q: by scan %v %v, by heap %v %v", name, text.String(), few.syms, few.cuts, many.syms, many.cuts)
			}
			merged += before - len(few.syms)
		}
		if merged == 0 {
			t.Errorf("%s: nothing was merged", name)
		}
	}
}

func TestALongWordComesBack(t *testing.T) {
	tok, err := Open("testdata/llama3")
	if err != nil {
		t.Fatal(err)
	}
	for _, unit := range []string{"a", "the", "世", " ", "A", "\u0301", "="} {
		text := strings.Repeat(unit, 100_000)
		ids, ends := tok.Encode(text)
		if tok.Decode(ids) != text || ends[len(ends)-1] != len(text) || len(ids) > len(text) {
			t.Errorf("%d times %q: %d ids that do not come back", 100_000, unit, len(ids))
		}
	}
}
