package engine

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"math"
	"runtime"
	"slices"
	"testing"

	"trainer/internal/sandbox/engine/kernel"
)

// sampled is Sample for what cannot be cut short.
func sampled(t testing.TB, w *Weights, r SampleRequest) []Sampled {
	t.Helper()
	if r.TopP == 0 {
		r.TopP = 1
	}
	r.Samples = max(r.Samples, 1)
	out, err := w.Sample(context.Background(), &r)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// rough is a model whose next tokens are neither certain nor all alike.
func rough(c Config, l *LoRA) *Model {
	m := NewModel(NewBase(c, 7), l)
	roughly(m)
	return m
}

var manners = []struct {
	name string
	Sampling
}{
	{"greedy", Sampling{}},
	{"plain", Sampling{Temperature: 1}},
	{"warm", Sampling{Temperature: 1.7}},
	{"cold", Sampling{Temperature: 0.4}},
	{"the first five", Sampling{Temperature: 1, TopK: 5}},
	{"a nucleus", Sampling{Temperature: 1, TopP: 0.6}},
	{"a warm nucleus", Sampling{Temperature: 2, TopP: 0.3}},
	{"a warm nucleus of the first 12", Sampling{Temperature: 1.3, TopP: 0.7, TopK: 12}},
}

func TestASampledLogprobHasTheBitsOfTheTrainer(t *testing.T) {
	for _, k := range kinds {
		m := rough(k.config, k.lora)
		w := m.Publish()
		prompts := someBatch(k.config.Vocab, 4, 1, 7, 16, 130, 64, 7).Input
		for _, manner := range manners {
			manner.MaxTokens = 20
			if manner.name == "plain" {
				manner.MaxTokens = 140 // beyond two pages, and beyond the attention that training keeps
			}
			n := manner.MaxTokens
			out := sampled(t, w, SampleRequest{Prompts: prompts, Samples: 3, Sampling: manner.Sampling, PromptLogprobs: true})
			var b Batch
			for i, p := range prompts {
				for _, c := range out[i].Completions {
					all := slices.Concat(p, c.Tokens)
					b.Input, b.Targets = append(b.Input, all[:len(all)-1]), append(b.Targets, all[1:])
				}
			}
			for j, want := range m.Logprobs(b, nil) {
				i := j / 3
				got := out[i].Completions[j%3]
				if len(got.Tokens) != n || got.Stopped {
					t.Fatalf("%s, %s: %d tokens, stopped %v: want %d", k.name, manner.name, len(got.Tokens), got.Stopped, n)
				}
				if !slices.Equal(got.Logprobs, want[len(prompts[i])-1:]) {
					t.Errorf("%s, %s: prompt %d, completion %d: other log-probabilities than the trainer's", k.name, manner.name, i, j%3)
				}
				if p := out[i].Prompt; p[0] != 0 || !slices.Equal(p[1:], want[:len(prompts[i])-1]) {
					t.Errorf("%s: prompt %d: other log-probabilities than the trainer's", k.name, i)
				}
			}
		}
	}
}

// digest hashes all of a result.
func digest(out []Sampled) [32]byte {
	h := sha256.New()
	for _, s := range out {
		for _, c := range s.Completions {
			logprobs := hashOf(c.Logprobs)
			fmt.Fprint(h, c.Tokens, logprobs, c.Stopped)
		}
		fmt.Fprint(h, hashOf(s.Prompt), s.Top)
	}
	return [32]byte(h.Sum(nil))
}

// goldenSamples hashes completions in every manner.
func goldenSamples(t *testing.T, w *Weights) string {
	all := sha256.New()
	for _, manner := range manners {
		manner.MaxTokens = 12
		one := digest(sampled(t, w, SampleRequest{
			Prompts: someBatch(w.base.config.Vocab, 4, 3, 70, 9).Input, Samples: 5, Sampling: manner.Sampling, TopPromptLogprobs: 3,
		}))
		all.Write(one[:])
	}
	return fmt.Sprintf("%x", all.Sum(nil))
}

func TestSamplesAreTheGoldenOnesInEveryModeAndNumberOfThreads(t *testing.T) {
	for _, k := range []int{1, 4} {
		w := rough(kinds[k].config, kinds[k].lora).Publish()
		for _, mode := range kernel.Modes() {
			for _, threads := range []int{1, 3} {
				before, err := kernel.Use(mode)
				if err != nil {
					t.Fatal(err)
				}
				procs := runtime.GOMAXPROCS(threads)
				if got, want := goldenSamples(t, w), goldenHashes["samples, "+kinds[k].name]; got != want {
					t.Errorf("%s, %s with %d threads: the hash is %q, want %q: other draws need a new Version", kinds[k].name, mode, threads, got, want)
				}
				runtime.GOMAXPROCS(procs)
				if _, err := kernel.Use(before); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

// exact is the distribution of the token after a prompt, by the book: every id's probability in float64.
func exact(m *Model, prompt []int32, s Sampling) []float64 {
	vocab := m.base.config.Vocab
	var b Batch
	for id := range vocab {
		b.Input = append(b.Input, prompt)
		targets := make([]int32, len(prompt))
		targets[len(prompt)-1] = int32(id)
		b.Targets = append(b.Targets, targets)
	}
	type candidate struct {
		id int
		p  float64
	}
	var all []candidate
	for id, row := range m.Logprobs(b, nil) {
		all = append(all, candidate{id, float64(row[len(prompt)-1])})
	}
	slices.SortStableFunc(all, func(a, b candidate) int { return cmp.Compare(b.p, a.p) })
	if s.greedy() {
		s.Temperature, all = 1, all[:1]
	}
	if s.TopK > 0 {
		all = all[:min(s.TopK, len(all))]
	}
	total := 0.0
	for i := range all {
		all[i].p = math.Exp(all[i].p / s.Temperature)
		total += all[i].p
	}
	sum, n := 0.0, 0
	for n < len(all) && (s.TopP == 0 || sum < s.TopP*total) {
		sum += all[n].p
		n++
	}
	out := make([]float64, vocab)
	for _, c := range all[:n] {
		out[c.id] = c.p / sum
	}
	return out
}

func TestDrawsHaveTheExactDistribution(t *testing.T) {
	const n = 10000
	for _, c := range []Config{{40, 32, 1, 2, 48, 16}, {1100, 32, 1, 2, 48, 16}} {
		m := rough(c, &LoRA{Rank: 4, Alpha: 30, TrainUnembed: true})
		w := m.Publish()
		for _, manner := range manners {
			t.Run(fmt.Sprintf("%s of %d ids", manner.name, c.Vocab), func(t *testing.T) {
				want := exact(m, []int32{5, 9}, manner.Sampling)
				manner.MaxTokens = 1
				out := sampled(t, w, SampleRequest{Prompts: [][]int32{{5, 9}}, Samples: n, Sampling: manner.Sampling})
				got := make([]int, c.Vocab)
				for _, x := range out[0].Completions {
					got[x.Tokens[0]]++
				}
				// The rare ids are counted together.
				chi, cells, rest, restWant := 0.0, 0, 0.0, 0.0
				for id, p := range want {
					switch e := p * n; {
					case p == 0 && got[id] > 0:
						t.Errorf("id %d was drawn %d times and is not among the kept", id, got[id])
					case e < 8:
						rest, restWant = rest+float64(got[id]), restWant+e
					default:
						chi += (float64(got[id]) - e) * (float64(got[id]) - e) / e
						cells++
					}
				}
				if restWant > 8 {
					chi += (rest - restWant) * (rest - restWant) / restWant
					cells++
				}
				if freedom := float64(cells - 1); chi > freedom+5*math.Sqrt(2*freedom)+1e-6 {
					t.Errorf("chi-square is %.1f with %d cells", chi, cells)
				}
			})
		}
	}
}

func TestTemperedLogprobsAreThoseOfTheDrawnDistribution(t *testing.T) {
	for _, c := range []Config{{40, 32, 1, 2, 48, 16}, {1100, 32, 1, 2, 48, 16}} {
		m := rough(c, nil)
		for _, manner := range manners {
			want := exact(m, []int32{5, 9}, manner.Sampling)
			manner.MaxTokens, manner.Tempered = 1, true
			out := sampled(t, m.Publish(), SampleRequest{Prompts: [][]int32{{5, 9}}, Samples: 20, Sampling: manner.Sampling})
			for _, x := range out[0].Completions {
				if got := float64(x.Logprobs[0]); math.Abs(got-math.Log(want[x.Tokens[0]])) > 2e-5 {
					t.Errorf("%d ids, %s: id %d has %g, want %g", c.Vocab, manner.name, x.Tokens[0], got, math.Log(want[x.Tokens[0]]))
				}
			}
		}
	}
}

func TestAlternativesAreTheMostProbableIds(t *testing.T) {
	for _, c := range []Config{{40, 32, 1, 2, 48, 16}, {1100, 32, 1, 2, 48, 16}} {
		m := rough(c, nil)
		prompt := someBatch(c.Vocab, 1, 6).Input[0]
		out := sampled(t, m.Publish(), SampleRequest{
			Prompts: [][]int32{prompt}, Sampling: Sampling{MaxTokens: 1}, TopPromptLogprobs: MostAlternatives,
		})
		if out[0].Prompt != nil || len(out[0].Top) != 6 || len(out[0].Top[0]) != 0 {
			t.Fatalf("got %+v", out[0])
		}
		for at := 1; at < 6; at++ {
			p := exact(m, prompt[:at], Sampling{Temperature: 1})
			ids := make([]int, c.Vocab)
			for i := range ids {
				ids[i] = i
			}
			slices.SortStableFunc(ids, func(a, b int) int { return cmp.Compare(p[b], p[a]) })
			for i, got := range out[0].Top[at] {
				if int(got.ID) != ids[i] || math.Abs(float64(got.Logprob)-math.Log(p[ids[i]])) > 1e-5 {
					t.Errorf("%d ids, after %d tokens: alternative %d is %+v, want id %d", c.Vocab, at, i, got, ids[i])
				}
			}
		}
	}
}

func TestWhatADrawDependsOn(t *testing.T) {
	m := rough(kinds[0].config, nil)
	w := m.Publish()
	prompts := someBatch(100, 4, 5, 8).Input
	s := Sampling{MaxTokens: 20, Temperature: 1}
	request := func(s Sampling, prompts ...[]int32) SampleRequest {
		return SampleRequest{Prompts: prompts, Samples: 2, Sampling: s}
	}
	tokens := func(w *Weights, r SampleRequest) (all [][]int32) {
		for _, p := range sampled(t, w, r) {
			for _, c := range p.Completions {
				all = append(all, c.Tokens)
			}
		}
		return all
	}
	equal := func(a, b [][]int32) bool { return slices.EqualFunc(a, b, slices.Equal) }
	first := tokens(w, request(s, prompts[0]))
	if slices.Equal(first[0], first[1]) {
		t.Error("two completions of a prompt are one")
	}
	if !equal(tokens(m.Publish(), request(s, prompts[0])), first) {
		t.Error("the same call on the same weights differs")
	}
	if got := tokens(w, request(s, prompts[1], prompts[0])); !equal(got[2:], first) {
		t.Error("a neighbour changed the draws")
	}
	again := tokens(w, request(s, prompts[0], prompts[1], prompts[0]))
	if !equal(again[:2], first) || slices.Equal(again[4], first[0]) || slices.Equal(again[4], first[1]) {
		t.Error("an equal prompt of a call has no draws of its own")
	}
	seeded, other := s, s
	seeded.Seed, other.Seed = new(int64), new(int64(1))
	for name, r := range map[string]SampleRequest{
		"a seed of 0": request(seeded, prompts[0]), "a seed of 1": request(other, prompts[0]),
		"a temperature": request(Sampling{MaxTokens: 20, Temperature: 1.0001}, prompts[0]),
		"a bound":       request(Sampling{MaxTokens: 20, Temperature: 1, TopK: 100}, prompts[0]),
	} {
		if equal(tokens(w, r), first) {
			t.Errorf("%s changed no draw", name)
		}
	}
	b := someBatch(100, 1, 30)
	m.Backward(b, evenly(b))
	m.Step(Adam{Rate: 1e-9, Beta1: 0.9, Beta2: 0.95, Eps: 1e-8})
	if m.Hash() == w.Hash() || equal(tokens(m.Publish(), request(s, prompts[0])), first) {
		t.Error("other weights have the same draws")
	}
	if !equal(tokens(w, request(s, prompts[0])), first) {
		t.Error("training changed what was published")
	}
}

func TestManyCompletionsGoThroughInWaves(t *testing.T) {
	w := rough(kinds[0].config, nil).Publish()
	prompts := someBatch(100, 4, 5, 8, 5).Input
	s := Sampling{MaxTokens: 3, Temperature: 1}
	many := sampled(t, w, SampleRequest{Prompts: prompts, Samples: waveRows, Sampling: s, PromptLogprobs: true})
	few := sampled(t, w, SampleRequest{Prompts: prompts, Samples: 2, Sampling: s, PromptLogprobs: true})
	for i := range prompts {
		for k := range waveRows {
			if len(many[i].Completions[k].Tokens) != 3 {
				t.Fatalf("prompt %d, completion %d: %v", i, k, many[i].Completions[k])
			}
		}
		if got, want := many[i].Completions[1], few[i].Completions[1]; !slices.Equal(got.Tokens, want.Tokens) {
			t.Errorf("prompt %d: %v of many, %v of few", i, got, want)
		}
		if !slices.Equal(many[i].Prompt, few[i].Prompt) {
			t.Errorf("prompt %d: %v of many, %v of few", i, many[i].Prompt, few[i].Prompt)
		}
	}
}

func TestEndings(t *testing.T) {
	w := rough(kinds[0].config, nil).Publish()
	text := func(id int32) []byte { return bytes.Repeat([]byte{'a' + byte(id%7)}, int(id%3)) }
	plain := Sampling{MaxTokens: 60, Temperature: 1}
	free := sampled(t, w, SampleRequest{Prompts: [][]int32{{1}}, Samples: 30, Sampling: plain})[0].Completions
	// Draws depend on the stops, so each rule is held against its own completions.
	for name, set := range map[string]func(*Sampling){
		"two ids":   func(s *Sampling) { s.StopIDs = []int32{free[0].Tokens[3], free[1].Tokens[7]} },
		"a text":    func(s *Sampling) { s.StopTexts = []string{"aab"} },
		"two texts": func(s *Sampling) { s.StopTexts = []string{"c", "ddeea"} },
	} {
		s := plain
		set(&s)
		s.Text = text
		ends := func(tokens []int32) bool {
			var all []byte
			for _, id := range tokens {
				if slices.Contains(s.StopIDs, id) {
					return true
				}
				all = append(all, text(id)...)
			}
			return slices.ContainsFunc(s.StopTexts, func(stop string) bool { return bytes.Contains(all, []byte(stop)) })
		}
		stopped := 0
		for _, c := range sampled(t, w, SampleRequest{Prompts: [][]int32{{1}}, Samples: 30, Sampling: s})[0].Completions {
			n := len(c.Tokens)
			if ends(c.Tokens[:n-1]) || ends(c.Tokens) != c.Stopped || !c.Stopped && n != 60 || len(c.Logprobs) != n {
				t.Errorf("%s: %d tokens, stopped %v", name, n, c.Stopped)
			}
			if c.Stopped {
				stopped++
			}
		}
		if stopped == 0 {
			t.Errorf("%s: nothing stopped", name)
		}
	}
}

// The part before the cut is what the older weights alone give, the part behind it has the log-probabilities that the
// newer ones give for the whole sequence.
func TestASequenceMaySpanTwoVersions(t *testing.T) {
	const cut = 6
	for _, k := range kinds {
		m := rough(k.config, k.lora)
		old := m.Publish()
		roughly(m)
		roughly(m)
		new := m.Publish()
		prompts := someBatch(k.config.Vocab, 4, 5, 8).Input
		prompts = append(prompts, prompts[0])
		draw := func(w, then *Weights, at int) []Sampled {
			s := Sampling{MaxTokens: 20, Temperature: 1, TopP: 1}
			return sampled(t, w, SampleRequest{Prompts: prompts, Samples: 3, Sampling: s, Then: then, ThenAt: at})
		}
		alone, spanning := draw(old, nil, 0), draw(old, new, cut)
		for i, p := range prompts {
			for n, b := range spanning[i].Completions {
				a := alone[i].Completions[n]
				if !slices.Equal(a.Tokens[:cut], b.Tokens[:cut]) || !slices.Equal(a.Logprobs[:cut], b.Logprobs[:cut]) {
					t.Errorf("%s, prompt %d: the beginning is not that of the older weights", k.name, i)
				}
				all := slices.Concat(p, b.Tokens)
				want := m.Logprobs(Batch{Input: [][]int32{all[:len(all)-1]}, Targets: [][]int32{all[1:]}}, nil)[0]
				if got := b.Logprobs[cut:]; !slices.Equal(got, want[len(p)-1+cut:]) {
					t.Errorf("%s, prompt %d: behind the cut %v, the newer weights give %v", k.name, i, got, want[len(p)-1+cut:])
				}
			}
		}
		if digest(draw(old, old, cut)) != digest(alone) {
			t.Errorf("%s: going over to the same weights changed something", k.name)
		}
	}
}

func TestSamplingEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	w := rough(kinds[0].config, nil).Publish()
	if _, err := w.Sample(ctx, &SampleRequest{Prompts: [][]int32{{1}}, Samples: 1, Sampling: Sampling{MaxTokens: 300, TopP: 1}}); err == nil {
		t.Error("no error")
	}
}

func TestSamplingRunsBesideTraining(t *testing.T) {
	for _, k := range kinds {
		m := rough(k.config, k.lora)
		w := m.Publish()
		r := SampleRequest{Prompts: someBatch(k.config.Vocab, 4, 5, 30).Input, Samples: 2, Sampling: Sampling{MaxTokens: 20, Temperature: 1}}
		want := digest(sampled(t, w, r))
		got := make(chan [32]byte)
		for range 2 {
			go func() { got <- digest(sampled(t, w, r)) }()
		}
		b := someBatch(k.config.Vocab, 1, 30, 50)
		for range 3 {
			m.Backward(b, evenly(b))
			m.Step(ordinary)
		}
		for range 2 {
			if <-got != want {
				t.Errorf("%s: training changed a sample", k.name)
			}
		}
	}
}

func TestWeightsThatHaveDivergedStillAnswer(t *testing.T) {
	for _, c := range []Config{{40, 32, 1, 2, 48, 16}, {1100, 32, 1, 2, 48, 16}} {
		m := rough(c, nil)
		m.params[m.final.off] = float32(math.NaN())
		w := m.Publish()
		for _, manner := range manners {
			manner.MaxTokens = 3
			out := sampled(t, w, SampleRequest{Prompts: [][]int32{{1, 2}}, Samples: 2, Sampling: manner.Sampling, TopPromptLogprobs: 2})
			if got := len(out[0].Completions[1].Tokens); got != 3 {
				t.Errorf("%d ids, %s: %d tokens, want 3", c.Vocab, manner.name, got)
			}
		}
	}
}
