package main

import (
	"fmt"
	"strings"

	"trainer/internal/report"
	"trainer/recipe"
)

// saves says in words which checkpoints a run of so many steps makes.
func saves(c recipe.Checkpoint, steps int) []string {
	training := "at the end"
	if n := c.Every; n != nil && *n < steps {
		training = fmt.Sprintf("every %s, and at the end", plural(*n, "step"))
	}
	if d := c.EveryDuration; d != nil {
		training += fmt.Sprintf(", or %s after the one before", report.Duration(*d))
	}
	var inference []string
	if n := c.InferenceEvery; n != nil && *n <= steps {
		inference = append(inference, "every "+plural(*n, "step"))
	}
	if c.InferenceAtEnd {
		inference = append(inference, "at the end")
	}
	if len(inference) == 0 {
		inference = []string{"none"}
	}
	lines := []string{
		"checkpoints for training: " + training,
		"checkpoints for inference: " + strings.Join(inference, ", and ") + map[string]string{"final": "; the final one is copied into the run folder", "kept": "; those kept are copied into the run folder"}[c.Download],
	}
	long := func(n *int, key, made string) {
		if n != nil && *n > steps {
			lines = append(lines, fmt.Sprintf("%s is %s, more than the run has steps: %s", key, report.Count(*n), made))
		}
	}
	long(c.Every, "checkpoint.every", "only the final one is made")
	only := "none is made"
	if c.InferenceAtEnd {
		only = "only the final one is made"
	}
	long(c.InferenceEvery, "checkpoint.inference_every", only)
	return lines
}
