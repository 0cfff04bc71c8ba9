package runner

import (
	"context"
	"fmt"
	"maps"
	"strings"

	"trainer/internal/rollout"
	"trainer/loss"
	"trainer/recipe"
)

// What an evaluation that samples measures. A completion passes where the first reward of the recipe's list pays it in full,
// at least 1; pass@k is the share of prompts with one that passes among their k.
const (
	evalReward = "eval/reward"
	evalPass   = "eval/pass@1"
)

// What a loop with a teacher is followed by: rollout.Divergence of what was sampled, in training and of held-out prompts.
const (
	reverseKL     = "distill/reverse_kl"
	evalReverseKL = "eval/" + reverseKL
)

// sampledBy are the metrics that a recipe whose evaluations sample can go by.
func sampledBy(r *recipe.Recipe) []string {
	names := []string{evalReward, evalPass}
	if k := r.Eval.GroupSize; k > 1 {
		names = append(names, fmt.Sprintf("eval/pass@%d", k))
	}
	return names
}

// followSampling samples the held-out prompts under the weights of done steps, which are served now and until it is over.
func (r *run) followSampling(ctx context.Context, f *flight, source *fromRollouts, done int) error {
	d, err := r.examine(ctx, source, done)
	var m map[string]float64
	if err == nil {
		var text []byte
		if text, err = r.written(done, d); err != nil {
			return fmt.Errorf("write down the evaluation: %w", err)
		}
		if err := r.putSamples(evalFile(done, r.gen.gen), text); err != nil {
			return err
		}
		switch m = examined(d.groups, r.in.Recipe.Eval.GroupSize); {
		case r.in.distils():
			m = divergence(d.groups)
		case r.in.Unjudged:
			maps.DeleteFunc(m, func(name string, _ float64) bool { return !strings.HasPrefix(name, "eval/completion/") })
		}
	} else if costs(failureOf(err), false) == rollBack || costs(failureOf(err), false) == settle {
		return err
	}
	softly, serr := r.examineSoftly(ctx, f, d, done)
	if serr != nil {
		return serr
	}
	f.evals = true
	f.after = append(f.after, func(ctx context.Context, r *run, done, updates int) error {
		if err == nil && softly != nil {
			var more map[string]float64
			more, err = softly(ctx)
			maps.Copy(m, more)
		}
		if err != nil {
			return r.unexamined(done, err)
		}
		return r.judged(m, done, updates)
	})
	return nil
}

// examineSoftly submits the scoring of what was sampled, under the weights that have sampled it, where the teacher's likeliest
// tokens are learnt: what it finds likeliest was not sampled. nil where they are not, or where nothing was sampled.
func (r *run) examineSoftly(ctx context.Context, f *flight, d *drawn, done int) (collect, error) {
	g, ok := r.gradient.(remote)
	if !ok || g.soft == nil || d == nil {
		return nil, nil
	}
	var data []loss.Datum
	for i, group := range d.groups {
		for _, m := range group.Members {
			data = append(data, rollout.Datum(group.Prompt, m, i))
		}
	}
	data = g.soft.Skip(data)
	if len(data) == 0 {
		return nil, nil
	}
	return g.scoring(ctx, r, done, f.updates, len(data), func(i int) ([]loss.Datum, error) { return data[i : i+1], nil })
}

func evalFile(done, gen int) string {
	return fmt.Sprintf("%s/eval-%06d.g%d.jsonl", samplesName, done, gen)
}

// unexamined says what an evaluation without a result costs: a warning, unless the fault is ours.
func (r *run) unexamined(done int, err error) error {
	if failureOf(err) == "" && r.tainted() == nil {
		return fmt.Errorf("evaluate: %w", err)
	}
	return r.harmless(done, "evaluate", err)
}

func (r *run) examine(ctx context.Context, source *fromRollouts, done int) (*drawn, error) {
	e := r.in.Recipe.Eval
	n := r.in.Held.Len()
	if e.Limit != nil {
		n = min(n, *e.Limit)
	}
	rows := make([]int, n)
	for i := range rows {
		rows[i] = i
	}
	source.mu.Lock()
	under := *source.live
	source.mu.Unlock()
	q := question{set: r.in.Held, kind: kindEvalSample, step: done, rows: rows, name: fmt.Sprintf("eval%d", done),
		n: e.GroupSize, params: *e.SamplingParams, seeded: r.in.Recipe.Rollout.Seeded, under: under, tries: harmlessTries}
	groups, places, err := r.ask(ctx, ctx, q)
	if err != nil {
		return nil, err
	}
	if r.in.distils() {
		err = r.teacher.teach(ctx, r, groups, slot{step: done, kind: kindEvalTeacher})
	}
	return &drawn{groups: groups, places: places}, err
}

// divergence are the metrics of held-out prompts that a teacher has scored.
func divergence(groups []rollout.Group) map[string]float64 {
	m := map[string]float64{}
	for name, v := range rollout.Taught(groups) {
		switch name {
		case reverseKL, "completion/length", "completion/truncated_fraction":
			m["eval/"+name] = v
		}
	}
	return m
}

// examined are the metrics of held-out prompts, k completions each. Means of rewards are over those that have one; a
// completion without one does not pass.
func examined(groups []rollout.Group, k int) map[string]float64 {
	m := map[string]float64{}
	for name, v := range rollout.Metrics(groups) {
		switch name {
		case "reward/mean":
			m[evalReward] = v
		case "completion/length", "completion/truncated_fraction", "reward/unscored":
			m["eval/"+name] = v
		}
	}
	one, any, n := 0.0, 0.0, 0.0
	for _, g := range groups {
		if len(g.Members) == 0 {
			continue
		}
		passed := 0.0
		for _, c := range g.Members {
			if len(c.Parts) > 0 && c.Parts[0].Scored && c.Parts[0].Value >= 1 {
				passed++
			}
		}
		n++
		one += passed / float64(len(g.Members))
		if passed > 0 {
			any++
		}
	}
	if n > 0 {
		m[evalPass] = one / n
		if k > 1 {
			m[fmt.Sprintf("eval/pass@%d", k)] = any / n
		}
	}
	return m
}

// follow keeps the newest of the metrics that a loop that samples is followed by.
func (s *Summary) follow(m map[string]float64) {
	for _, name := range []string{"reward/mean", evalReward, evalPass, reverseKL, evalReverseKL, forwardKL, evalForwardKL} {
		if v, ok := m[name]; ok {
			if s.Last == nil {
				s.Last = map[string]float64{}
			}
			s.Last[name] = v
		}
	}
}
