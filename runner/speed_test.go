package runner

import "testing"

func TestSpeedIsToldOverTheNewestSteps(t *testing.T) {
	var s speed
	if _, ok := s.add(100, 0); ok {
		t.Error("100 tokens in no time have a speed")
	}
	// Pairs that land together: the second of each seems to have taken no time at all.
	for i := range 40 {
		seconds := 2.0
		if i%2 == 1 {
			seconds = 1e-9
		}
		got, ok := s.add(100, seconds)
		if i > speedSteps && (!ok || got < 99 || got > 101) {
			t.Errorf("step %d: %v tokens a second, want about 100", i+1, got)
		}
	}
	// What is older than the window does not count.
	for range speedSteps {
		s.add(100, 10)
	}
	if got, _ := s.add(100, 10); got != 10 {
		t.Errorf("%v tokens a second, want 10", got)
	}
}

func TestAStepTakesWhatTheNewestTook(t *testing.T) {
	var s speed
	if got := s.perStep(); got != 0 {
		t.Errorf("%v seconds before the first step", got)
	}
	s.add(1, 4)
	s.add(1, 2)
	if got := s.perStep(); got != 3 {
		t.Errorf("%v seconds, want the mean of 4 and 2", got)
	}
	for range speedSteps {
		s.add(1, 10)
	}
	if got := s.perStep(); got != 10 {
		t.Errorf("%v seconds, want 10: what is older does not count", got)
	}
}
