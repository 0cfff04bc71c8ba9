package engine

import (
	"fmt"
	"testing"
)

// BenchmarkTrain measures a whole step of supervised training, 16 sequences of 64 tokens, in tokens a second.
func BenchmarkTrain(b *testing.B) {
	lora := &LoRA{Rank: 16, Alpha: 32, TrainUnembed: true}
	for _, c := range []struct {
		name   string
		config Config
		lora   *LoRA
	}{
		{"tiny full", Tiny(272), nil},
		{"tiny LoRA", Tiny(272), lora},
		{"tiny two-level full", Tiny(151936), nil},
		{"tiny two-level LoRA", Tiny(151936), lora},
		{"small full", Small(272), nil},
		{"small LoRA", Small(272), lora},
	} {
		b.Run(c.name, func(b *testing.B) {
			m := NewModel(NewBase(c.config, 1), c.lora)
			batch := someBatch(c.config.Vocab, 3, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64)
			d := evenly(batch)
			b.ReportAllocs()
			for b.Loop() {
				m.Logprobs(batch, nil)
				m.Backward(batch, d)
				m.Step(Adam{Rate: 1e-3, Beta1: 0.9, Beta2: 0.95, Eps: 1e-8, ClipNorm: 1})
			}
			b.ReportMetric(float64(16*64*b.N)/b.Elapsed().Seconds(), "tokens/s")
		})
	}
}

// someBatch draws sequences of the given lengths.
func someBatch(vocab int, seed uint64, lengths ...int) Batch {
	draw, at := newStream(seed, "batch"), uint64(0)
	ids := func(n int) []int32 {
		s := make([]int32, n)
		for i := range s {
			s[i] = int32(draw.uniform(at) * float64(vocab))
			at++
		}
		return s
	}
	var b Batch
	for _, n := range lengths {
		b.Input, b.Targets = append(b.Input, ids(n)), append(b.Targets, ids(n))
	}
	return b
}

// evenly is the derivative of the mean loss over all tokens.
func evenly(b Batch) [][]float32 {
	n := 0
	for _, s := range b.Input {
		n += len(s)
	}
	var d [][]float32
	for _, s := range b.Input {
		row := make([]float32, len(s))
		for i := range row {
			row[i] = -1 / float32(n)
		}
		d = append(d, row)
	}
	return d
}

// BenchmarkSample measures completions of 64 tokens after a prompt of 16, n of them together, in tokens a second.
func BenchmarkSample(b *testing.B) {
	lora := &LoRA{Rank: 16, Alpha: 32, TrainUnembed: true}
	for _, c := range []struct {
		name   string
		config Config
		lora   *LoRA
		s      Sampling
	}{
		{"tiny full", Tiny(272), nil, Sampling{Temperature: 1}},
		{"tiny LoRA", Tiny(272), lora, Sampling{Temperature: 1}},
		{"tiny LoRA greedy", Tiny(272), lora, Sampling{}},
		{"tiny two-level LoRA", Tiny(151936), lora, Sampling{Temperature: 1}},
		{"tiny two-level LoRA at 0.7", Tiny(151936), lora, Sampling{Temperature: 0.7}},
		{"tiny two-level LoRA greedy", Tiny(151936), lora, Sampling{}},
		{"small full", Small(272), nil, Sampling{Temperature: 1}},
	} {
		w := NewModel(NewBase(c.config, 1), c.lora).Publish()
		c.s.MaxTokens, c.s.TopP = 64, 1
		prompt := someBatch(c.config.Vocab, 3, 16).Input
		for _, n := range []int{1, 16, 64} {
			b.Run(fmt.Sprintf("%s, n=%d", c.name, n), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if _, err := w.Sample(b.Context(), &SampleRequest{Prompts: prompt, Samples: n, Sampling: c.s}); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(64*n*b.N)/b.Elapsed().Seconds(), "tokens/s")
			})
		}
	}
}
