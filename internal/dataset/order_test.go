package dataset

import (
	"fmt"
	"slices"
	"testing"
)

// setOf is a set with no rows behind it: sources of so many rows, seen so often.
func setOf(shuffle bool, parts ...part) *Set {
	s := &Set{shuffle: shuffle}
	at := 0
	for _, p := range parts {
		s.parts = append(s.parts, part{at, at + p.to, p.weight})
		at += p.to
	}
	s.entries = make([]entry, at)
	return s
}

func TestDrawIsSplitmix64(t *testing.T) {
	// The published first outputs for the state 1234567.
	for i, want := range []uint64{6457827717110365317, 3203168211198807973, 9817491932198370423} {
		if got := draw(1234567).at(uint64(i)); got != want {
			t.Errorf("output %d is %d, want %d", i, got, want)
		}
	}
}

func TestOrderNeverChanges(t *testing.T) {
	// Computed once by an independent program from the description in order.go.
	for _, c := range []struct {
		seed  int64
		epoch int
		want  []int
	}{
		{42, 0, []int{4, 6, 5, 3, 1, 9, 7, 8, 2, 0}},
		{42, 1, []int{2, 0, 1, 6, 9, 4, 7, 8, 3, 5}},
		{7, 0, []int{8, 9, 3, 0, 5, 2, 1, 6, 7, 4}},
		{-1, 3, []int{9, 4, 1, 8, 7, 6, 5, 0, 2, 3}},
	} {
		if got := setOf(true, part{0, 10, 1}).Order(c.seed, c.epoch); !slices.Equal(got, c.want) {
			t.Errorf("seed %d, epoch %d: %v, want %v; every run resumed by this binary would see other rows", c.seed, c.epoch, got, c.want)
		}
	}
	if got, want := heldOut(42, 20, 5), []int{7, 8, 13, 14, 19}; !slices.Equal(got, want) {
		t.Errorf("held out %v, want %v", got, want)
	}
	for epoch, want := range [][]int{{0, 1, 2, 3, 4, 5, 0, 4, 5}, {0, 1, 2, 3, 4, 5, 1, 2, 3}, {0, 1, 2, 3, 4, 5, 0, 4, 5}} {
		if got := setOf(false, part{0, 6, 1.5}).Order(42, epoch); !slices.Equal(got, want) {
			t.Errorf("epoch %d of weight 1.5: %v, want %v", epoch, got, want)
		}
	}
}

func TestOrderSeesEachRowAsOftenAsItsWeightSays(t *testing.T) {
	for _, shuffle := range []bool{false, true} {
		for _, parts := range [][]part{
			{{0, 1, 1}}, {{0, 7, 1}}, {{0, 7, 2}}, {{0, 10, 0.5}}, {{0, 10, 0.3}, {0, 3, 2.5}, {0, 4, 1}}, {{0, 9, 0.99}}, {{0, 100, 0.01}},
		} {
			s := setOf(shuffle, parts...)
			const epochs = 200
			total := make([]int, s.Len())
			for epoch := range epochs {
				order := s.Order(3, epoch)
				if len(order) != s.EpochLen() {
					t.Fatalf("%v: epoch %d has %d rows, EpochLen is %d", parts, epoch, len(order), s.EpochLen())
				}
				once := make([]int, s.Len())
				for _, i := range order {
					once[i]++
					total[i]++
				}
				for _, p := range s.parts {
					seen := 0
					for i := p.from; i < p.to; i++ {
						seen += once[i]
						if w := int(p.weight); once[i] < w || once[i] > w+1 {
							t.Fatalf("%v: row %d comes up %d times in epoch %d at weight %v", parts, i, once[i], epoch, p.weight)
						}
					}
					if seen != p.epochLen() {
						t.Fatalf("%v: %d rows of a source in epoch %d, want %d", parts, seen, epoch, p.epochLen())
					}
				}
				if !slices.Equal(order, s.Order(3, epoch)) {
					t.Fatalf("%v: epoch %d differs from itself", parts, epoch)
				}
			}
			for _, p := range s.parts {
				share := total[p.from:p.to]
				if slices.Max(share)-slices.Min(share) > 1 {
					t.Errorf("%v: over %d epochs rows of one source come up %d to %d times", parts, epochs, slices.Min(share), slices.Max(share))
				}
			}
		}
	}
}

func TestShuffledOrdersDiffer(t *testing.T) {
	s := setOf(true, part{0, 50, 1})
	seen := map[string]string{}
	for seed := range int64(5) {
		for epoch := range 20 {
			key, name := fmt.Sprint(s.Order(seed, epoch)), fmt.Sprintf("seed %d, epoch %d", seed, epoch)
			if other, ok := seen[key]; ok {
				t.Errorf("%s has the order of %s", name, other)
			}
			seen[key] = name
		}
	}
}

func TestUnshuffledIsFileOrderSourceAfterSource(t *testing.T) {
	s := setOf(false, part{0, 2, 2}, part{0, 3, 1})
	want := []int{0, 1, 0, 1, 2, 3, 4}
	for epoch := range 3 {
		if got := s.Order(int64(epoch), epoch); !slices.Equal(got, want) {
			t.Errorf("epoch %d: %v, want %v", epoch, got, want)
		}
	}
}

func TestEveryPositionIsEquallyLikely(t *testing.T) {
	// 20000 epochs of 4 rows: each row is expected 5000 times at each place, with a deviation of 61; 6 of them are allowed.
	s := setOf(true, part{0, 4, 1})
	var count [4][4]int
	for epoch := range 20000 {
		for place, i := range s.Order(1, epoch) {
			count[place][i]++
		}
	}
	for place := range count {
		for i, n := range count[place] {
			if n < 5000-370 || n > 5000+370 {
				t.Errorf("row %d is %d times in place %d of 20000 epochs", i, n, place)
			}
		}
	}
}
