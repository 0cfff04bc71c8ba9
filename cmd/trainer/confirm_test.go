package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"trainer/recipe"
	"trainer/runner"
)

func TestConfirm(t *testing.T) {
	for text, want := range map[string]bool{"y\n": true, "Yes\n": true, " YES ": true, "n\n": false, "\n": false, "": false, "yeah\n": false} {
		var out bytes.Buffer
		a := &app{in: strings.NewReader(text), inTTY: true, err: &out}
		err := a.confirm(t.Context(), "train?")
		if (err == nil) != want || err != nil && !errors.Is(err, errDeclined) || out.String() != "train? [y/N] " {
			t.Errorf("%q: %v, asked %q", text, err, out.String())
		}
	}
	var wrong *usage
	if err := (&app{in: strings.NewReader("y\n"), err: io.Discard}).confirm(t.Context(), "train?"); !errors.As(err, &wrong) || !strings.Contains(err.Error(), "--yes") {
		t.Errorf("without a terminal: %v", err)
	}
	never, _ := io.Pipe()
	ctx, stop := context.WithCancelCause(t.Context())
	stop(runner.ErrInterrupted)
	if err := (&app{in: never, inTTY: true, err: io.Discard}).confirm(ctx, "train?"); !errors.Is(err, runner.ErrInterrupted) {
		t.Errorf("interrupted: %v", err)
	}
}

// TestAgree: only what costs money is asked about, and what it costs is said before.
func TestAgree(t *testing.T) {
	path := filepath.Join(t.TempDir(), "r.yaml")
	const text = "base_model: Qwen/Qwen3.8-27B\ndataset: {train: {path: rows.jsonl, format: tokens}}\nloss: {type: cross_entropy}\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	plan := &runner.Plan{Rates: make([]float64, 1200), Cost: &runner.Cost{USDPerHour: 44, DeadManUSD: 11.73}}
	for name, c := range map[string]struct {
		w     where
		set   []string
		yes   bool
		asked bool
		said  string
	}{
		"the service":               {where{}, nil, false, true, "r: Qwen/Qwen3.8-27B, 1,200 steps at $44.00 for every hour that the GPUs are ready\nno limit is set: limits.max_cost_usd ends a run with a checkpoint; a kill -9 can leave $11.73 behind\n"},
		"the service, with a limit": {where{base: "https://api.example"}, []string{"limits.max_cost_usd=90"}, false, true, "limits.max_cost_usd ends it at $90.00"},
		"in a script":               {where{}, nil, true, false, "$44.00"},
		"the built-in sandbox":      {where{sandbox: true, embedded: true}, nil, false, false, ""},
		"a server on this machine":  {where{base: "http://127.0.0.1:8431"}, nil, false, false, ""},
		"a resource that runs":      {where{}, []string{"model_resources_id=r1"}, false, false, ""},
	} {
		r, err := recipe.Load(path, c.set...)
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		err = (&app{in: strings.NewReader("n\n"), inTTY: true, err: &out}).agree(t.Context(), c.w, r, plan, c.yes)
		if errors.Is(err, errDeclined) != c.asked || strings.Contains(out.String(), "train? [y/N]") != c.asked || !strings.Contains(out.String(), c.said) || c.said == "" && out.Len() > 0 {
			t.Errorf("%s: %v, said %q", name, err, out.String())
		}
	}
}
