package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"trainer/runner"
)

// runQuickstart trains a part of the recipe that ships, and returns its metrics without what a clock decides, and the
// hashes of the tensors in its checkpoints.
func runQuickstart(t *testing.T, more ...string) (metrics []map[string]float64, checkpoints []string, log []byte) {
	t.Helper()
	runs := t.TempDir()
	var out, err bytes.Buffer
	a := &app{out: &out, err: &err, getenv: func(string) string { return "" }}
	args := []string{"trainer", "run", "../../recipes/quickstart.yaml", "--runs-dir", runs, "--set", "train.num_steps=12", "--set", "eval.every=4", "--set", "checkpoint.every=5"}
	if code := a.main(context.Background(), append(args, more...)); code != 0 {
		t.Fatalf("exit code %d: %s", code, err.String())
	}
	dirs, _ := filepath.Glob(filepath.Join(runs, "*"))
	metrics, merr := runner.ReadMetrics(dirs[0])
	if merr != nil {
		t.Fatal(merr)
	}
	for _, m := range metrics {
		maps.DeleteFunc(m, func(k string, _ float64) bool { return strings.HasPrefix(k, "time/") || strings.HasPrefix(k, "cost/") })
	}
	files, _ := filepath.Glob(filepath.Join(sandboxDir(dirs[0]), "checkpoints", "*"))
	for _, f := range files {
		b := contents(t, f)
		sum := sha256.Sum256(b[8+binary.LittleEndian.Uint64(b):]) // behind the header, which has ids in it
		checkpoints = append(checkpoints, hex.EncodeToString(sum[:]))
	}
	slices.Sort(checkpoints)
	return metrics, checkpoints, contents(t, filepath.Join(sandboxDir(dirs[0]), "server.log"))
}

func contents(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// The quickstart is the same run in both shapes, to the last bit.
func TestTheQuickstartInTheOlderShape(t *testing.T) {
	metrics, checkpoints, log := runQuickstart(t)
	older, olderCheckpoints, olderLog := runQuickstart(t, "--wire", "2026-04")
	if len(metrics) != 13 || !reflect.DeepEqual(metrics, older) { // a line before the first step, for eval.at_start
		t.Errorf("metrics: got\n%v\nwant\n%v", older, metrics)
	}
	if len(checkpoints) != 4 || !slices.Equal(checkpoints, olderCheckpoints) {
		t.Errorf("checkpoints: got %v, want %v", olderCheckpoints, checkpoints)
	}
	current, old := []byte(`"loss_fn_inputs":`), []byte(`"loss_inputs":`)
	if !bytes.Contains(log, current) || bytes.Contains(log, old) || !bytes.Contains(olderLog, old) || bytes.Contains(olderLog, current) {
		t.Error("the requests are not each in their shape")
	}
}
