package bench

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"

	"trainer/internal/sandbox/engine"
)

var threads = flag.Int("threads", 2, "threads of the sandbox's engine and of PyTorch in BenchmarkEngine")

// The work of BenchmarkEngine: a batch of 16 sequences of 64 tokens, completions of 64 tokens after a prompt of 16.
const (
	engineRows, engineLength = 16, 64
	enginePrompt, engineNew  = 16, 64
)

// BenchmarkEngine runs the sandbox's engine and the same model in PyTorch (peer.py) in turns on the same machine, a turn of
// each an iteration, and reports tokens a second of each one's best turn, the ratio of the two, the median of the ratios
// of neighbouring turns, and the ratio of the least CPU time, which company on the machine disturbs least where threads do
// not wait for each other: with -threads 1. The two compute the same log-probabilities, or it fails.
func BenchmarkEngine(b *testing.B) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(*threads))
	for _, m := range []struct {
		name   string
		config engine.Config
		lora   int
		form   string
	}{
		{"tiny", engine.Tiny(272), 0, "same"},
		{"tiny-lora", engine.Tiny(272), 16, "same"},
		{"small", engine.Small(272), 0, "same"},
		{"stand-in", engine.Tiny(151936), 0, "same"},
		{"stand-in-dense", engine.Tiny(151936), 0, "dense"},
	} {
		b.Run(m.name, func(b *testing.B) {
			v := newVersus(b, m.config, m.lora, m.form)
			v.measure(b, "train", request{Do: "train"}, v.train)
			v.measure(b, "forward", request{Do: "forward"}, func() { v.model.Logprobs(v.batch, nil) })
			for _, s := range []request{{Temperature: 1, TopP: 1}, {TopP: 1}, {Temperature: 0.7, TopP: 0.9}} {
				if m.lora > 0 || m.form == "same" && m.config.Vocab > 1024 && s.Temperature != 1 {
					continue // a peer has another way there: merged weights, a single level
				}
				for _, s.N = range []int{1, 16, 64} {
					s.Do, s.New, s.Prompt = "sample", engineNew, v.batch.Input[0][:enginePrompt]
					v.measure(b, fmt.Sprintf("sample/t=%v,top_p=%v,n=%d", s.Temperature, s.TopP, s.N), s, func() { v.sample(b, s) })
				}
			}
		})
	}
}

// request is what peer.py is asked.
type request struct {
	Do          string    `json:"do"`
	Input       [][]int32 `json:"input,omitempty"`
	Targets     [][]int32 `json:"targets,omitempty"`
	Prompt      []int32   `json:"prompt,omitempty"`
	N           int       `json:"n,omitempty"`
	New         int       `json:"new,omitempty"`
	Temperature float64   `json:"temperature"`
	TopP        float64   `json:"top_p"`
}

// tokens is how many the request is about.
func (r request) tokens() float64 {
	if r.Do == "sample" {
		return float64(r.N * r.New)
	}
	return engineRows * engineLength
}

// versus is a model of the engine and the same one in a process with PyTorch.
type versus struct {
	model      *engine.Model
	weights    *engine.Weights
	batch      engine.Batch
	derivative [][]float32
	in         io.Writer
	out        *json.Decoder
}

func newVersus(b *testing.B, c engine.Config, rank int, form string) *versus {
	if *python == "" {
		b.Skip("no -python with PyTorch")
	}
	base := engine.NewBase(c, 1)
	var lora *engine.LoRA
	if rank > 0 {
		lora = &engine.LoRA{Rank: rank, Alpha: float64(2 * rank), TrainUnembed: true}
	}
	v := &versus{model: engine.NewModel(base, lora)}
	v.weights = v.model.Publish()
	v.fill(c.Vocab)
	path := filepath.Join(b.TempDir(), "weights.safetensors")
	f, err := os.Create(path)
	if err == nil {
		err = engine.NewModel(base, nil).Save(f, engine.Parts{Weights: true})
	}
	if err == nil {
		err = f.Close()
	}
	if err != nil {
		b.Fatal(err)
	}
	v.start(b, path, "--form", form, "--lora", fmt.Sprint(rank), "--threads", fmt.Sprint(*threads))
	if form == "same" {
		v.check(b)
	}
	ask[int](b, v, request{Do: "batch", Input: v.batch.Input, Targets: v.batch.Targets})
	return v
}

// fill draws the batch; its derivative is that of the mean loss.
func (v *versus) fill(vocabulary int) {
	rng := rand.New(rand.NewPCG(1, 1))
	for range engineRows {
		ids := make([]int32, engineLength+1)
		d := make([]float32, engineLength)
		for t := range ids {
			ids[t] = rng.Int32N(int32(vocabulary))
		}
		for t := range d {
			d[t] = -1.0 / (engineRows * engineLength)
		}
		v.batch.Input, v.batch.Targets = append(v.batch.Input, ids[:engineLength]), append(v.batch.Targets, ids[1:])
		v.derivative = append(v.derivative, d)
	}
}

// start runs peer.py until the benchmark ends.
func (v *versus) start(b *testing.B, weights string, args ...string) {
	run := exec.Command(*python, append([]string{"peer.py", weights}, args...)...)
	run.Stderr = os.Stderr
	in, err := run.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := run.StdoutPipe()
	if err == nil {
		err = run.Start()
	}
	if err != nil {
		b.Fatal(err)
	}
	v.in, v.out = in, json.NewDecoder(bufio.NewReader(out))
	b.Cleanup(func() {
		in.Close()
		if err := run.Wait(); err != nil {
			b.Error(err)
		}
	})
	var version string
	if err := v.out.Decode(&version); err != nil {
		b.Fatalf("peer.py did not start (its interpreter needs torch: pip install torch): %v", err)
	}
	b.Logf("%s, %d threads", version, *threads)
}

func ask[T any](b *testing.B, v *versus, r request) (answer T) {
	b.Helper()
	line, err := json.Marshal(r)
	if err == nil {
		_, err = v.in.Write(append(line, '\n'))
	}
	if err == nil {
		err = v.out.Decode(&answer)
	}
	if err != nil {
		b.Fatalf("peer.py: %v", err)
	}
	return answer
}

// check holds that both have the same model.
func (v *versus) check(b *testing.B) {
	theirs := ask[[][]float64](b, v, request{Do: "check", Input: v.batch.Input, Targets: v.batch.Targets})
	most := 0.0
	for i, row := range v.model.Logprobs(v.batch, nil) {
		for t, l := range row {
			most = max(most, math.Abs(float64(l)-theirs[i][t]))
		}
	}
	if !(most < 1e-4) {
		b.Fatalf("log-probabilities differ by up to %g", most)
	}
	b.Logf("log-probabilities differ by at most %.1e", most)
}

func (v *versus) train() {
	v.model.Logprobs(v.batch, nil)
	v.model.Backward(v.batch, v.derivative)
	v.model.Step(engine.Adam{Rate: 1e-3, Beta1: 0.9, Beta2: 0.95, Eps: 1e-8, ClipNorm: 1})
}

func (v *versus) sample(b *testing.B, r request) {
	_, err := v.weights.Sample(b.Context(), &engine.SampleRequest{Prompts: [][]int32{r.Prompt}, Samples: r.N,
		Sampling: engine.Sampling{MaxTokens: r.New, Temperature: r.Temperature, TopP: r.TopP}})
	if err != nil {
		b.Fatal(err)
	}
}

// spent is the seconds that something took.
type spent [2]float64

const (
	wall = iota
	cpu
)

// measure takes turns; both have one before that is not counted. Threads of PyTorch spin for a while after their turn, so
// ours begins after a pause.
func (v *versus) measure(b *testing.B, name string, r request, f func()) {
	b.Run(name, func(b *testing.B) {
		f()
		ask[spent](b, v, r)
		var our, their [2][]float64
		var ratios []float64
		for b.Loop() {
			time.Sleep(20 * time.Millisecond)
			began, used := time.Now(), cpuSeconds(b)
			f()
			own := spent{time.Since(began).Seconds(), cpuSeconds(b) - used}
			other := ask[spent](b, v, r)
			for i := range own {
				our[i], their[i] = append(our[i], own[i]), append(their[i], other[i])
			}
			ratios = append(ratios, other[wall]/own[wall])
		}
		b.ReportMetric(0, "ns/op")
		b.ReportMetric(r.tokens()/slices.Min(our[wall]), "tokens/s")
		b.ReportMetric(r.tokens()/slices.Min(their[wall]), "torch-tokens/s")
		b.ReportMetric(slices.Min(their[wall])/slices.Min(our[wall]), "ratio")
		b.ReportMetric(median(ratios), "median-ratio")
		b.ReportMetric(slices.Min(their[cpu])/slices.Min(our[cpu]), "cpu-ratio")
	})
}
