package runner

import (
	"context"
	"errors"
	"fmt"

	"trainer/internal/chat"
	"trainer/internal/dataset"
	"trainer/internal/diag"
	"trainer/internal/grader"
	"trainer/internal/rollout"
	"trainer/recipe"
)

// OpenEnv opens the environment of the recipe, where it has one, and begins one episode of the first prompt as a check, before
// anything is paid. With lenient an environment that out does not let ask is Unchecked; else it is refused. The error is a
// diag.List, or that of ctx.
func (in *Inputs) OpenEnv(ctx context.Context, out Outside, lenient bool) error {
	const key = "rollout.env"
	if !in.samples() || in.Recipe.Rollout.Env == nil {
		return nil
	}
	e := in.Recipe.Rollout.Env
	refuse := func(format string, a ...any) error {
		return diag.List{{Pos: in.Recipe.At(key), Key: key, Msg: fmt.Sprintf(format, a...)}}
	}
	first, err := in.Train.Prompt(0)
	if err != nil {
		return err
	}
	if msg := in.uncontinued(first.Conversation); msg != "" {
		return refuse("%s", msg)
	}
	err = ErrNotAllowed
	if out != nil {
		in.Env, err = out.Environment(e, key, in.Recipe.ProgramDir("rollout.env", e.Dir))
	}
	switch {
	case errors.Is(err, ErrNotAllowed) && lenient:
		in.Graders.Unchecked = append(in.Graders.Unchecked, key+", which "+EnvRefused(e))
		return nil
	case errors.Is(err, ErrNotAllowed):
		return refuse("%s", EnvRefused(e))
	case err != nil:
		return refuse("%v", err)
	}
	if err := in.tryEnv(ctx, first); ctx.Err() != nil {
		return context.Cause(ctx)
	} else if err != nil {
		return refuse("%s: begins no episode: %v", first.At, err)
	}
	return nil
}

// uncontinued says why no conversation can go on behind a sampled turn, "" where it can: by a user's message or a tool's.
func (in *Inputs) uncontinued(c chat.Conversation) string {
	if !in.Template.HasRoles() {
		return "an environment speaks in messages, and chat.template: none has no roles; give a template"
	}
	user := in.Template.Rewrites(c, "user")
	if user == nil || in.Template.Rewrites(c, "tool") == nil {
		return ""
	}
	return user.Error()
}

// tryEnv begins an episode, renders it, and lets it go.
func (in *Inputs) tryEnv(ctx context.Context, p dataset.Prompt) error {
	const name = "check.p0.m0"
	s, episode, err := in.Env.Reset(ctx, rollout.Opening{Episode: name, Row: orNull(p.Row), Target: orNull(p.Target), Prompt: p.Asked}, 0)
	if err != nil {
		return err
	}
	episode.Close()
	in.reworded = s.Messages != nil || s.Tools != nil
	t := trajectory{r: &run{in: in, tell: func(Event) {}}, p: p, c: p.Conversation, name: name}
	_, err = t.opened(s)
	return err
}

// EnvRefused says what a person has to allow for an environment.
func EnvRefused(e *recipe.Env) string {
	if e.Type == "http" {
		return grader.Refused(&grader.HTTP{URL: e.URL})
	}
	return grader.Refused(&grader.Command{Command: e.Command})
}
