package runner

import (
	"testing"
	"testing/synctest"
	"time"
)

// What is waited for is noticed within an eighth of what it took, or 5 s, in a number of looks that does not grow with it.
func TestNextLook(t *testing.T) {
	for _, took := range []time.Duration{0, 30 * time.Millisecond, time.Second, time.Minute, time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			since, looks := time.Now(), 0
			for time.Since(since) < took {
				time.Sleep(nextLook(since))
				looks++
			}
			late := time.Since(since) - took
			if most := min(max(took/8, 10*time.Millisecond), 5*time.Second); late > most {
				t.Errorf("what took %v was noticed %v late, want at most %v", took, late, most)
			}
			if most := 80 + int(took/(5*time.Second)); looks > most {
				t.Errorf("%d looks at what took %v, want at most %d", looks, took, most)
			}
		})
	}
}
