//go:build unix

package bench

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"trainer/internal/together"
	"trainer/loss"
	"trainer/runner"
)

// sizes are the batches of BenchmarkCost: sequences, tokens a sequence.
var sizes = [][2]int{{64, 2048}, {128, 8192}}

// BenchmarkCost repeats one forward-backward on a GPU that takes no time: what is left is the client's cost, to encode,
// upload, submit and hear of the end.
func BenchmarkCost(b *testing.B) {
	for _, size := range sizes {
		*samples, *tokens = size[0], size[1]
		name := fmt.Sprintf("%dx%d", size[0], size[1])
		b.Run(name+"/trainer", func(b *testing.B) { ours(b, serve(b), batch(size[0], size[1])) })
		b.Run(name+"/sdk", func(b *testing.B) { theirs(b, serve(b)) })
	}
}

// batch is random sequences of which the second half is trained: [n] data of [length].
func batch(n, length int) []loss.Datum {
	rng := rand.New(rand.NewPCG(1, 1))
	data := make([]loss.Datum, n)
	for i := range data {
		d := loss.Datum{Input: make([]int32, length), Targets: make([]int32, length), Weights: make([]float64, length)}
		for t := range length {
			d.Input[t], d.Targets[t] = rng.Int32N(151936), rng.Int32N(151936)
			d.Weights[t] = float64(t * 2 / length)
		}
		data[i] = d
	}
	return data
}

func ours(b *testing.B, url string, data []loss.Datum) {
	s := together.New(together.Options{BaseURL: url, Key: "k"}).Join(runner.SessionSpec{}, "ts")
	op := runner.Forward{Loss: &loss.CrossEntropy{}, Data: data, Backward: true}
	n := 0
	one := func() {
		p, err := s.Prepare(b.Context(), op)
		if err != nil {
			b.Fatal(err)
		}
		n++
		id, err := s.Submit(b.Context(), fmt.Sprintf("key-%d", n), p)
		if err == nil {
			_, err = s.Wait(b.Context(), p.Op, id)
		}
		if err != nil {
			b.Fatal(err)
		}
	}
	one() // connections
	control(b, url, settings{})
	var cpu, wall []float64
	for b.Loop() {
		c, t := cpuSeconds(b), time.Now()
		one()
		cpu, wall = append(cpu, cpuSeconds(b)-c), append(wall, time.Since(t).Seconds())
	}
	costs(b, control(b, url, settings{}), cpu, wall)
	b.ReportMetric(peakMiB(), "peak-MiB")
}

func theirs(b *testing.B, url string) {
	const repeats = 5
	var out struct {
		CPU  []float64 `json:"cpu"`
		Wall []float64 `json:"wall"`
		Peak float64   `json:"peak_kib"`
	}
	var t tally
	for b.Loop() {
		control(b, url, settings{})
		if err := json.Unmarshal(sdk(b, url, "cost", "--steps", strconv.Itoa(repeats)), &out); err != nil {
			b.Fatal(err)
		}
		t = control(b, url, settings{})
	}
	costs(b, t, out.CPU, out.Wall)
	b.ReportMetric(out.Peak/1024, "peak-MiB")
}

// costs reports medians, and what an operation sent.
func costs(b *testing.B, t tally, cpu, wall []float64) {
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(1e3*median(cpu), "cpu-ms")
	b.ReportMetric(1e3*median(wall), "wall-ms")
	b.ReportMetric(float64(t.PostBytes+t.PutBytes)/float64(t.Operations), "bytes/operation")
	b.ReportMetric(float64(t.Requests)/float64(t.Operations), "requests/operation")
}

func median(x []float64) float64 { return slices.Sorted(slices.Values(x))[len(x)/2] }

// cpuSeconds is what this process has used, of both kinds.
func cpuSeconds(b *testing.B) float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()).Seconds()
}
