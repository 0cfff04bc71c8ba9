package bench

import (
	"bufio"
	"encoding/json"
	"flag"
	"os"
	"runtime"
	"testing"

	"trainer/internal/tokenizer"
)

var (
	tokenizerPath = flag.String("tokenizer", "", "the tokenizer that BenchmarkTokenizer opens; skipped without one")
	stringsPath   = flag.String("strings", "", "what it encodes: a JSON string a line")
)

// BenchmarkTokenizer opens a tokenizer and encodes every string of a file on one core, with offsets and without.
// bench/encode.py runs it beside the library of Hugging Face.
func BenchmarkTokenizer(b *testing.B) {
	if *tokenizerPath == "" {
		b.Skip("-tokenizer names none")
	}
	texts, size := stringsOf(b)
	before, start := heap(), cpuSeconds(b)
	tok, err := tokenizer.Open(*tokenizerPath)
	if err != nil {
		b.Fatal(err)
	}
	load := cpuSeconds(b) - start
	after := heap()
	var with, without float64
	tokens := 0
	for b.Loop() {
		start := cpuSeconds(b)
		for _, text := range texts {
			tok.EncodeControl(text)
		}
		with += cpuSeconds(b) - start
		start = cpuSeconds(b)
		var ids []int32
		for _, text := range texts {
			ids = tok.Append(ids[:0], text)
			tokens += len(ids)
		}
		without += cpuSeconds(b) - start
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(1e3*load, "load-ms")
	b.ReportMetric(float64(after-before)/(1<<20), "held-MiB")
	b.ReportMetric(float64(size)*float64(b.N)/1e6/with, "MB/s")
	b.ReportMetric(float64(size)*float64(b.N)/1e6/without, "append-MB/s")
	b.ReportMetric(float64(tokens)/float64(b.N), "tokens")
	runtime.KeepAlive(tok)
}

// heap is what lives on it.
func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// stringsOf reads -strings; size is in bytes.
func stringsOf(b *testing.B) (texts []string, size int) {
	b.Helper()
	f, err := os.Open(*stringsPath)
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		var text string
		if err := json.Unmarshal(lines.Bytes(), &text); err != nil {
			b.Fatal(err)
		}
		texts, size = append(texts, text), size+len(text)
	}
	if err := lines.Err(); err != nil {
		b.Fatal(err)
	}
	return texts, size
}
