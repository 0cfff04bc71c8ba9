package recipe

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"trainer/internal/diag"
	"trainer/internal/grader"
	"trainer/loss"
)

// rollouts are the rules of the loops that sample.
func (d *decoder) rollouts(n *node) {
	r := d.r.Rollout
	if r.Minibatches > r.BatchSize {
		d.refuse("rollout.minibatches", "must be at most rollout.batch_size (%d), because groups stay whole, got %d", r.BatchSize, r.Minibatches)
	}
	if r.DynamicSampling.Enabled && d.r.Train.NumSteps == nil {
		d.refuse("rollout.dynamic_sampling.enabled", "needs train.num_steps: how many batches an epoch gives is not known before")
	}
	if d.loop == loss.Distillation && r.Truncated == "penalise" {
		d.refuse("rollout.truncated", "penalise takes off a reward, and %s has none; use keep or mask", d.r.Loss.Type)
	}
	if !d.r.Given("rollout.on_error.min_group_size") {
		r.OnError.MinGroupSize = min(r.OnError.MinGroupSize, r.GroupSize)
	}
	if r.OnError.MinGroupSize > r.GroupSize {
		d.refuse("rollout.on_error.min_group_size", "must be at most rollout.group_size (%d), got %d", r.GroupSize, r.OnError.MinGroupSize)
	}
	if p := r.SamplingParams; r.Truncated == "penalise" && p.MaxTokens > 0 && r.TruncatedBuffer > p.MaxTokens {
		d.refuse("rollout.truncated_buffer", "must be at most max_tokens (%d), got %d", p.MaxTokens, r.TruncatedBuffer)
	}
	d.stops(n.get("rollout").get("sampling_params"), "rollout.sampling_params")
	d.env()
	d.teacher()
	if d.loop == loss.Reinforcement {
		d.groups()
		if len(d.r.Reward) == 0 && d.r.Rollout.Env == nil && d.sound("reward") && d.sound("rollout.env") {
			d.add(d.r.At("reward"), "reward", "missing; a list of graders as [{type: math_equal}]")
		}
		d.beside()
	}
}

// examined are the rules of evaluations that sample, and of what they are graded by.
func (d *decoder) examined(n *node) {
	d.rewards()
	e := d.r.Eval
	if e.SamplingParams == nil {
		if d.r.Rollout != nil && d.loop != "" {
			d.refuse("eval.sampling_params", "null is not allowed here: what is held out are prompts, which an evaluation samples; leave the key out for its default")
		}
		return
	}
	d.stops(n.get("eval").get("sampling_params"), "eval.sampling_params")
	if e.GroupSize > 1 && e.SamplingParams.Temperature == 0 && d.sound("eval.sampling_params") {
		d.refuse("eval.group_size", "%d greedy completions are all the same; give eval.sampling_params.temperature", e.GroupSize)
	}
	if ofRows(d.loop) && d.r.Compute.NumGeneratorReplicas == 0 {
		d.refuse("eval.sampling_params", "samples completions, which takes a generator: give compute_config.num_generator_replicas, at least 1, or null here")
	}
}

// teacher: it scores, and does nothing else.
func (d *decoder) teacher() {
	t := d.r.Teacher
	if t == nil {
		return
	}
	if d.r.Loss.Type == "forward_kl" {
		d.generator(t)
	} else if t.Compute.NumGeneratorReplicas > 0 {
		d.refuse("teacher.compute_config.num_generator_replicas", "has no effect: a teacher scores, and samples nothing; use 0")
	}
	if t.System != nil && *t.System == "" {
		d.refuse("teacher.system", "has no effect: it is empty; leave it out")
	}
	if t.InitFrom != nil && t.InitFrom.LoadOptimizer {
		d.refuse("teacher.init_from.load_optimizer", "has no effect: a teacher takes no step; use false")
	}
}

// generator: the likeliest tokens are told by who samples.
func (d *decoder) generator(t *Teacher) {
	const key = "teacher.compute_config.num_generator_replicas"
	switch {
	case !d.r.Given(key):
		t.Compute.NumGeneratorReplicas = 1
	case t.Compute.NumGeneratorReplicas == 0:
		d.refuse(key, "0: forward_kl asks the teacher's generator for its likeliest tokens; use 1")
	}
}

// forwardKL: a teacher is asked about what the student samples, and where none is, the rows say all that is learnt.
func (d *decoder) forwardKL(n *node) {
	l, ok := d.r.Loss.Params.(*loss.ForwardKL)
	if !ok {
		return
	}
	if d.r.Teacher != nil && n.get("rollout") == nil {
		d.refuse("teacher", "scores what the student samples, and there is no rollout; give rollout.sampling_params, or leave teacher out and give the rows teacher_topk")
	}
	if d.loop == loss.Supervised && l.SkipFirst > 0 {
		d.refuse("loss.params.skip_first", "is of completions that are sampled; of rows, weights and teacher_topk say which tokens train; use 0")
	}
}

// stops refuses token ids, which the service drops without a word.
func (d *decoder) stops(n *node, key string) {
	stop := n.get("stop")
	if stop == nil {
		return
	}
	for i, item := range stop.items {
		at := join(key+".stop", strconv.Itoa(i))
		switch {
		case item.shape == scalar && !item.quoted && wholeForm.MatchString(item.text):
			d.add(item.pos, at, "%s looks like a token id, and stops are texts; write the token's text, or %q in quotes", item.text, item.text)
		case item.shape == scalar && item.text == "" && !item.null:
			d.add(item.pos, at, "an empty text would stop every completion at once")
		}
	}
}

// env is held to the rules of rewards that ask outside: what is sent is rows and completions.
func (d *decoder) env() {
	e := d.r.Rollout.Env
	if e == nil {
		return
	}
	var c grader.Checker = &grader.Command{Command: e.Command, Env: e.Env}
	if e.Type == "http" {
		c = &grader.HTTP{URL: e.URL, Headers: e.Headers}
	}
	var f *grader.Fault
	if errors.As(c.Check(), &f) && d.sound("rollout.env."+f.Key) {
		d.refuse("rollout.env."+f.Key, "%s", f.Msg)
	}
}

func (d *decoder) groups() {
	a := d.r.Advantage
	if a == nil || d.r.Rollout.GroupSize > 1 || !d.sound("rollout.group_size") {
		return
	}
	for _, p := range [][2]string{{"advantage.baseline", a.Baseline}, {"advantage.scale", a.Scale}} {
		if strings.HasPrefix(p[1], "group") || p[1] == "leave_one_out" {
			d.refuse("rollout.group_size", "1 leaves no group for %s: %s; every advantage would be 0", p[0], p[1])
		}
	}
}

// beside: the reference of a run that samples is a session beside the one that trains.
func (d *decoder) beside() {
	if !d.full {
		return
	}
	const why = "compares with a reference, which is a session beside the one that trains, and full weights have one session a resource; use 0, or lora_config"
	if a := d.r.Advantage; a != nil && a.KLCoef > 0 {
		d.refuse("advantage.kl_coef", why)
	}
	if g, ok := d.r.Loss.Params.(*loss.GRPO); ok && g.Beta > 0 {
		d.refuse("loss.params.beta", why)
	}
}

func (d *decoder) rewards() {
	for i, w := range d.r.Reward {
		key := "reward." + strconv.Itoa(i)
		if w.Clip != nil && w.Clip[0] >= w.Clip[1] {
			d.refuse(key+".clip", "must be [lo, hi] with lo below hi")
		}
		if w.Type != "" && !slices.Contains(RewardNames(), w.Type) {
			msg := diag.DidYouMean(w.Type, RewardNames())
			if msg == "" {
				msg = "; rewards are " + strings.Join(RewardNames(), ", ")
			}
			d.refuse(key+".type", "%q is not a reward%s", w.Type, msg)
		}
		for j := range w.Tests {
			if test := key + ".tests." + strconv.Itoa(j); !d.r.Given(test + ".reward") {
				d.refuse(test, "has no reward; give the score that is expected, or null for none")
			}
		}
	}
}
