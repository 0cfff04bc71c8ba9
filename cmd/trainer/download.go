package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/urfave/cli/v2"

	"trainer/internal/download"
	"trainer/internal/report"
	"trainer/runner"
)

func (a *app) downloadCheckpoint() *cli.Command {
	return &cli.Command{
		Name: "download", Usage: "bring an inference checkpoint into a folder", ArgsUsage: "RUN|ID",
		Description: "Of a run: its newest inference checkpoint, or that of --step. What breaks off goes on where it was with the same command;\n" +
			"nothing in the folder that is not this checkpoint's is overwritten without --force.\n\n" +
			"Examples:\n  trainer checkpoints download runs/quickstart-20260101-120000 --out model\n  trainer checkpoints download runs/x --step 60 --kind merged --out model",
		Flags: []cli.Flag{jsonFlag,
			&cli.IntFlag{Name: "step", Usage: "that of step `N`; the newest otherwise"},
			&cli.StringFlag{Name: "kind", Usage: "`merged` model or adapter; what it is registered as otherwise"},
			&cli.StringFlag{Name: "out", Usage: "into `DIR`, which is made"},
			&cli.BoolFlag{Name: "force", Usage: "replace what stands in the folder under the names of the files"}},
		Action: func(c *cli.Context) error {
			what, err := one(c, "a run folder or the id of a checkpoint")
			if err != nil {
				return err
			}
			o := wanted{what: what, step: -1, kind: c.String("kind"), out: c.String("out"), force: c.Bool("force"), json: c.Bool("json")}
			if c.IsSet("step") {
				o.step = c.Int("step")
			}
			if err := o.check(c.IsSet("kind"), c.IsSet("step")); err != nil {
				return err
			}
			return a.download(c.Context, o)
		},
	}
}

// wanted is what a download asks for. Step is -1 for the newest.
type wanted struct {
	what, kind, out string
	step            int
	force, json     bool
}

func (o wanted) check(kind, step bool) error {
	const name = "trainer checkpoints download: "
	info, err := os.Stat(o.what)
	switch {
	case o.out == "":
		return &usage{name + "give --out DIR, the folder for the files"}
	case kind && o.kind != runner.Merged && o.kind != runner.Adapter:
		return &usage{fmt.Sprintf("%s--kind: %q is not one of %s, %s", name, o.kind, runner.Merged, runner.Adapter)}
	case step && o.step < 1:
		return &usage{fmt.Sprintf("%s--step: must be at least 1, got %d", name, o.step)}
	case runner.IsRun(o.what):
		return nil
	case err == nil && info.IsDir(), strings.ContainsAny(o.what, `/\`):
		return notRun(o.what)
	case step:
		return &usage{name + "--step is of a run; the id of a checkpoint has one already"}
	}
	return nil
}

func (a *app) download(ctx context.Context, o wanted) error {
	_, stop, done := signals(ctx)
	defer done()
	find := a.byID
	if runner.IsRun(o.what) {
		find = a.ofRun
	}
	l, label, err := find(stop, o)
	if err != nil {
		return err
	}
	show := report.Transfer{Out: a.err, TTY: a.tty, Width: a.width, Color: a.color()}
	show.Open()
	job := download.Job{Of: label, Source: l.client.Downloads(label.Checkpoint, label.Kind == runner.Adapter), Dir: o.out, Force: o.force, Tell: show.Move}
	got, err := job.Run(stop)
	show.Close()
	if err = errors.Join(err, l.close()); err != nil {
		if _, _, _, none := download.Read(o.out); none == nil && stop.Err() != nil {
			fmt.Fprintf(a.err, "trainer: what is there is kept in %s; the same command goes on from it\n", o.out)
		}
		return err
	}
	if o.json {
		return a.printJSON(struct {
			Dir string `json:"dir"`
			download.Label
			Files   int   `json:"files"`
			Bytes   int64 `json:"bytes"`
			Fetched int64 `json:"fetched_bytes"`
			Skipped int   `json:"skipped_files"`
		}{o.out, label, got.Files, got.Size, got.Fetched, got.Skipped})
	}
	there := ""
	if got.Skipped > 0 {
		there = fmt.Sprintf(", %d of them there already", got.Skipped)
	}
	fmt.Fprintf(a.out, "%s of step %d in %s: %d files%s, %s\n", label.Kind, label.Step, o.out, got.Files, there, report.Bytes(got.Size))
	return nil
}

// ofRun finds the checkpoint of a run in its journal.
func (a *app) ofRun(_ context.Context, o wanted) (*link, download.Label, error) {
	made, err := runner.ReadCheckpoints(o.what)
	if err != nil {
		return nil, download.Label{}, err
	}
	m, err := choose(made, o)
	if err != nil {
		return nil, download.Label{}, err
	}
	if o.kind == runner.Adapter && !made.LoRA {
		return nil, download.Label{}, fullWeights(m.ID)
	}
	l, err := a.serverOf(o.what, made.BaseModel)
	return l, download.Label{Checkpoint: m.ID, Kind: cmp.Or(o.kind, m.Variant), Step: int64(m.Done), BaseModel: made.BaseModel}, err
}

// choose is the newest verified inference checkpoint of the lineage, or that of a step.
func choose(made runner.Checkpoints, o wanted) (best runner.Made, err error) {
	var inference, training []string
	found := false
	for _, m := range made.Made { // ascending
		if !m.Verified || m.State == runner.StateAbandoned {
			continue
		}
		if m.Kind != "inference" {
			training = append(training, fmt.Sprint(m.Done))
			continue
		}
		inference = append(inference, fmt.Sprint(m.Done))
		if o.step < 0 || o.step == m.Done {
			best, found = m, true
		}
	}
	which := ""
	if o.step >= 0 {
		which = fmt.Sprintf(" of step %d", o.step)
	}
	const way = "an inference checkpoint is made by checkpoint.inference_every, and at the end by checkpoint.inference_at_end"
	switch {
	case found:
		return best, nil
	case len(inference) > 0:
		return best, &usage{fmt.Sprintf("%s has no inference checkpoint%s; those it has are of steps %s", o.what, which, strings.Join(inference, ", "))}
	case len(training) > 0:
		return best, &usage{fmt.Sprintf("%s has no inference checkpoint%s; its training checkpoints, of steps %s, are for `trainer resume`, and the service hands them out to nobody: %s",
			o.what, which, strings.Join(training, ", "), way)}
	}
	return best, &usage{fmt.Sprintf("%s has no checkpoint yet; %s", o.what, way)}
}

// byID asks the service for a checkpoint.
func (a *app) byID(ctx context.Context, o wanted) (*link, download.Label, error) {
	l, err := a.service()
	if err != nil {
		return nil, download.Label{}, err
	}
	c, err := l.client.Checkpoint(ctx, o.what)
	if err != nil {
		return nil, download.Label{}, err
	}
	switch {
	case !c.Inference:
		return nil, download.Label{}, &usage{fmt.Sprintf("%s is a training checkpoint, of step %d: it is for training on, in a session that resumes from it, and the service hands it out to nobody; an inference checkpoint is what can be downloaded", c.ID, c.Step)}
	case o.kind == runner.Adapter && c.LoRARank == 0 && !c.Adapter:
		return nil, download.Label{}, fullWeights(c.ID)
	}
	kind := cmp.Or(o.kind, runner.Variant(c.SavedCheckpoint, c.LoRARank > 0))
	return l, download.Label{Checkpoint: c.ID, Kind: kind, Step: c.Step, BaseModel: c.BaseModel}, nil
}

func fullWeights(id string) error {
	return &usage{fmt.Sprintf("checkpoint %s is of full weights and has no adapter; use --kind %s", id, runner.Merged)}
}
