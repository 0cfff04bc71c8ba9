package runner_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"trainer/internal/sandbox"
	"trainer/runner"
)

var rewriteJournals = flag.Bool("rewrite-journals", false, "write the journal of a real run as the fixture of the newest format")

// newest is the format that this binary writes.
const newest = 1

// chained makes lines a journal again, whatever was changed in them.
func chained(lines []string) string {
	table, prev, out := crc32.MakeTable(crc32.Castagnoli), "00000000", strings.Builder{}
	for _, l := range lines {
		body, _, _ := strings.Cut(l, `,"crc":"`)
		prev = fmt.Sprintf("%08x", crc32.Checksum([]byte(prev+body), table))
		fmt.Fprintf(&out, "%s,\"crc\":\"%s\"}\n", body, prev)
	}
	return out.String()
}

// writeFixture runs a run in which much goes wrong, and keeps its journal without the names of the machine.
func (b *bench) writeFixture(path, metrics string) {
	b.against(sandbox.Options{}, func(t *testing.T) {
		if b.killed(posts("optim-step"), 2) == nil {
			t.Fatal("the first life was not cut")
		}
		if s, err := b.through(b.server); err != nil || s.Outcome != "complete" {
			t.Fatalf("%s, %v", s.Outcome, err)
		}
		data, err := os.ReadFile(filepath.Join(b.dir, "journal.jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		text := regexp.MustCompile(`"pid":\d+,"host":"[^"]*","boot_id":"[^"]*"`).ReplaceAllString(string(data), `"pid":1,"host":"a-machine","boot_id":"a-boot"`)
		text = regexp.MustCompile(`"folder":\{[^}]*\}`).ReplaceAllString(text, `"folder":{"device":1,"inode":1}`)
		lines, err := os.ReadFile(filepath.Join(b.dir, "metrics.jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		write(t, path, chained(strings.Split(strings.TrimSuffix(text, "\n"), "\n")))
		write(t, metrics, string(lines))
	}, "drop:when=before,on=create-resource,at=1", "drop:when=after,on=create-session,at=2", "fail:on=optim-step,at=4")
}

// TestJournalsOfEveryFormat reads a journal of each format that was ever written, and every part of it that a crash could
// have left: a run that is complete stays complete, with its metrics, and sends nothing.
func TestJournalsOfEveryFormat(t *testing.T) {
	seen := map[string]bool{}
	set := []string{"checkpoint.every=2", "checkpoint.keep_last=1", "checkpoint.inference_every=4"}
	readFormats(t, newBench(t, set...), "", seen)
	readFormats(t, newRollouts(t, set...), ".rollouts", seen)
	readFormats(t, newRollouts(t, append(set, "advantage.importance_cap=2")...), ".importance", seen)
	unfit, l := programmed(t, simpo, append(set, "train.on_non_finite=skip_batch")...)
	l.Call = infinite(1)
	readFormats(t, unfit, ".unfit", seen)
	for kind := range members {
		if !seen[kind] && kind != "salvage" {
			t.Errorf("no record of type %s is in the fixtures", kind)
		}
	}
}

// readFormats reads the journals of one loop, and adds the types of their records to seen.
func readFormats(t *testing.T, b *bench, loop string, seen map[string]bool) {
	t.Helper()
	for format := 1; format <= newest; format++ {
		path := filepath.Join("testdata", "journals", fmt.Sprintf("%d%s.jsonl", format, loop))
		metrics := strings.TrimSuffix(path, ".jsonl") + ".metrics.jsonl"
		if *rewriteJournals && format == newest {
			b.writeFixture(path, metrics)
		}
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		want, err := os.ReadFile(metrics)
		if err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		write(t, filepath.Join(dir, "journal.jsonl"), string(data))
		s, sent, err := b.idle(dir)
		if err != nil || !s.Idle || s.Outcome != "complete" || s.Done != s.Steps || sent != 0 || len(s.Saved) == 0 {
			t.Errorf("format %d: %+v, %v, %d requests", format, s, err, sent)
		}
		if got, err := os.ReadFile(filepath.Join(dir, "metrics.jsonl")); err != nil || !bytes.Equal(got, want) {
			t.Errorf("format %d: metrics\n%s, %v, want\n%s", format, got, err, want)
		}
		everyPart(t, data, seen)
	}
}

// idle is a life that has nothing to do.
func (b *bench) idle(dir string) (s runner.Summary, sent int, err error) {
	b.fresh(func(t *testing.T) {
		line := &wire{next: b.server}
		c := client(line)
		s, err = runner.Run(t.Context(), t.Context(), b.in, b.plan, runner.World{Backend: c, Resources: c, Dir: dir, Version: "test", Sandbox: true, TakeOver: true})
		sent = line.count()
	})
	return s, sent, err
}

// everyPart reads the beginnings of a journal, and notes which types of records it has.
func everyPart(t *testing.T, data []byte, seen map[string]bool) {
	t.Helper()
	dir, upto := t.TempDir(), 0
	for line := range bytes.Lines(data) {
		upto += len(line)
		write(t, filepath.Join(dir, "journal.jsonl"), string(data[:upto]))
		if _, err := runner.ReadHoldings(dir); err != nil {
			t.Errorf("the first %d bytes: %v", upto, err)
		}
		var v struct{ Type string }
		if err := json.Unmarshal(line, &v); err != nil {
			t.Fatal(err)
		}
		seen[v.Type] = true
	}
}

// TestANewerFormatIsRefused: its records may mean what this binary does not know.
func TestANewerFormatIsRefused(t *testing.T) {
	b := newBench(t)
	dir := t.TempDir()
	write(t, filepath.Join(dir, "journal.jsonl"), chained([]string{fmt.Sprintf(`{"n":0,"t":1,"type":"run","format":%d,"run_id":"x","recipe_hash":"","lock_hash":""`, newest+1)}))
	_, sent, err := b.idle(dir)
	if err == nil || !strings.Contains(err.Error(), "use a newer one") || sent != 0 {
		t.Errorf("%v, %d requests", err, sent)
	}
}
