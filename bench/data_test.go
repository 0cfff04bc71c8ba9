package bench

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"trainer/internal/hub"
	"trainer/recipe"
	"trainer/runner"
)

var megabytes = flag.Int("megabytes", 100, "how large the dataset of BenchmarkValidate is")

// BenchmarkValidate reads, renders, masks and checks every row of a large file of conversations, as trainer validate does.
// Run it alone: peak-MiB is of the process.
func BenchmarkValidate(b *testing.B) {
	dir := b.TempDir()
	size := conversations(b, filepath.Join(dir, "rows.jsonl"))
	path := filepath.Join(dir, "r.yaml")
	text := fmt.Sprintf("base_model: %s\nloss: {type: cross_entropy}\ndataset: {train: rows.jsonl, max_length: 65536}\n", model)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		b.Fatal(err)
	}
	r, err := recipe.Load(path)
	if err != nil {
		b.Fatal(err)
	}
	var took time.Duration
	for b.Loop() {
		start := time.Now()
		if _, err := runner.Open(b.Context(), r, &hub.Hub{}, true); err != nil {
			b.Fatal(err)
		}
		took += time.Since(start)
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(size)*float64(b.N)/1e6/took.Seconds(), "MB/s")
	b.ReportMetric(peakMiB(), "peak-MiB")
}

// conversations writes rows of one or two turns each way, and returns their bytes.
func conversations(b *testing.B, path string) (size int) {
	b.Helper()
	rng := rand.New(rand.NewPCG(2, 2))
	f, err := os.Create(path)
	if err != nil {
		b.Fatal(err)
	}
	w := bufio.NewWriter(f)
	type message struct {
		Role    string `json:"role"`
		Content string `json:"content"`
	}
	for size < *megabytes*1e6 {
		var row struct {
			Messages []message `json:"messages"`
		}
		for range 1 + rng.IntN(2) {
			row.Messages = append(row.Messages, message{"user", prose(rng, 5+rng.IntN(80))}, message{"assistant", prose(rng, 10+rng.IntN(200))})
		}
		line, err := json.Marshal(row)
		if err != nil {
			b.Fatal(err)
		}
		n, err := w.Write(append(line, '\n'))
		if err != nil {
			b.Fatal(err)
		}
		size += n
	}
	if err := w.Flush(); err != nil {
		b.Fatal(err)
	}
	if err := f.Close(); err != nil {
		b.Fatal(err)
	}
	return size
}

// prose is n words, some of them with what JSON escapes or UTF-8 spells in several bytes.
func prose(rng *rand.Rand, n int) string {
	words := strings.Fields(`the of and to in is that it for as with they at be this have from one "had" but não all were when we
there can an your which 你好 said if do will each about how up out them then`)
	var t strings.Builder
	for range n {
		t.WriteString(words[rng.IntN(len(words))] + " ")
	}
	return t.String() + "\n"
}

// peakMiB is the most memory that this process has held, where the system tells; else what the runtime holds.
func peakMiB() float64 {
	if text, err := os.ReadFile("/proc/self/status"); err == nil {
		for line := range strings.Lines(string(text)) {
			if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
				kib, _ := strconv.ParseFloat(strings.Fields(rest)[0], 64)
				return kib / 1024
			}
		}
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.Sys) / (1 << 20)
}
