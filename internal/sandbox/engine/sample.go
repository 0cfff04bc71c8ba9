package engine

import (
	"context"
	"runtime"
	"sync"
)

// SampleRequest asks for completions of prompts. Its numbers are the caller's duty: they are not checked again.
type SampleRequest struct {
	Prompts [][]int32 // [P][T], T >= 1, ids of the vocabulary
	Samples int       // completions of each prompt, at least 1
	Sampling
	PromptLogprobs    bool
	TopPromptLogprobs int // alternatives for each prompt token, at most MostAlternatives; 0 for none

	// Then, where it is not nil, takes over from the token of index ThenAt on, at least 1: a sequence that spans two
	// versions. What came before is read again, so that the log-probabilities from there on are Then's own. It is of the
	// same base and adapter shape. No draw depends on it: the beginning is what it is without it.
	Then   *Weights
	ThenAt int
}

// MostAlternatives bounds TopPromptLogprobs.
const MostAlternatives = 20

// Sampling is how the next token is chosen. Ids are ranked by probability, equal ones by id; truncation keeps the first of
// them: of TopK ids first, then of those the fewest whose probability after Temperature is at least TopP.
type Sampling struct {
	MaxTokens   int     // of a completion; prompt and completion together fit into the context
	Temperature float64 // logits are divided by it; below GreedyBelow the most probable id is taken
	TopP        float64 // in (0, 1]; 1 keeps all
	TopK        int     // 0 keeps all
	Seed        *int64  // nil: none was sent

	StopIDs   []int32
	StopTexts []string              // none is empty
	Text      func(id int32) []byte // the bytes that an id stands for; used where there are StopTexts
	// Tempered makes the log-probabilities those of the distribution that was drawn from: after temperature and truncation.
	Tempered bool
}

// GreedyBelow is the temperature below which sampling is greedy.
const GreedyBelow = 1e-5

// Sampled is what one prompt became. Log-probabilities are natural, of the model's own distribution: before temperature and
// truncation. They have the bits that Logprobs gives for the same sequence under the same weights.
type Sampled struct {
	Completions []Completion  // [Samples]
	Prompt      []float32     // [T] of the prompt's tokens, entry 0 is 0; nil unless asked for
	Top         [][]Candidate // [T][TopPromptLogprobs] by rank, entry 0 is empty; nil unless asked for
}

// Completion is one sequence. Stopped says that it ended in a stop id or text, which is part of Tokens, and not for its
// length.
type Completion struct {
	Tokens   []int32
	Logprobs []float32 // [len(Tokens)]
	Stopped  bool
}

// Candidate is an id that may come next.
type Candidate struct {
	ID      int32
	Logprob float32
}

// A wave is what is in memory at a time: at most this many sequences, and about this many tokens of prompts and
// completions, but at least one sequence.
const (
	waveRows   = 256
	waveTokens = 1 << 17
)

// row is one completion in the making.
type row struct {
	prefix *prefix
	last   bool // no later row needs the prefix
	draws  stream
	out    *Completion
	pages  []page
	ending ending
}

// Sample completes every prompt. Equal prompts of a call share one pass over the prompt. What comes out is a function of the
// request and of the weights: a draw depends on the weights' hash, the Sampling, the prompt, how many equal ones came before
// it in the call, and the number of its completion, never on neighbours, threads, time, or any name. An error is that ctx
// has ended.
func (w *Weights) Sample(ctx context.Context, r *SampleRequest) ([]Sampled, error) {
	out, rows := w.rows(r)
	for len(rows) > 0 {
		n := nextWave(rows, r)
		wave := rows[:n]
		rows = rows[n:]
		w.prefill(wave, r)
		if err := w.decode(ctx, wave, r); err != nil {
			return nil, err
		}
		for _, row := range wave {
			row.pages = nil
			if row.last {
				row.prefix.forget()
			}
		}
	}
	first := map[string]*Sampled{}
	for i, p := range r.Prompts {
		key := promptKey(p)
		if f := first[key]; f != nil {
			out[i].Prompt, out[i].Top = f.Prompt, f.Top
		} else {
			first[key] = &out[i]
		}
	}
	return out, nil
}

// rows makes the completions' places, those of equal prompts next to each other.
func (w *Weights) rows(r *SampleRequest) ([]Sampled, []*row) {
	root := w.drawRoot(r)
	out := make([]Sampled, len(r.Prompts))
	var order []*prefix
	byPrompt := map[string]*prefix{}
	rowsOf := map[*prefix][]*row{}
	for i, prompt := range r.Prompts {
		key := promptKey(prompt)
		p := byPrompt[key]
		if p == nil {
			p = &prefix{tokens: prompt, scored: &out[i]}
			byPrompt[key] = p
			order = append(order, p)
		}
		ordinal := len(rowsOf[p]) / r.Samples
		out[i].Completions = make([]Completion, r.Samples)
		for k := range r.Samples {
			rowsOf[p] = append(rowsOf[p], &row{
				prefix: p, draws: drawsOf(root, key, ordinal, k), out: &out[i].Completions[k], ending: ending{rule: &r.Sampling},
			})
		}
	}
	var rows []*row
	for _, p := range order {
		own := rowsOf[p]
		own[len(own)-1].last = true
		rows = append(rows, own...)
	}
	return out, rows
}

func nextWave(rows []*row, r *SampleRequest) int {
	tokens := 0
	for n, row := range rows {
		if n == 0 || rows[n-1].prefix != row.prefix {
			tokens += len(row.prefix.tokens)
		}
		tokens += r.MaxTokens
		if n > 0 && (n == waveRows || tokens > waveTokens) {
			return n
		}
	}
	return len(rows)
}

// spread runs f on [0, n) cut into one run for each thread, side by side. The cut changes no bit of a sampler's results.
func spread(n int, f func(from, to int)) {
	threads := min(n, runtime.GOMAXPROCS(0))
	var wg sync.WaitGroup
	for i := 1; i < threads; i++ {
		wg.Go(func() { f(i*n/threads, (i+1)*n/threads) })
	}
	if n > 0 {
		f(0, n/threads)
	}
	wg.Wait()
}
