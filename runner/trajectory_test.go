package runner_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"trainer/internal/grader"
	"trainer/internal/rollout"
	"trainer/runner"
)

// game is an environment whose answers are a function of the episode and the turn. It pays a turn by its letters.
type game struct {
	life     string // what its answers begin with
	loses    int    // how often each episode is lost at its second turn
	silent   bool   // it pays nothing
	grumbles string // what it answers in place of a message of its own

	mu     sync.Mutex
	open   int
	resets map[string]int
}

func (g *game) Reset(_ context.Context, o rollout.Opening, attempt int) (rollout.Scene, rollout.Episode, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.resets == nil {
		g.resets = map[string]int{}
	}
	if !strings.HasPrefix(o.Episode, "check") {
		g.resets[o.Episode]++
	}
	g.open++
	return rollout.Scene{}, &round{game: g, o: o, attempt: attempt}, nil
}

type round struct {
	*game
	o       rollout.Opening
	attempt int
}

func (r *round) Step(_ context.Context, t rollout.Turn) (rollout.Reply, error) {
	if t.Turn == 1 && r.attempt < r.loses {
		return rollout.Reply{}, &rollout.Unplayed{Why: grader.Died, Again: true}
	}
	low := 0
	for _, c := range []byte(t.Text) {
		if c < 64 {
			low++
		}
	}
	reward := float64(low) / float64(len(t.Text)+1)
	say, _ := json.Marshal(fmt.Sprintf("%s%d.%d", r.life, r.o.Seed%7, t.Turn))
	reply := rollout.Reply{Reward: &reward, Done: t.Last || r.o.Seed%3 == 0 && t.Turn == 1, Messages: fmt.Appendf(nil, `[{"role":"tool","content":%s}]`, say)}
	if r.grumbles != "" {
		reply.Messages = []byte(r.grumbles)
	}
	if r.silent {
		reply.Reward = nil
	}
	return reply, nil
}

func (r *round) Close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.open--
}

// newGame is a bench of a loop whose prompts are played with an environment, without rewards beside it unless set names some.
func newGame(t *testing.T, g *game, set ...string) *bench {
	t.Helper()
	b := newRollouts(t, append([]string{"rollout.env={type: command, command: [game], max_turns: 3}", "rollout.sampling_params.max_tokens=40", "base_model=sandbox/pretrained-tiny"}, set...)...)
	b.in.Env = g
	b.in.Graders.Set = grader.New(nil)
	return b
}

// played are the lines of the stored rollout batches of a run.
type played struct {
	Tokens       []int32
	Logprobs     []float64
	Observed     [][2]int
	Prompt, Text string
	Reward       float64
	Unscored     string
	Trained      bool
	Rewards      []struct {
		Name  string
		Value float64
	}
}

func playedIn(t *testing.T, dir string) (all []played) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "samples", "batch-*"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(data)) {
			var p played
			if err := json.Unmarshal([]byte(line), &p); err != nil {
				t.Fatal(err)
			}
			all = append(all, p)
		}
	}
	return all
}

// TestATrajectoryIsWhatWasSaid looks at the stored trajectories: what the environment wrote stands where it says so, in the
// template's words, and has no log-probabilities; what was sampled has some.
func TestATrajectoryIsWhatWasSaid(t *testing.T) {
	g := &game{}
	b := newGame(t, g)
	b.fresh(func(t *testing.T) {
		if _, _, err := b.life(0, false); err != nil {
			t.Fatal(err)
		}
		several := 0
		for _, p := range playedIn(t, b.dir) {
			if len(p.Observed) > 0 {
				several++
			}
			if len(p.Tokens) > 40 {
				t.Errorf("%d tokens, and max_tokens is 40", len(p.Tokens))
			}
			b.observed(t, p)
		}
		if several == 0 || g.open != 0 {
			t.Errorf("%d trajectories of several turns; %d episodes left open", several, g.open)
		}
	})
}

// observed holds what the environment wrote into a trajectory to the template.
func (b *bench) observed(t *testing.T, p played) {
	t.Helper()
	at := 0
	for _, s := range p.Observed {
		said := b.in.Tokenizer.Decode(p.Tokens[s[0]:s[1]])
		if !strings.HasSuffix(said, "<|end|><|assistant|>") || strings.Count(said, "<|tool|>") != 1 {
			t.Errorf("observed %q", said)
		}
		for _, q := range p.Logprobs[s[0]:s[1]] {
			if q != 0 {
				t.Errorf("a log-probability of %v of what was not sampled", q)
			}
		}
		for _, q := range p.Logprobs[at:s[0]] {
			if q >= 0 {
				t.Errorf("a log-probability of %v of what was sampled", q)
			}
		}
		at = s[1]
	}
}

// TestLostEpisodesBeginAnew: from the first turn and with new samples, as often as the recipe says; then they have no reward.
func TestLostEpisodesBeginAnew(t *testing.T) {
	for loses, died := range map[int]bool{2: false, 3: true} {
		g := &game{loses: loses}
		b := newGame(t, g, "rollout.env.retries=2", "train.epochs=null", "train.num_steps=1", "eval.every=null", "eval.at_start=false", "eval.at_end=false")
		b.fresh(func(t *testing.T) {
			_, _, err := b.life(0, false)
			if died {
				if err == nil || !strings.Contains(err.Error(), "env: died") {
					t.Errorf("lost %d times: %v", loses, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			again := 0
			for _, p := range playedIn(t, b.dir) {
				if p.Unscored != "" {
					t.Errorf("lost %d times: unscored %s", loses, p.Unscored)
				}
				b.observed(t, p)
			}
			for _, n := range g.resets {
				if n == 3 {
					again++
				}
			}
			if again == 0 {
				t.Errorf("no episode began three times: %v", g.resets)
			}
		})
	}
}

// TestATrajectoryWithoutARewardIsNotTrained: silence is no 0, and what the template can't say is no end.
func TestATrajectoryWithoutARewardIsNotTrained(t *testing.T) {
	for want, g := range map[string]*game{
		"env: no_reward": {silent: true},
		"env: template":  {grumbles: `[{"role":"tool"}]`},
	} {
		b := newGame(t, g, "train.epochs=null", "train.num_steps=1", "eval.every=null", "eval.at_start=false", "eval.at_end=false")
		b.fresh(func(t *testing.T) {
			if _, _, err := b.life(0, false); err != nil && !errors.Is(err, runner.ErrUnscored) { // where the only batch has none
				t.Fatal(err)
			}
			lost := 0
			for _, p := range playedIn(t, b.dir) {
				if p.Unscored == want {
					lost++
				}
				if p.Unscored != "" && p.Trained {
					t.Errorf("%s: trained", p.Unscored)
				}
			}
			if lost == 0 {
				t.Errorf("none is %s", want)
			}
		})
	}
}

// TestRewardsSeeTheLastTurn: behind what was said before, and add to what the environment pays.
func TestRewardsSeeTheLastTurn(t *testing.T) {
	b := newGame(t, &game{}, "train.epochs=null", "train.num_steps=1", "eval.every=null", "eval.at_start=false", "eval.at_end=false")
	watch := &audience{}
	b.in.Graders.Set = grader.New([]grader.Entry{{Type: "watch", Grader: watch, Weight: 2}})
	b.fresh(func(t *testing.T) {
		if _, _, err := b.life(0, false); err != nil {
			t.Fatal(err)
		}
		all := playedIn(t, b.dir)
		for _, p := range all {
			if len(p.Rewards) != 2 || p.Rewards[0].Name != "env" || p.Rewards[1].Name != "watch" || p.Reward != p.Rewards[0].Value+2 {
				t.Errorf("rewards %+v make %v", p.Rewards, p.Reward)
			}
		}
		if len(watch.seen) != len(all) {
			t.Errorf("%d of %d graded", len(watch.seen), len(all))
		}
		for _, c := range watch.seen {
			var said []struct{ Role, Content string }
			if err := json.Unmarshal(c.Prompt, &said); err != nil || len(said)%2 != 1 || said[0].Role != "user" {
				t.Errorf("behind %s, %v", c.Prompt, err)
			}
			for i, m := range said[1:] {
				if want := []string{"assistant", "tool"}[i%2]; m.Role != want {
					t.Errorf("message %d is of %s, want %s", i+1, m.Role, want)
				}
			}
			if !strings.HasSuffix(c.Rendered, "<|assistant|>") || strings.Contains(c.Text, "<|tool|>") {
				t.Errorf("%q behind %q", c.Text, c.Rendered)
			}
		}
	})
}

// audience pays 1 and remembers.
type audience struct {
	mu   sync.Mutex
	seen []grader.Completion
}

func (w *audience) Grade(_ context.Context, c grader.Completion) (grader.Score, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen = append(w.seen, c)
	return grader.Score{Value: 1}, nil
}

// TestKillTrajectoriesAtEveryRequest cuts a run with an environment at its requests, resumes it, and compares metrics and weights with
// those of the unbroken one: what was sampled is read again and what was not is played on.
func TestKillTrajectoriesAtEveryRequest(t *testing.T) {
	t.Parallel()
	b := newGame(t, &game{}, "loss.params.beta=0.1", "advantage.importance_cap=2")
	b.sameWherever(67, 4, b.weights)
}

// TestAnEnvironmentThatAnswersOtherwiseIsAskedAnew: where a later life hears something else, a sample that is stored is not taken
// for the answer to it.
func TestAnEnvironmentThatAnswersOtherwiseIsAskedAnew(t *testing.T) {
	sets := []string{"train.epochs=null", "train.num_steps=1", "eval.every=null", "eval.at_start=false", "eval.at_end=false"}
	b := newGame(t, &game{life: "new"}, sets...)
	want, held := b.unbroken(), 0
	for die := 16; die < 80; die += 8 {
		b.in.Env = &game{life: "old"}
		b.fresh(func(t *testing.T) {
			if _, _, err := b.life(die, false); err == nil {
				return
			}
			if stored, _ := filepath.Glob(filepath.Join(b.dir, "samples", "*")); len(stored) > 0 {
				return // what is stored is trained, whatever is heard now
			}
			b.in.Env = &game{life: "new"}
			b.resumes(t, fmt.Sprintf("request %d", die), want)
			held++
		})
	}
	if held == 0 {
		t.Error("no life died between two turns")
	}
}

// TestATrajectoryBesideAReference: the reference and the session that trains score a conversation in one pass. What the model wrote
// is compared, token by token: the first batch is sampled under the reference itself, and every one under the weights that train
// it. What the environment wrote counts nowhere.
func TestATrajectoryBesideAReference(t *testing.T) {
	const coef = 0.25
	b := newGame(t, &game{}, "loss.params.beta=0.1", "advantage.kl_coef=0.25", "advantage.importance_cap=2", "eval.every=null", "eval.at_start=false", "eval.limit=null")
	b.onDisk(func(t *testing.T) {
		line := &listening{next: b.server, path: "/forward-backward"}
		if s, err := b.through(line); err != nil || s.Outcome != "complete" {
			t.Fatalf("%s, %v: %s", s.Outcome, err, b.warned.String())
		}
		judge(t, b.dir, b.store, true).hold(t, "the run")
		lines, err := runner.ReadMetrics(b.dir)
		if err != nil {
			t.Fatal(err)
		}
		requests, observed := line.trained(t), 0
		for n, batch := range b.completions(t) {
			batch = slices.DeleteFunc(batch, func(c kept) bool { return !c.Trained })
			if len(batch) == 0 {
				continue
			}
			if len(requests) == 0 || len(requests[0]) != len(batch) {
				t.Fatalf("batch %d: %d conversations are not trained in one request", n+1, len(batch))
			}
			wrote := func(c kept, j int) bool {
				return !slices.ContainsFunc(c.Observed, func(s [2]int) bool { return j >= s[0] && j < s[1] })
			}
			sum, tokens := 0.0, 0
			for _, c := range batch {
				for j, ref := range c.Ref {
					if wrote(c, j) {
						sum, tokens = sum+c.Logprobs[j]-ref, tokens+1
					} else if observed++; ref != 0 {
						t.Errorf("batch %d: a log-probability of %v under the reference of what the environment wrote", n+1, ref)
					}
				}
			}
			kl := sum / float64(tokens)
			if got := lines[n]["kl/reference"]; !same32(got, kl) || n == 0 && !same32(kl, 0) || !same32(lines[n]["importance/weight"], 1) {
				t.Errorf("batch %d: kl/reference %v, want %v; importance/weight %v", n+1, got, kl, lines[n]["importance/weight"])
			}
			for i, x := range requests[0] {
				c := batch[i]
				lead := len(x.Tokens) - len(c.Tokens)
				for j := range c.Tokens {
					advantage, ref := 0.0, 0.0
					if wrote(c, j) {
						advantage, ref = c.Advantage+coef*(kl-(c.Logprobs[j]-c.Ref[j])), c.Ref[j]
					}
					if !same32(x.Advantages[lead+j], advantage) || !same32(x.RefLogprobs[lead+j], ref) {
						t.Errorf("batch %d, token %d of the model %v: advantage %v, want %v; reference %v, want %v", n+1, j, wrote(c, j), x.Advantages[lead+j], advantage, x.RefLogprobs[lead+j], ref)
					}
				}
			}
			requests = requests[1:]
		}
		if last := lines[len(lines)-1]["kl/reference"]; observed == 0 || len(requests) > 0 || same32(last, 0) {
			t.Errorf("%d tokens of the environment, %d requests more, at last a KL of %v", observed, len(requests), last)
		}
	})
}
