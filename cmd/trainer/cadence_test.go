package main

import (
	"slices"
	"testing"
	"time"

	"trainer/recipe"
)

func TestSaves(t *testing.T) {
	for name, c := range map[string]struct {
		c    recipe.Checkpoint
		want []string
	}{
		"by steps and by time": {recipe.Checkpoint{Every: new(20), EveryDuration: new(30 * time.Minute), InferenceAtEnd: true},
			[]string{"checkpoints for training: every 20 steps, and at the end, or 30m after the one before", "checkpoints for inference: at the end"}},
		"copies": {recipe.Checkpoint{Every: new(1), InferenceEvery: new(10), InferenceAtEnd: true, Download: "kept"},
			[]string{"checkpoints for training: every 1 step, and at the end", "checkpoints for inference: every 10 steps, and at the end; those kept are copied into the run folder"}},
		"longer than the run": {recipe.Checkpoint{Every: new(5000), InferenceEvery: new(61), InferenceAtEnd: true},
			[]string{"checkpoints for training: at the end", "checkpoints for inference: at the end",
				"checkpoint.every is 5,000, more than the run has steps: only the final one is made",
				"checkpoint.inference_every is 61, more than the run has steps: only the final one is made"}},
		"as long as the run": {recipe.Checkpoint{Every: new(60), InferenceEvery: new(60)},
			[]string{"checkpoints for training: at the end", "checkpoints for inference: every 60 steps"}},
		"none for inference": {recipe.Checkpoint{InferenceEvery: new(61)},
			[]string{"checkpoints for training: at the end", "checkpoints for inference: none",
				"checkpoint.inference_every is 61, more than the run has steps: none is made"}},
	} {
		if got := saves(c.c, 60); !slices.Equal(got, c.want) {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}
