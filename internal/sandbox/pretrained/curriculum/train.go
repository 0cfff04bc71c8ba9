package curriculum

import (
	"trainer/internal/sandbox/engine"
	"trainer/internal/tokenizer"
)

// The course. A change of any of these, or of a lesson, makes another model.
const (
	Seed  = 1    // of the weights before the first step
	Steps = 2400 // optimiser steps
	batch = 32   // lessons a step
	peak  = 3e-3 // of the learning rate, which falls linearly from there
	floor = 1e-4
	rise  = 100 // steps until the peak
)

// Shape is the model's: about 350,000 weights.
func Shape() engine.Config {
	return engine.Config{Vocab: tokenizer.Bytes().Size(), Dim: 96, Layers: 3, Heads: 3, Hidden: 256, Context: 2048}
}

// Draw returns lesson i of a step. It is a function of the two, and never one that is held out.
func Draw(step, i int) Lesson {
	d := newDraw(uint64(step), uint64(i))
	all := tasks()
	parts := 0
	for _, t := range all {
		parts += t.share
	}
	at := d.below(parts)
	k := 0
	for ; at >= all[k].share; k++ {
		at -= all[k].share
	}
	for {
		l := all[k].make(d)
		if l.Task = all[k].name; !l.HeldOut() {
			return l
		}
	}
}

// Train takes the first steps of the course and returns the model. tell, which may be nil, is called after each step with the
// step's loss: nats per trained token, before the step.
func Train(steps int, tell func(done int, loss float64)) *engine.Model {
	m := engine.NewModel(engine.NewBase(Shape(), Seed), nil)
	for s := range steps {
		b, trained := lessons(s)
		loss, derivative := meanLoss(m.Logprobs(b, trained), trained)
		m.Backward(b, derivative)
		m.Step(engine.Adam{Rate: rate(s), Beta1: 0.9, Beta2: 0.98, Eps: 1e-8, ClipNorm: 1})
		if tell != nil {
			tell(s+1, loss)
		}
	}
	return m
}

// rate is of the 0-based step s. Products and quotients alone: no machine can fuse them.
func rate(s int) float64 {
	if s < rise {
		return peak * (float64(s+1) / rise)
	}
	return max(floor, peak*(float64(Steps-s)/(Steps-rise)))
}

// lessons are the batch of a step, with the rows that predict a trained token.
func lessons(step int) (b engine.Batch, trained [][]bool) {
	for i := range batch {
		ids, of := Draw(step, i).Encode()
		b.Input, b.Targets = append(b.Input, ids[:len(ids)-1]), append(b.Targets, ids[1:])
		trained = append(trained, of[1:])
	}
	return b, trained
}

// meanLoss is over the trained rows, with its derivative by their log-probabilities.
func meanLoss(logprobs [][]float32, trained [][]bool) (loss float64, derivative [][]float32) {
	n := 0
	for _, row := range trained {
		for _, is := range row {
			if is {
				n++
			}
		}
	}
	for i, row := range logprobs {
		d := make([]float32, len(row))
		for t := range row {
			if trained[i][t] {
				loss -= float64(row[t]) / float64(n)
				d[t] = -1 / float32(n)
			}
		}
		derivative = append(derivative, d)
	}
	return loss, derivative
}
