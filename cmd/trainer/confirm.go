package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strings"

	"trainer/internal/report"
	"trainer/recipe"
	"trainer/runner"
)

// errDeclined is a question that was answered with no.
var errDeclined = errors.New("not confirmed, so nothing was done")

// confirm asks on the terminal, and returns nil for yes alone. Without a terminal nobody can be asked: that is wrong usage.
func (a *app) confirm(ctx context.Context, question string) error {
	if !a.inTTY {
		return &usage{question + " nobody can be asked without a terminal: --yes answers for scripts"}
	}
	fmt.Fprintf(a.err, "%s [y/N] ", question)
	line := make(chan string, 1)
	go func() { // it ends with the process where nobody answers
		text, _ := bufio.NewReader(a.in).ReadString('\n')
		line <- text
	}()
	select {
	case <-ctx.Done():
		fmt.Fprintln(a.err)
		return context.Cause(ctx)
	case text := <-line:
		switch strings.ToLower(strings.TrimSpace(text)) {
		case "y", "yes":
			return nil
		}
	}
	return errDeclined
}

// agree shows what a run costs before it asks for anything that bills, and asks. A sandbox charges nothing, and neither does
// a resource that runs anyway.
func (a *app) agree(ctx context.Context, w where, r *recipe.Recipe, p *runner.Plan, yes bool) error {
	if w.sandbox || loopback(w.base) || r.ModelResourcesID != nil && p.Cost.TeacherUSD == 0 || p.Cost == nil {
		return nil
	}
	what, limit, question := report.Count(len(p.Rates))+" steps", "no limit is set: limits.max_cost_usd ends a run with a checkpoint", "train?"
	if p.Evaluates {
		what, limit, question = "no training", "no limit is set: limits.max_cost_usd sets one", "go on?"
	}
	fmt.Fprintf(a.err, "%s: %s, %s at %s for every hour that the GPUs are ready\n", r.RunName(), r.BaseModel, what, report.USD(p.Cost.USDPerHour))
	if m := r.Limits.MaxCostUSD; m != nil {
		limit = "limits.max_cost_usd ends it at " + report.USD(*m)
	}
	fmt.Fprintf(a.err, "%s; a kill -9 can leave %s behind\n", limit, report.USD(p.Cost.DeadManUSD))
	if yes {
		return nil
	}
	return a.confirm(ctx, question)
}
