package runner

import (
	"context"
	"errors"
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
func (r *run) followSampling(ctx context.Context, f *flight, under served, done int) error {
	d, m, err := r.examination(ctx, under, done)
	if isHalted(err) {
		f.after = append(f.after, func(_ context.Context, r *run, done, _ int) error { return r.uncounted(done) })
		return nil
	}
	if breaks(ctx, err) {
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
	r.forgetExamination(f)
	return nil
}

// followBoth submits the scoring of the held-out rows, and completes them meanwhile under the weights of done steps. These are
// served now, unless they could not be published, and no others are before it is over.
func (r *run) followBoth(ctx context.Context, f *flight, under served, unpublished error, done int) error {
	var m map[string]float64
	why := unpublished // there are no metrics of samples, so that those of the rows are not written down alone
	if err := r.followEval(ctx, f, done, func() (map[string]float64, error) { return m, why }); err != nil {
		return err
	}
	if why == nil {
		_, m, why = r.examination(ctx, under, done)
	}
	r.forgetExamination(f)
	switch err := why; {
	case breaks(ctx, err):
		return err
	case err != nil && !isHalted(err): // which costs the samples alone
		why = nil
		f.after = append(f.after, func(_ context.Context, r *run, done, _ int) error { return r.unexamined(done, err) })
	}
	return nil
}

// breaks says that what went wrong in an evaluation that samples ends the work in its session, or came of its end.
func breaks(ctx context.Context, err error) bool {
	return err != nil && (ctx.Err() != nil || costs(failureOf(err), false) == rollBack || costs(failureOf(err), false) == settle)
}

// forgetExamination lets go of what was sampled, once the evaluation is written down: it is stored with its texts.
func (r *run) forgetExamination(f *flight) {
	f.after = append(f.after, func(_ context.Context, r *run, done, _ int) error {
		r.ledger.forget(func(s slot) bool { return s.kind == kindEvalSample && s.step == done })
		return nil
	})
}

// examination samples what is held out, stores it, and returns it with its metrics.
func (r *run) examination(ctx context.Context, under served, done int) (*drawn, map[string]float64, error) {
	d, err := r.examine(ctx, under, done)
	if err != nil {
		return nil, nil, err
	}
	text, err := r.written(done, d)
	if err != nil {
		return nil, nil, fmt.Errorf("write down the evaluation: %w", err)
	}
	if err := r.putSamples(evalFile(done, r.gen.gen), text); err != nil {
		return nil, nil, err
	}
	if r.in.examines() {
		r.show(done, d)
	}
	if r.in.distils() {
		return d, divergence(d.groups), nil
	}
	m := examined(d.groups, r.in.Recipe.Eval.GroupSize)
	if r.in.Unjudged {
		maps.DeleteFunc(m, func(name string, _ float64) bool { return !strings.HasPrefix(name, "eval/completion/") })
	}
	return d, m, nil
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
	if errors.Is(err, errUnsampled) && !r.plan.Evaluates && r.tainted() == nil {
		r.tell(Event{Kind: WarnEvent, Done: done, Text: fmt.Sprintf("evaluate: %v", err)})
		return nil
	}
	if failureOf(err) == "" && r.tainted() == nil {
		return fmt.Errorf("evaluate: %w", err)
	}
	return r.harmless(done, "evaluate", err)
}

func (r *run) examine(ctx context.Context, under served, done int) (*drawn, error) {
	e := r.in.Recipe.Eval
	rows := make([]int, r.in.heldRows())
	for i := range rows {
		rows[i] = i
	}
	q := question{set: r.in.Held, kind: kindEvalSample, step: done, rows: rows, name: fmt.Sprintf("eval%d", done),
		n: e.GroupSize, params: *e.SamplingParams, under: under, tries: harmlessTries}
	if ro := r.in.Recipe.Rollout; ro != nil {
		q.seeded = ro.Seeded
	}
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
