package answer

import "testing"

// What means the same does so both ways round, and everything that can be read means itself.
func TestSamenessIsSymmetric(t *testing.T) {
	o := Options{Digits: 6, Units: "lenient", Percent: "lenient"}
	for _, v := range vectors(t) {
		found, ok := Find(Fold(v.Completion), Auto, Marker)
		target := Target(v.Target)
		if !ok || Decidable(found) != nil || Decidable(target) != nil {
			continue
		}
		if a, b := Compare(found, target, o), Compare(target, found, o); (a == Same) != (b == Same) {
			t.Errorf("%s: %q is %q of %q, and the other way round %q", v.Name, found, a, target, b)
		}
		if got := Compare(target, target+" ", o); got != Same {
			t.Errorf("%q is not itself: %q", target, got)
		}
	}
}
