package recipe

import (
	"os"
	"strings"
	"testing"
)

// TestOddValuesAtEveryKey puts values that a key may not expect at every key of every loop, by --set, which goes through
// the same decoder as a file: all are refused with a place, or load and resolve to the same recipe.
func TestOddValuesAtEveryKey(t *testing.T) {
	// Each key gets every third value, another third than its neighbour; with -short every fifteenth.
	stride := 3
	if testing.Short() {
		stride = 15
	}
	odd := []string{"", "null", "[]", "{}", "x", "0", "-1", "1.5", "true", ".nan", "[[1], {a: b}]", "{type: x, path: y, a: {b: [null]}}", `""`, "[null]", "9223372036854775808"}
	for _, loop := range []string{"supervised", "preference", "reinforcement", "distillation"} {
		data, err := os.ReadFile("testdata/full/" + loop + ".yaml")
		if err != nil {
			t.Fatal(err)
		}
		turn := 0
		var try func(*Key)
		try = func(k *Key) {
			for _, c := range k.Keys {
				key := strings.ReplaceAll(strings.ReplaceAll(c.Path, ".fields.N", ".fields.prompt"), ".N", ".0")
				turn++
				for i := turn % stride; i < len(odd); i += stride {
					value := odd[i]
					r, err := in(string(data), key+"="+value)
					if err != nil {
						checkProblems(t, err)
						continue
					}
					again, err := in(string(r.Resolved()))
					if err != nil {
						t.Errorf("--set %s=%s resolves to what does not load: %v", key, value, err)
					} else if d := Diff(r, again); len(d) > 0 || r.Hash() != again.Hash() {
						t.Errorf("--set %s=%s resolves to another recipe: %v", key, value, d)
					}
				}
				try(c)
			}
			if k.Elem != nil {
				try(k.Elem)
			}
		}
		try(root)
	}
}
