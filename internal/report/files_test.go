package report

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"trainer/runner"
)

func read(t *testing.T, path ...string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestEachLifeIsAppended(t *testing.T) {
	dir := t.TempDir()
	play(t, &Files{Dir: dir}, nil)
	_, events := script()
	if n := strings.Count(read(t, dir, eventsFile), "\n"); n != len(events) {
		t.Fatalf("events.jsonl has %d lines, want %d", n, len(events))
	}
	play(t, &Files{Dir: dir}, func(r *runner.RunInfo) { r.Done = 10 })
	if n := strings.Count(read(t, dir, eventsFile), "\n"); n != 2*len(events) {
		t.Errorf("after a second life events.jsonl has %d lines, want %d", n, 2*len(events))
	}
	log := read(t, dir, logFile)
	if n := strings.Count(log, "\n"); n != 2*(len(events)+1) {
		t.Errorf("trainer.log has %d lines, want an opening and a line an event of each life: %d", n, 2*(len(events)+1))
	}
	for line := range strings.Lines(log) {
		var fields struct{ Level, Time, Message string }
		if err := json.Unmarshal([]byte(line), &fields); err != nil || fields.Level == "" || fields.Time == "" || fields.Message == "" {
			t.Fatalf("no log line of level, time and message: %s(%v)", line, err)
		}
	}
	page := read(t, dir, pageFile)
	wellFormed(t, page)
	for _, want := range []string{"<h1>capitals</h1>", `badge good">complete`, "of 10", "$0.97"} {
		if !strings.Contains(page, want) {
			t.Errorf("report.html lacks %q", want)
		}
	}
}

func TestALineThatAKillCutSpoilsNoOther(t *testing.T) {
	f := newFolder(t).write(eventsFile, `{"time":"2026-11-29T12:00:00Z","kind":"st`)
	s := &Files{Dir: f.dir}
	play(t, s, nil)
	h, err := readHistory(f.dir)
	if err != nil {
		t.Fatal(err)
	}
	if h.unreadable != 1 || h.done != 10 || h.outcome != "complete" {
		t.Errorf("unreadable %d, done %d, outcome %q; want 1, 10, complete", h.unreadable, h.done, h.outcome)
	}
}

func TestTheRunFolderIsItsOwnersAlone(t *testing.T) {
	dir := t.TempDir()
	play(t, &Files{Dir: dir}, nil)
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
		info, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v, want 0600", e.Name(), info.Mode())
		}
	}
	if got, want := strings.Join(names, " "), "events.jsonl report.html run.json trainer.log"; got != want {
		t.Errorf("the folder holds %s, want %s", got, want)
	}
	if strings.Contains(read(t, dir, runFile), dir) {
		t.Error("run.json names its own folder, which may move")
	}
}

func TestAMissingFolderStopsTheRunBeforeItPays(t *testing.T) {
	s := &Files{Dir: filepath.Join(t.TempDir(), "gone")}
	if err := s.Open(context.Background(), runner.RunInfo{}); err == nil {
		t.Error("Open succeeded without a folder")
	}
}

func TestADamagedRunFileIsAnError(t *testing.T) {
	f := newFolder(t).write(runFile, "{")
	if err := WriteHTML(f.dir); err == nil || !strings.Contains(err.Error(), runFile) {
		t.Errorf("got %v, want an error that names %s", err, runFile)
	}
}

func TestSinksByWhereItIsTold(t *testing.T) {
	dir := t.TempDir()
	kinds := func(o Options) (names []string) {
		for _, s := range Sinks(o) {
			switch s := s.(type) {
			case *Files:
				names = append(names, "files")
			case *JSON:
				names = append(names, "json")
			case *Progress:
				names = append(names, "progress")
			case *Lines:
				names = append(names, map[bool]string{true: "quiet", false: "lines"}[s.Quiet])
			}
		}
		return names
	}
	for _, c := range []struct {
		name string
		o    Options
		want string
	}{
		{"a terminal gets a bar", Options{TTY: true}, "progress"},
		{"a file gets lines", Options{}, "lines"},
		{"JSON wins over a terminal", Options{TTY: true, JSON: true}, "json"},
		{"a quiet terminal gets warnings", Options{TTY: true, Quiet: true}, "quiet"},
		{"a run folder gets its files", Options{Dir: dir, JSON: true}, "files json"},
	} {
		if got := strings.Join(kinds(c.o), " "); got != c.want {
			t.Errorf("%s: got %s, want %s", c.name, got, c.want)
		}
	}
}
