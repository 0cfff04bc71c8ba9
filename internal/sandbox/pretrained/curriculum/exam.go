package curriculum

import (
	"context"
	"slices"

	"trainer/internal/sandbox/engine"
)

// Examined are the tasks with an answer that follows from the question: those that Exam has.
func Examined() []string {
	var names []string
	for _, t := range checkable() {
		names = append(names, t.name)
	}
	return append(names, "story")
}

// Exam returns up to n lessons of a task, which differ in their contents and were never trained.
func Exam(name string, n int) []Lesson {
	all := tasks()
	t := all[slices.IndexFunc(all, func(t task) bool { return t.name == name })]
	seen := map[string]bool{}
	var out []Lesson
	for i := 0; len(out) < n && i < 100*n; i++ {
		l := t.make(newDraw(1<<63, uint64(i)))
		l.Task = name
		if l.HeldOut() && !seen[l.Key] {
			seen[l.Key] = true
			out = append(out, l)
		}
	}
	return out
}

// Grade is the share of the lessons whose last answer w gives exactly, sampled greedily.
func Grade(w *engine.Weights, lessons []Lesson) (float64, error) {
	r := &engine.SampleRequest{Samples: 1, Sampling: engine.Sampling{MaxTokens: 32, TopP: 1, StopIDs: []int32{End()}}}
	for _, l := range lessons {
		r.Prompts = append(r.Prompts, l.Prompt())
	}
	got, err := w.Sample(context.Background(), r)
	if err != nil {
		return 0, err
	}
	right := 0
	for i, l := range lessons {
		if slices.Equal(got[i].Completions[0].Tokens, answerIDs(l)) {
			right++
		}
	}
	return float64(right) / float64(len(lessons)), nil
}

// answerIDs are what a right completion has, its end too.
func answerIDs(l Lesson) []int32 {
	var b builder
	b.text(l.Answer(), true)
	b.control("<|end|>", true)
	return b.ids
}
