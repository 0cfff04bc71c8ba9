package main

import (
	"fmt"
	"slices"

	"github.com/urfave/cli/v2"

	"trainer/internal/diag"
	"trainer/internal/wire"
	"trainer/recipe"
	"trainer/runner"
)

var wireFlag = &cli.StringFlag{Name: "wire", Usage: "send samples in the `SHAPE` current, or 2026-04 to a server that still wants that"}

// shapeOf reads --wire.
func shapeOf(c *cli.Context) (wire.Shape, error) {
	if !c.IsSet(wireFlag.Name) {
		return wire.Current, nil
	}
	s, err := wire.ParseShape(c.String(wireFlag.Name))
	if err != nil {
		return s, &usage{c.Command.HelpName + ": --wire: " + err.Error()}
	}
	return s, nil
}

// shapeOn is the shape that a run goes on in: as asked, which is empty where nobody has, else as its lock has it.
func shapeOn(asked string, lock runner.Lock) (wire.Shape, error) {
	s, err := wire.ParseShape(or(or(asked, lock[lockWire]), wire.Current.String()))
	if err != nil {
		return s, fmt.Errorf("the shape of the run's requests: %w; name one with --wire", err)
	}
	return s, nil
}

// sayable refuses what requests of the shape cannot say, before anything is opened or paid for.
func sayable(r *recipe.Recipe, s wire.Shape) error {
	var l diag.List
	if t := r.Loss.Type; slices.Contains(wire.Losses(), t) && !slices.Contains(s.Losses(), t) {
		l.Add(r.At("loss.type"), "loss.type", "the %s shape of --wire has no %s; leave --wire out", s, t)
	}
	const replay = "rollout.replay_routed_experts"
	if r.Rollout != nil && r.Rollout.ReplayRoutedExperts && s != wire.Current {
		l.Add(r.At(replay), replay, "the %s shape of --wire has no routed_experts_key; leave --wire out, or set it to false", s)
	}
	return l.Err()
}

// lockWire is the entry of a run's lock that keeps the shape, so that a resume goes on in it.
const lockWire = "wire"

// remember puts the shape into the lock that the run folder will have; no entry is the current one.
func (w where) remember(p *runner.Plan) {
	if w.shape != wire.Current {
		p.Lock[lockWire] = w.shape.String()
	}
}
