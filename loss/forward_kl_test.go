package loss

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// world is sequences over a small vocabulary: what the teacher gives every token, and the logits of the student, [B][T][V].
type world struct {
	teacher, logits [][][]float64
	step            []Datum
}

func newWorld(random *rand.Rand, sequences, vocab, top int) world {
	var w world
	for range sequences {
		n := 2 + random.IntN(5)
		d := Datum{Input: make([]int32, n), Targets: make([]int32, n), Weights: make([]float64, n)}
		var teacher, logits [][]float64
		for t := range n {
			d.Targets[t] = int32(random.IntN(vocab))
			if t > 0 {
				d.Weights[t] = float64(1+random.IntN(2)) / 2
			}
			row, z := make([]float64, vocab), make([]float64, vocab)
			for v := range vocab {
				row[v], z[v] = 2*random.NormFloat64(), random.NormFloat64()
			}
			row = logSoftmax(row)
			var ids []int32
			for _, v := range random.Perm(vocab) {
				ids = append(ids, int32(v))
			}
			slices.SortFunc(ids, func(a, b int32) int {
				if row[a] > row[b] {
					return -1
				}
				return 1
			})
			ids = ids[:top]
			random.Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
			logs := make([]float64, top)
			for k, v := range ids {
				logs[k] = row[v]
			}
			d.TopIDs, d.TopLogprobs = append(d.TopIDs, ids), append(d.TopLogprobs, logs)
			teacher, logits = append(teacher, row), append(logits, z)
		}
		w.teacher, w.logits, w.step = append(w.teacher, teacher), append(w.logits, logits), append(w.step, d)
	}
	return w
}

func logSoftmax(z []float64) []float64 {
	most, sum := slices.Max(z), 0.0
	for _, x := range z {
		sum += math.Exp(x - most)
	}
	out := make([]float64, len(z))
	for v, x := range z {
		out[v] = x - most - math.Log(sum)
	}
	return out
}

// divergence is Σ w·p·(log p − ℓ) by its definition, from the logits.
func (w world) divergence(l *ForwardKL) float64 {
	sum := 0.0
	for i, d := range w.step {
		for t, weight := range d.Weights {
			now, mass := logSoftmax(w.logits[i][t]), 1.0
			likeliest := slices.Clone(d.TopLogprobs[t])
			slices.SortFunc(likeliest, func(a, b float64) int {
				if a > b {
					return -1
				}
				return 1
			})
			least := likeliest[min(l.TopK, len(likeliest))-1]
			if l.Renormalise {
				mass = 0
				for _, p := range likeliest[:min(l.TopK, len(likeliest))] {
					mass += math.Exp(p)
				}
			}
			for v, p := range w.teacher[i][t] {
				if p >= least {
					sum += weight * math.Exp(p) / mass * (p - math.Log(mass) - now[v])
				}
			}
		}
	}
	return sum
}

// copies are what is sent, and the log-probabilities of it: those of sequence of[i].
func (w world) copies(l *ForwardKL, step []Datum) (copies []Datum, now [][]float64, of []int) {
	for i := range step {
		for _, c := range l.Copies(step[i : i+1]) {
			row := make([]float64, len(c.Targets))
			for t, v := range c.Targets {
				row[t] = logSoftmax(w.logits[i][t])[v]
			}
			copies, now, of = append(copies, c), append(now, row), append(of, i)
		}
	}
	return copies, now, of
}

// TestCopiesHaveTheGradientOfTheDivergence adds the gradients of the copies up by the logits, and holds them to the slopes of the
// divergence; the value of the copies, less the entropy of what is learnt, is the divergence.
func TestCopiesHaveTheGradientOfTheDivergence(t *testing.T) {
	const vocab = 7
	for name, l := range map[string]*ForwardKL{
		"renormalised":          {TopK: 3, Renormalise: true},
		"as they are":           {TopK: 3},
		"the one likeliest":     {TopK: 1, Renormalise: true},
		"fewer than are given":  {TopK: 2, Renormalise: true},
		"more than a row tells": {TopK: 20, Renormalise: true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(rand.New(rand.NewPCG(5, 6)), 3, vocab, 4)
			copies, now, of := w.copies(l, w.step)
			if want := 3 * min(l.TopK, 4); len(copies) != want {
				t.Fatalf("%d copies, want %d", len(copies), want)
			}
			res, err := l.Eval(now, copies)
			if err != nil {
				t.Fatal(err)
			}
			sums := map[[3]int]float64{}
			for c, d := range copies {
				for p, v := range d.Targets {
					prob := logSoftmax(w.logits[of[c]][p])
					for u := range vocab {
						slope := -math.Exp(prob[u])
						if int32(u) == v {
							slope++
						}
						sums[[3]int{of[c], p, u}] += res.Grads[c][p] * slope
					}
				}
			}
			const h = 1e-5
			for at, got := range sums {
				z := &w.logits[at[0]][at[1]][at[2]]
				was := *z
				*z = was + h
				up := w.divergence(l)
				*z = was - h
				down := w.divergence(l)
				*z = was
				if want := (up - down) / (2 * h); math.Abs(got-want) > 1e-7 {
					t.Errorf("sequence %d, position %d, token %d: gradient %v, slope %v", at[0], at[1], at[2], got, want)
				}
			}
			said := l.Teaching(w.step)
			if got, want := res.Value-said.Entropy*said.Weight, w.divergence(l); math.Abs(got-want) > 1e-10 {
				t.Errorf("value less entropy %v, divergence %v", got, want)
			}
		})
	}
}

// TestCopiesReduceAsTheirSequence: what a sequence counts in the step does not hang on how many copies it has.
func TestCopiesReduceAsTheirSequence(t *testing.T) {
	w := newWorld(rand.New(rand.NewPCG(8, 9)), 4, 9, 5)
	for i := range w.step[1].TopIDs {
		w.step[1].TopIDs[i], w.step[1].TopLogprobs[i] = w.step[1].TopIDs[i][:2], w.step[1].TopLogprobs[i][:2]
	}
	l := newForwardKL()
	for how, want := range map[string]func(i int) float64{
		TokenMean: func(i int) float64 {
			return sumOf(w.step[i].Weights) / sumOf(w.step[0].Weights, w.step[1].Weights, w.step[2].Weights, w.step[3].Weights)
		},
		SequenceMean: func(int) float64 { return 1.0 / 4 },
		Sum:          func(i int) float64 { return sumOf(w.step[i].Weights) },
	} {
		reduced, err := Reduce(w.step, how)
		if err != nil {
			t.Fatal(err)
		}
		for i := range reduced {
			total := 0.0
			for _, c := range l.Copies(reduced[i : i+1]) {
				total += sumOf(c.Weights)
			}
			if math.Abs(total-want(i)) > 1e-12 {
				t.Errorf("%s: the copies of sequence %d weigh %v, want %v", how, i, total, want(i))
			}
		}
	}
}

func sumOf(rows ...[]float64) (sum float64) {
	for _, row := range rows {
		for _, x := range row {
			sum += x
		}
	}
	return sum
}

func TestPositionsWithFewerTokensAreLeftOutOfLaterCopies(t *testing.T) {
	d := Datum{Input: []int32{1, 2, 3}, Targets: []int32{2, 3, 4}, Weights: []float64{0, 1, 1},
		TopIDs: [][]int32{nil, {7}, {8, 9}}, TopLogprobs: [][]float64{nil, {-2000}, {-1, -0.5}}}
	copies := newForwardKL().Copies([]Datum{d})
	if len(copies) != 2 {
		t.Fatalf("%d copies, want 2", len(copies))
	}
	if got, want := copies[0].Targets, []int32{2, 7, 9}; !slices.Equal(got, want) {
		t.Errorf("targets %v, want %v", got, want)
	}
	if got, want := copies[1].Targets, []int32{2, 3, 8}; !slices.Equal(got, want) {
		t.Errorf("targets of the second copy %v, want %v", got, want)
	}
	if copies[0].Weights[1] != 1 || copies[1].Weights[1] != 0 || math.Abs(copies[0].Weights[2]+copies[1].Weights[2]-1) > 1e-15 {
		t.Errorf("weights %v and %v: of each trained position they add up to 1", copies[0].Weights, copies[1].Weights)
	}
	if !slices.Equal(d.Targets, []int32{2, 3, 4}) || !slices.Equal(d.Weights, []float64{0, 1, 1}) {
		t.Errorf("the sequence itself was changed: %+v", d)
	}
}

func TestSkipLeavesTheFirstTokensOfEach(t *testing.T) {
	step := []Datum{{Weights: []float64{0, 1, 1, 0, 1}}, {Weights: []float64{0, 1}}}
	got := (&ForwardKL{TopK: 1, SkipFirst: 2}).Skip(step)
	if len(got) != 1 || !slices.Equal(got[0].Weights, []float64{0, 0, 0, 0, 1}) {
		t.Errorf("%+v: one sequence is left, with its last token", got)
	}
	if !slices.Equal(step[0].Weights, []float64{0, 1, 1, 0, 1}) {
		t.Errorf("the step itself was changed: %+v", step)
	}
}

func TestCheckTop(t *testing.T) {
	for _, c := range []struct {
		name     string
		ids      []int32
		logprobs []float64
		at       int
		want     string
	}{
		{"nothing", nil, nil, 0, ""},
		{"a distribution", []int32{3, 0}, []float64{math.Log(0.5), math.Log(0.5)}, 0, ""},
		{"a token outside", []int32{3, 10}, []float64{-1, -2}, 1, "10 is outside of the vocabulary; ids are 0 to 9"},
		{"a token twice", []int32{3, 3}, []float64{-1, -2}, 1, "token 3 is there twice"},
		{"above 0", []int32{3}, []float64{0.1}, 0, "0.1 is not a log-probability"},
		{"no number", []int32{3}, []float64{math.NaN()}, 0, "is not a log-probability"},
		{"endless", []int32{3}, []float64{math.Inf(-1)}, 0, "is not a log-probability"},
		{"too much", []int32{3, 4}, []float64{-0.5, -0.5}, -1, "add up to 1.213"},
		{"too many", make([]int32, 21), make([]float64, 21), -1, "21 tokens; at most 20"},
	} {
		at, err := CheckTop(c.ids, c.logprobs, 9)
		if (err == nil) != (c.want == "") || err != nil && (at != c.at || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: got %v at %d, want %q at %d", c.name, err, at, c.want, c.at)
		}
	}
}
