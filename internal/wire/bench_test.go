package wire

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"testing"
)

// standard is the same body for encoding/json.
type standard struct {
	Loss    standardLoss     `json:"loss"`
	Samples []standardSample `json:"samples"`
}

type standardLoss struct {
	Type LossType `json:"type"`
}

type standardSample struct {
	ModelInput struct {
		Chunks []standardChunk `json:"chunks"`
	} `json:"model_input"`
	Inputs struct {
		Targets standardTensor[int32]   `json:"target_tokens"`
		Weights standardTensor[float32] `json:"weights"`
	} `json:"loss_fn_inputs"`
}

type standardChunk struct {
	EncodedText struct {
		Tokens []int32 `json:"tokens"`
	} `json:"encoded_text"`
}

type standardTensor[T any] struct {
	Data  []T    `json:"data"`
	DType string `json:"dtype"`
}

// batch is 64 sequences of 2,048 tokens, a quarter of the weights random, in both forms.
func batch() (*ForwardBackward, *standard) {
	rng := rand.New(rand.NewPCG(3, 4))
	f := &ForwardBackward{Loss: LossConfig{Type: LossCrossEntropy}}
	s := &standard{Loss: standardLoss{f.Loss.Type}}
	for range 64 {
		x := Sample{Tokens: make([]int32, 2048), Targets: make([]int32, 2048), Weights: make([]float64, 2048)}
		var y standardSample
		for t := range x.Tokens {
			x.Tokens[t], x.Targets[t] = rng.Int32N(151936), rng.Int32N(151936)
			switch t % 4 {
			case 0:
				x.Weights[t] = float64(rng.Float32())
			case 1, 2:
				x.Weights[t] = 1
			}
			y.Inputs.Weights.Data = append(y.Inputs.Weights.Data, float32(x.Weights[t]))
		}
		y.ModelInput.Chunks = make([]standardChunk, 1)
		y.ModelInput.Chunks[0].EncodedText.Tokens = x.Tokens
		y.Inputs.Targets = standardTensor[int32]{x.Targets, "int64"}
		y.Inputs.Weights.DType = "float32"
		f.Samples, s.Samples = append(f.Samples, x), append(s.Samples, y)
	}
	return f, s
}

func BenchmarkEncode(b *testing.B) {
	f, s := batch()
	buf, err := AppendForwardBackward(nil, f)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("append", func(b *testing.B) {
		b.ReportAllocs()
		b.SetBytes(int64(len(buf)))
		for b.Loop() {
			if buf, err = AppendForwardBackward(buf[:0], f); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("encoding_json", func(b *testing.B) {
		b.ReportAllocs()
		b.SetBytes(int64(len(buf)))
		for b.Loop() {
			if _, err := json.Marshal(s); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkDecode(b *testing.B) {
	f, _ := batch()
	body, err := AppendForwardBackward(nil, f)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("scan", func(b *testing.B) {
		b.ReportAllocs()
		b.SetBytes(int64(len(body)))
		for b.Loop() {
			if _, err := DecodeForwardBackward(bytes.NewReader(body), 0); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("encoding_json", func(b *testing.B) {
		b.ReportAllocs()
		b.SetBytes(int64(len(body)))
		for b.Loop() {
			var s standard
			if err := json.Unmarshal(body, &s); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// A second body into the same buffer costs no allocation: the path that a run takes at each step.
func TestEncodeAllocatesNothing(t *testing.T) {
	f, _ := batch()
	buf, err := AppendForwardBackward(nil, f)
	if err != nil {
		t.Fatal(err)
	}
	if n := testing.AllocsPerRun(20, func() { buf, _ = AppendForwardBackward(buf[:0], f) }); n != 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}
