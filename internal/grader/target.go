package grader

import (
	"errors"
	"fmt"

	"trainer/internal/grader/answer"
)

var errNoTarget = errors.New("the target is empty; without one there is nothing to compare with")

func anyTarget(target []byte) error {
	if _, ok := (Completion{Target: target}).targets(); !ok {
		return errNoTarget
	}
	return nil
}

// oneTarget is the text of a target that must be single, cut out as an answer is.
func oneTarget(target []byte) (string, error) {
	text, ok := (Completion{Target: target}).target()
	if !ok {
		return "", errNoTarget
	}
	if text = answer.Target(text); text == "" {
		return "", errNoTarget
	}
	return text, nil
}

func undecidable(text, due string) error {
	if len(text) > 80 {
		text = text[:80] + "…"
	}
	return fmt.Errorf("the target %q is not %s", text, due)
}

// CheckTarget says what the first reward that compares with the target finds wrong with it, a JSON value as Completion.Target.
func (s *Set) CheckTarget(target []byte) error {
	for i, e := range s.entries {
		if t, ok := e.Grader.(Targeted); ok {
			if err := t.CheckTarget(target); err != nil {
				return fmt.Errorf("reward %s: %w", s.names[i], err)
			}
		}
	}
	return nil
}
