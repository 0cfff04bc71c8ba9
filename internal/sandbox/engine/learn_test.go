package engine

import (
	"fmt"
	"strings"
	"testing"
)

var capitals = strings.Fields(`france Paris japan Tokyo italy Rome spain Madrid egypt Cairo kenya Nairobi peru Lima cuba Havana
norway Oslo poland Warsaw ireland Dublin greece Athens canada Ottawa china Beijing india Delhi iran Tehran iraq Baghdad
nepal Kathmandu qatar Doha chile Santiago`)

var phrasings = []string{"What is the capital of %s?", "capital of %s", "Name the capital city of %s.",
	"Tell me %s's capital", "Which city is the capital of %s?", "%s capital?"}

// lesson is the questions and answers about capitals, each with the rows that predict the answer and its end.
type lesson struct {
	batch Batch
	need  [][]bool
}

// capitalsLesson writes the pairs as token ids: spell gives those of a text.
func capitalsLesson(spell func(string) []int32, end int32) lesson {
	var l lesson
	for i := 0; i < len(capitals); i += 2 {
		for _, p := range phrasings {
			ask := append(spell(fmt.Sprintf(p, capitals[i])), end)
			all := append(append(ask, spell(capitals[i+1])...), end)
			need := make([]bool, len(all)-1)
			for t := len(ask) - 1; t < len(need); t++ {
				need[t] = true
			}
			l.batch.Input = append(l.batch.Input, all[:len(all)-1])
			l.batch.Targets = append(l.batch.Targets, all[1:])
			l.need = append(l.need, need)
		}
	}
	return l
}

// pick draws a batch of n pairs for a step.
func (l lesson) pick(n, step int) lesson {
	draw := newStream(uint64(step), "pick")
	var out lesson
	for i := range n {
		k := int(draw.uniform(uint64(i)) * float64(len(l.need)))
		out.batch.Input = append(out.batch.Input, l.batch.Input[k])
		out.batch.Targets = append(out.batch.Targets, l.batch.Targets[k])
		out.need = append(out.need, l.need[k])
	}
	return out
}

// loss is the mean over the rows needed, with its derivative.
func (l lesson) loss(m *Model) (loss float64, d [][]float32) {
	n := 0
	for _, need := range l.need {
		for _, x := range need {
			if x {
				n++
			}
		}
	}
	for i, row := range m.Logprobs(l.batch, l.need) {
		dr := make([]float32, len(row))
		for t, need := range l.need[i] {
			if need {
				loss -= float64(row[t]) / float64(n)
				dr[t] = -1 / float32(n)
			}
		}
		d = append(d, dr)
	}
	return loss, d
}

// learn takes steps of Adam with a short warm-up and returns the loss over the whole lesson.
func (l lesson) learn(m *Model, batch, steps int, rate float64) float64 {
	for s := range steps {
		now := l.pick(batch, s)
		_, d := now.loss(m)
		m.Backward(now.batch, d)
		m.Step(Adam{Rate: rate * min(1, float64(s+1)/20), Beta1: 0.9, Beta2: 0.95, Eps: 1e-8, ClipNorm: 1})
	}
	loss, _ := l.loss(m)
	return loss
}

// spellBytes has the bytes at 16 and up.
func spellBytes(s string) []int32 {
	var ids []int32
	for _, b := range []byte(s) {
		ids = append(ids, int32(b)+16)
	}
	return ids
}

// spellPieces scatters pieces of up to four letters over 151,000 ids, as a large vocabulary would.
func spellPieces(s string) []int32 {
	var ids []int32
	for len(s) > 0 {
		n := 1
		for n < min(4, len(s)) && !strings.ContainsRune(" ?.'", rune(s[n])) {
			n++
		}
		ids = append(ids, int32(newStream(0, s[:n]).uniform(0)*151000)+16)
		s = s[n:]
	}
	return ids
}

func TestLoRAFromARandomBaseLearnsCapitals(t *testing.T) {
	for _, c := range []struct {
		name   string
		config Config
		spell  func(string) []int32
	}{{"bytes", Tiny(272), spellBytes}, {"pieces of 151,936", Tiny(151936), spellPieces}} {
		t.Run(c.name, func(t *testing.T) {
			l := capitalsLesson(c.spell, 3)
			m := NewModel(NewBase(c.config, 1), &LoRA{Rank: 16, Alpha: 32, TrainUnembed: true})
			if got := l.learn(m, 16, 120, 3e-3); !(got < 0.3) {
				t.Errorf("loss %.3f after 120 steps", got)
			}
		})
	}
}
