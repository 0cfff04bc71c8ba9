package runner

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"trainer/internal/chat"
	"trainer/internal/dataset"
	"trainer/internal/grader"
	"trainer/internal/rollout"
	"trainer/internal/tokenizer"
)

// envPart is the name of what an environment pays, before those of the rewards.
const envPart = "env"

// trajectory is one conversation with the environment of a recipe. Its tokens are only ever added to: what was sampled is what
// the next turn sees and what is trained.
type trajectory struct {
	r      *run
	q      question
	p      dataset.Prompt
	name   string
	index  int // of its first slot
	seed   int64
	member rollout.Member

	c       chat.Conversation // to the turn that is due
	said    []json.RawMessage // the same for graders
	reward  float64
	rewards int             // how many turns had one
	episode rollout.Episode // nil: none is open
	last    rollout.Sequence
	behind  int // of member.Tokens, where the last turn starts
}

// play plays the members of a group side by side and grades them. The errors are those of the run.
func (r *run) play(ctx, wanted context.Context, q question, i int, p dataset.Prompt) (members []rollout.Member, graded []grader.Graded, err error) {
	all := make([]*trajectory, q.n)
	g, together := errgroup.WithContext(wanted)
	e := r.in.Recipe.Rollout.Env
	for m := range all {
		at := (q.from+i)*q.n + m
		all[m] = &trajectory{r: r, q: q, p: p, name: fmt.Sprintf("%s.p%d.m%d", q.name, q.from+i, m), index: at * (e.Retries + 1) * e.MaxTurns,
			seed: seed(fmt.Sprintf("env\n%s\n%d\n%d", q.name, q.from+i, m), r.in.Recipe.Seed) & (1<<53 - 1)}
		g.Go(func() error { return caught(func() error { return all[m].play(ctx, together) }) })
	}
	if err := g.Wait(); err != nil {
		return nil, nil, cause(together, err)
	}
	return r.gradePlayed(wanted, all)
}

// play begins anew as often as the recipe lets it where the episode is lost. A trajectory without an end has no reward.
func (t *trajectory) play(ctx, wanted context.Context) error {
	var lost *rollout.Unplayed
	for attempt := range t.r.in.Recipe.Rollout.Env.Retries + 1 {
		t.member, t.c, t.said, t.reward, t.rewards, lost = rollout.Member{Prompt: t.p.IDs}, t.p.Conversation, nil, 0, 0, nil
		err := t.attempt(ctx, wanted, attempt)
		if t.episode != nil {
			t.episode.Close()
			t.episode = nil
		}
		if err != nil && !errors.As(err, &lost) {
			return err
		}
		if lost == nil || !lost.Again {
			break
		}
	}
	t.member.Text = strings.ToValidUTF8(t.r.in.Tokenizer.Decode(t.member.Tokens), "\uFFFD")
	switch {
	case lost != nil:
		t.member.Unscored = envPart + ": " + lost.Why
	case t.rewards == 0:
		t.member.Unscored = envPart + ": " + rollout.NoReward
	}
	part := rollout.Part{Name: envPart, Value: t.reward, Scored: t.member.Unscored == ""}
	if !part.Scored {
		part.Value, part.Why = 0, t.member.Unscored[len(envPart+": "):]
	}
	t.member.Parts, t.member.Reward = []rollout.Part{part}, part.Value
	return nil
}

// attempt plays from reset to the end.
func (t *trajectory) attempt(ctx, wanted context.Context, attempt int) error {
	short, free := t.r.brief(wanted)
	defer free()
	scene, episode, err := t.r.in.Env.Reset(short, rollout.Opening{Episode: t.name, Seed: t.seed, Row: orNull(t.p.Row), Target: orNull(t.p.Target), Prompt: t.p.Asked}, attempt)
	if err != nil {
		return err
	}
	t.episode = episode
	if t.member.Prompt, err = t.opened(scene); err != nil {
		return t.unfit(err)
	}
	if scene.Done {
		return &rollout.Unplayed{Why: rollout.NoTurns}
	}
	turns := t.r.in.Recipe.Rollout.Env.MaxTurns
	for turn := range turns {
		if err := t.sample(ctx, wanted, t.index+attempt*turns+turn); err != nil {
			return err
		}
		over, err := t.step(short, turn, turn == turns-1)
		if err != nil || over {
			return err
		}
	}
	return nil
}

// opened puts what the environment says in front, and returns the prompt's ids.
func (t *trajectory) opened(s rollout.Scene) (ids []int32, err error) {
	asked := t.p.Asked
	if s.Messages != nil {
		asked = s.Messages
		if t.c.Messages, err = dataset.Messages(s.Messages); err != nil {
			return nil, err
		}
	}
	if s.Tools != nil {
		if t.c.Tools, err = dataset.Objects(s.Tools, "tools"); err != nil {
			return nil, err
		}
	}
	if err := json.Unmarshal(asked, &t.said); err != nil {
		return nil, err
	}
	if s.Messages == nil && s.Tools == nil {
		return t.p.IDs, nil
	}
	if ids, err = t.r.in.Template.Prompt(t.c); err != nil {
		return nil, err
	}
	if n, most := len(ids), t.r.in.Recipe.Dataset.MaxLength; n > most {
		return nil, fmt.Errorf("the prompt has %d tokens with what the environment gives, and dataset.max_length is %d", n, most)
	}
	return ids, nil
}

// unfit tells what of the environment's words can't be rendered.
func (t *trajectory) unfit(err error) error {
	t.r.tell(Event{Kind: WarnEvent, Done: t.r.doneSteps(), Text: fmt.Sprintf("environment, episode %s: %v", t.name, err)})
	return &rollout.Unplayed{Why: rollout.Unfit}
}

// sample draws the next turn.
func (t *trajectory) sample(ctx, wanted context.Context, index int) error {
	op := Sample{Prompts: [][]int32{slices.Concat(t.member.Prompt, t.member.Tokens)}, Params: t.q.params, N: 1}
	op.Params.MaxTokens -= len(t.member.Tokens)
	// A request has one completion, so that nothing but a seed tells those of a group apart where equal requests are answered alike.
	op.Seed = new(seed(fmt.Sprintf("turn\n%s\n%d\n%d", t.q.kind, t.q.step, index), t.r.in.Recipe.Seed))
	select {
	case t.q.slots <- struct{}{}:
		defer func() { <-t.q.slots }()
	case <-wanted.Done():
		return context.Cause(wanted)
	}
	s, err := t.r.sampled(ctx, wanted, slot{step: t.q.step, kind: t.q.kind, index: index}, op, t.q)
	if errors.Is(err, errUnsampled) {
		return &rollout.Unplayed{Why: string(rollout.Unsampled)}
	}
	if err != nil {
		return err
	}
	m := &t.member
	if len(m.Tokens) == 0 {
		m.Version = s.Segments[0].Version
	}
	t.last, t.behind = s.Sequences[0], len(m.Tokens)
	m.Tokens, m.Logprobs, m.Stop = append(m.Tokens, t.last.Tokens...), append(m.Logprobs, t.last.Logprobs...), t.last.Stop
	return nil
}

// step gives the turn to the environment and what that says to the conversation; over says that no turn follows.
func (t *trajectory) step(ctx context.Context, turn int, last bool) (over bool, err error) {
	left := t.q.params.MaxTokens - len(t.member.Tokens)
	last = last || t.last.Stop == rollout.Cut || left <= 0
	spoken := t.spoken(turn)
	spoken.Last = last
	reply, err := t.episode.Step(ctx, spoken)
	if err != nil {
		return false, err
	}
	if reply.Reward != nil {
		t.reward += *reply.Reward
		t.rewards++
	}
	if reply.Done {
		return true, nil
	}
	messages, err := dataset.Messages(reply.Messages)
	if err != nil {
		return false, t.unfit(err)
	}
	end := int32(-1)
	if n := len(t.last.Tokens); n > 0 && endsByToken(t.last, t.r.in.Tokenizer) {
		end = t.last.Tokens[n-1]
	}
	ids, err := t.r.in.Template.Continue(t.c, messages, end)
	if err != nil {
		return false, t.unfit(err)
	}
	if len(ids) >= left { // no token of a next turn would fit
		t.member.Stop = rollout.Cut
		return true, nil
	}
	m := &t.member
	m.Observed = append(m.Observed, rollout.Span{From: len(m.Tokens), To: len(m.Tokens) + len(ids)})
	m.Tokens, m.Logprobs = append(m.Tokens, ids...), append(m.Logprobs, make([]float64, len(ids))...)
	t.c.Messages = append(t.c.Messages, messages...)
	var more []json.RawMessage
	if err := json.Unmarshal(reply.Messages, &more); err != nil {
		return false, t.unfit(err)
	}
	t.said = append(t.said, more...)
	return false, nil
}

// spoken takes the turn apart and puts it into the conversation.
func (t *trajectory) spoken(turn int) rollout.Turn {
	tokens, text := spoken(t.last, t.r.in.Tokenizer, t.q.params.Stop)
	a := t.r.in.Template.Answer(text, t.c.Tools)
	out := rollout.Turn{Episode: t.name, Turn: turn, Text: text, Tokens: len(tokens), StopReason: t.last.Stop, ParseError: a.Unread,
		Message: rollout.Assistant{Role: "assistant", Content: a.Content, Reasoning: a.Reasoning, ToolCalls: []rollout.ToolCall{}}}
	var ids []string
	for n, c := range a.Calls {
		id := cmp.Or(c.ID, fmt.Sprintf("call_%d_%d", turn, n))
		ids = append(ids, id)
		out.Message.ToolCalls = append(out.Message.ToolCalls, rollout.ToolCall{ID: id, Type: "function", Function: rollout.Function{Name: c.Name, Arguments: c.Arguments}})
	}
	t.c.Messages = append(slices.Clip(t.c.Messages), t.r.in.Template.Message(a, ids))
	if raw, err := json.Marshal(out.Message); err == nil { // it is text, and always can be written
		t.said = append(t.said, raw)
	}
	return out
}

// endsByToken says that the last token of a turn is the one that stopped it.
func endsByToken(s rollout.Sequence, tok *tokenizer.Tokenizer) bool {
	return s.Stop == rollout.Stopped && tok.IsControl(s.Tokens[len(s.Tokens)-1])
}

// gradePlayed adds what the rewards of the recipe give for the last turn of each trajectory, where the environment has paid.
func (r *run) gradePlayed(ctx context.Context, all []*trajectory) (members []rollout.Member, graded []grader.Graded, err error) {
	var asked []grader.Completion
	var paid []int
	members, graded = make([]rollout.Member, len(all)), make([]grader.Graded, len(all))
	for i, t := range all {
		p := t.member.Parts[0]
		graded[i] = grader.Graded{Total: p.Value, Scored: p.Scored, Why: t.member.Unscored, Parts: []grader.Part{{Name: p.Name, Value: p.Value, Scored: p.Scored, Why: p.Why}}}
		if p.Scored && len(r.in.Graders.Set.Names()) > 0 {
			c, err := t.completion()
			if err != nil {
				return nil, nil, err
			}
			asked, paid = append(asked, c), append(paid, i)
		}
	}
	given, err := r.in.Graders.Set.Grade(ctx, asked)
	if err != nil {
		return nil, nil, err
	}
	for n, i := range paid {
		m, g := &all[i].member, given[n]
		m.Reward += g.Total
		if !g.Scored {
			m.Reward, m.Unscored = 0, g.Why
		}
		m.Parts = append(m.Parts, partsOf(g)...)
		graded[i] = grader.Graded{Total: m.Reward, Scored: g.Scored, Why: g.Why, Parts: append(graded[i].Parts, g.Parts...)}
	}
	for i, t := range all {
		members[i] = t.member
	}
	return members, graded, nil
}

// completion is the last turn as graders see it, behind all that was said before.
func (t *trajectory) completion() (grader.Completion, error) {
	prompt, err := json.Marshal(t.said[:len(t.said)-1])
	if err != nil {
		return grader.Completion{}, err
	}
	tokens, text := spoken(t.last, t.r.in.Tokenizer, t.q.params.Stop)
	return grader.Completion{Sample: t.name, Prompt: prompt, Rendered: t.r.in.Tokenizer.Decode(slices.Concat(t.member.Prompt, t.member.Tokens[:t.behind])),
		Text: text, Tokens: tokens, StopReason: string(t.last.Stop), Target: t.p.Target, Row: t.p.Row}, nil
}

func orNull(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 {
		return json.RawMessage("null")
	}
	return raw
}
