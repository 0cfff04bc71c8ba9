package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"
)

func TestWeightsAreShortestFloat32(t *testing.T) {
	f := &ForwardBackward{Loss: LossConfig{Type: LossCrossEntropy}, Samples: []Sample{{
		Tokens: []int32{0, math.MaxInt32, -7}, Targets: []int32{151643},
		Weights: []float64{0, math.Copysign(0, -1), 1, 0.5, 0.1, 1.0 / 3, 1e-45, math.MaxFloat32, 1e-9},
	}}}
	got, err := AppendForwardBackward([]byte("x"), f)
	if err != nil {
		t.Fatal(err)
	}
	want := `x{"loss":{"type":"LOSS_TYPE_CROSS_ENTROPY"},"samples":[{"model_input":{"chunks":[{"encoded_text":{"tokens":[0,2147483647,-7]}}]},` +
		`"loss_fn_inputs":{"target_tokens":{"data":[151643],"dtype":"int64"},` +
		`"weights":{"data":[0,0,1,0.5,0.1,0.33333334,1e-45,3.4028235e+38,1e-09],"dtype":"float32"}}}]}`
	if string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestWhatIsNoFloat32IsRefusedByPlace(t *testing.T) {
	for _, bad := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), 1e39, math.MaxFloat64} {
		f := &ForwardBackward{Samples: []Sample{{}, {Weights: []float64{1, 1, bad}}}}
		got, err := AppendForwardBackward([]byte("kept"), f)
		if err == nil || !strings.Contains(err.Error(), "samples[1].loss_fn_inputs.weights[2]") {
			t.Errorf("%v: error %v does not name the place", bad, err)
		}
		if string(got) != "kept" {
			t.Errorf("%v: dst came back as %q", bad, got)
		}
		if _, err := AppendForwardBackwardOutput(nil, &ForwardBackwardOutput{Logprobs: [][]float64{{bad}}}); err == nil {
			t.Errorf("%v: an output with it was written", bad)
		}
	}
	if _, err := AppendForwardBackwardOutput(nil, &ForwardBackwardOutput{Loss: new(math.Inf(1))}); err == nil {
		t.Error("an infinite loss was written")
	}
	if _, err := AppendForwardBackwardOutput(nil, &ForwardBackwardOutput{Metrics: map[string]float64{"m": math.NaN()}}); err == nil {
		t.Error("a metric that is NaN was written")
	}
}

// Any float32 comes back as it went, and the text is what encoding/json reads as that float32.
func TestFloat32RoundTrip(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	weights := make([]float64, 20000)
	for i := range weights {
		for weights[i] = math.NaN(); !fitsFloat32(weights[i]); {
			weights[i] = float64(math.Float32frombits(rng.Uint32()))
		}
		if i%2 == 0 {
			weights[i] = float64(rng.Float32())
		}
	}
	in := &ForwardBackward{Samples: []Sample{{Tokens: []int32{}, Targets: []int32{}, Weights: weights}}}
	body, err := AppendForwardBackward(nil, in)
	if err != nil {
		t.Fatal(err)
	}
	out, err := DecodeForwardBackward(bytes.NewReader(body), 0)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(out, in) {
		t.Error("the body did not come back as it went")
	}
	var std struct {
		Samples []struct {
			Inputs struct {
				Weights struct{ Data []float32 }
			} `json:"loss_fn_inputs"`
		}
	}
	if err := json.Unmarshal(body, &std); err != nil {
		t.Fatal(err)
	}
	for i, w := range std.Samples[0].Inputs.Weights.Data {
		if float64(w) != weights[i] {
			t.Fatalf("weight %d: encoding/json reads %v, want %v", i, w, weights[i])
		}
	}
}

// wrapped is a body with one sample whose loss_fn_inputs are given.
func wrapped(inputs string) string {
	return `{"loss":{"type":"L"},"samples":[{"model_input":{"chunks":[]},"loss_fn_inputs":` + inputs + `}]}`
}

func TestDecodeAcceptsEverySpelling(t *testing.T) {
	plain := &ForwardBackward{Loss: LossConfig{Type: "L"}, Samples: []Sample{{Tokens: []int32{1, 2, 3}, Targets: []int32{2, 3, 4}, Weights: []float64{0, 1, 0.5}}}}
	flags := *plain
	flags.ForwardOnly, flags.ReturnOutputs, flags.PayloadID = true, true, "p\u00e9\n😀"
	for _, c := range []struct {
		name, body string
		want       *ForwardBackward
	}{
		{"white space, unknown members and any order",
			" {\n\t\"x\":[{\"y\":[null,true,\"\\u0041\"]},-1.5e+3], \"samples\" : [ { \"z\":{}, \"loss_fn_inputs\":{\"future\":{\"data\":[\"no\"]}," +
				"\"weights\":{\"dtype\":\"float32\",\"shape\":[3],\"data\":[0 , 1.0,5e-1 ]},\"target_tokens\":{\"data\":[2,3,4],\"dtype\":\"int64\"}}," +
				"\"model_input\":{\"chunks\":[{\"encoded_text\":{\"tokens\":[1,2,3]}}]}}],\"loss\":{\"type\":\"L\",\"l_params\":{\"a\":1}}}\r\n", plain},
		{"tokens as strings, in several chunks, one of them empty",
			`{"loss":{"type":"L"},"samples":[{"model_input":{"chunks":[{"encoded_text":{"tokens":["1"]}},{"encoded_text":{"tokens":[]}},{"encoded_text":{"tokens":[2,"3"]}}]},` +
				`"loss_fn_inputs":{"target_tokens":{"data":[2,3,4],"dtype":"int64"},"weights":{"data":[0,1,0.5],"dtype":"float32"}}}]}`, plain},
		{"flags and a payload id with escapes",
			`{"loss":{"type":"L"},"samples":[{"model_input":{"chunks":[{"encoded_text":{"tokens":[1,2,3]}}]},"loss_fn_inputs":{"target_tokens":` +
				`{"data":[2,3,4],"dtype":"int64"},"weights":{"data":[0,1,0.5],"dtype":"float32"}}}],"forward_only":true,"return_loss_fn_outputs":true,"payload_id":"p\u00e9\n\ud83d\ude00"}`, &flags},
		{"null is absent", `{"loss":null,"samples":null,"forward_only":null,"return_loss_fn_outputs":null,"payload_id":null}`, &ForwardBackward{}},
		{"null inside a sample", `{"samples":[{"model_input":null,"loss_fn_inputs":{"weights":null,"target_tokens":null}}]}`, &ForwardBackward{Samples: []Sample{{}}}},
		{"weights as int64", wrapped(`{"weights":{"data":[0,1],"dtype":"int64"}}`),
			&ForwardBackward{Loss: LossConfig{Type: "L"}, Samples: []Sample{{Tokens: []int32{}, Weights: []float64{0, 1}}}}},
		{"of a member that stands twice the last counts", wrapped(`{"target_tokens":{"data":[9,9],"data":[1],"dtype":"int64"}}`),
			&ForwardBackward{Loss: LossConfig{Type: "L"}, Samples: []Sample{{Tokens: []int32{}, Targets: []int32{1}}}}},
		{"values are rounded to float32", wrapped(`{"weights":{"data":[0.10000000149,16777217],"dtype":"float32"}}`),
			&ForwardBackward{Loss: LossConfig{Type: "L"}, Samples: []Sample{{Tokens: []int32{}, Weights: []float64{float64(float32(0.1)), 16777216}}}}},
		{"an empty object", `{}`, &ForwardBackward{}},
	} {
		for name, r := range map[string]io.Reader{
			"at once": strings.NewReader(c.body), "byte by byte": iotest.OneByteReader(strings.NewReader(c.body)),
			"with the end in the last read": iotest.DataErrReader(strings.NewReader(c.body)),
		} {
			got, err := DecodeForwardBackward(r, 0)
			if err != nil {
				t.Errorf("%s, %s: %v", c.name, name, err)
				continue
			}
			if !reflect.DeepEqual(got, c.want) {
				t.Errorf("%s, %s:\ngot  %+v\nwant %+v", c.name, name, got, c.want)
			}
		}
	}
}

func TestDecodeRefusesByPlace(t *testing.T) {
	for _, c := range []struct{ name, body, want string }{
		{"nothing", ``, `want '{', found the end of the input`},
		{"an array", `[]`, `want '{', found an array`},
		{"null", `null`, `want '{', found a literal`},
		{"something behind the body", `{}{}`, `want the end of the input, found an object`},
		{"a zero byte behind the body", "{}\x00", `want the end of the input`},
		{"a cut body", `{"samples":[{`, `found the end of the input`},
		{"a cut string", `{"sam`, `a string has no end`},
		{"a trailing comma in an object", `{"a":1,}`, `want a member's name, found '}'`},
		{"a trailing comma in an array", `{"a":[1,]}`, `want a value, found ']'`},
		{"a missing comma", `{"a":1 "b":2}`, `want ',' or '}', found a string`},
		{"a missing colon", `{"a" 1}`, `want ':', found a number`},
		{"a misspelt literal", `{"a":nul}`, `want null`},
		{"samples that are an object", `{"samples":{}}`, `samples: want '[', found an object`},
		{"a flag that is a string", `{"forward_only":"true"}`, `forward_only: want true or false, found a string`},
		{"a payload id that is a number", `{"payload_id":1}`, `payload_id: want a string, found a number`},
		{"a token that is a fraction", `{"samples":[{"model_input":{"chunks":[{"encoded_text":{"tokens":[1,2.0]}}]}}]}`,
			`samples[0].model_input.chunks[0].encoded_text.tokens[1]: 2.0 is not a token id`},
		{"a token beyond int32", `{"samples":[{"model_input":{"chunks":[{"encoded_text":{"tokens":[2147483648]}}]}}]}`, `tokens[0]: 2147483648 is not a token id`},
		{"a token with an exponent", `{"samples":[{"model_input":{"chunks":[{"encoded_text":{"tokens":[1e3]}}]}}]}`, `1e3 is not a token id`},
		{"a quoted token beyond int32", `{"samples":[{"model_input":{"chunks":[{"encoded_text":{"tokens":["2147483648"]}}]}}]}`, `is not a token id`},
		{"a quoted token with blanks", `{"samples":[{"model_input":{"chunks":[{"encoded_text":{"tokens":[" 1"]}}]}}]}`, `is not a token id`},
		{"a quoted target", wrapped(`{"target_tokens":{"data":["1"],"dtype":"int64"}}`), `target_tokens.data[0]: want a number, found a string`},
		{"targets as float32", wrapped(`{"target_tokens":{"data":[1],"dtype":"float32"}}`), `target_tokens: dtype is "float32", want int64`},
		{"targets without a dtype", wrapped(`{"target_tokens":{"data":[1]}}`), `target_tokens: dtype is "", want int64`},
		{"fractions under int64", wrapped(`{"weights":{"data":[0.5],"dtype":"int64"}}`), `weights: dtype is int64, but a value is no integer`},
		{"weights of another dtype", wrapped(`{"weights":{"data":[1],"dtype":"bfloat16"}}`), `weights: dtype is "bfloat16", want float32 or int64`},
		{"a weight beyond float32", wrapped(`{"weights":{"data":[1,1e39],"dtype":"float32"}}`), `weights.data[1]: 1e39 is beyond float32`},
		{"a weight beyond a double", wrapped(`{"weights":{"data":[1e999],"dtype":"float32"}}`), `weights.data[0]: 1e999 is beyond float32`},
		{"NaN", wrapped(`{"weights":{"data":[NaN],"dtype":"float32"}}`), `weights.data[0]: want a number, found 'N'`},
		{"a plus sign", `{"a":+1}`, `want a value, found '+'`},
		{"a leading zero", `{"a":01}`, `superfluous zero`},
		{"a bare minus", `{"a":-}`, `a minus sign without digits`},
		{"a number that ends in its point", `{"a":1.}`, `ends in its point`},
		{"a number that ends in its exponent", `{"a":1e+}`, `ends in its exponent`},
		{"a number without end", `{"a":` + strings.Repeat("1", 600) + `}`, `longer than 512 bytes`},
		{"a control character", "{\"a\":\"\x01\"}", `a control character in a string`},
		{"an escape that is none", `{"a":"\x"}`, `is not an escape`},
		{"half an escape", `{"a":"\u12g4"}`, `four hexadecimal digits`},
		{"bytes that are not UTF-8", "{\"a\":\"\xff\"}", `a string is not UTF-8`},
		{"deep nesting", `{"a":` + strings.Repeat("[", 100000), `nested deeper than 64`},
		{"a string without bound", `{"a":"` + strings.Repeat("x", longestString+10) + `"}`, `longer than 1048576 bytes`},
		{"too many samples", `{"samples":[{},{},{},{}]}`, `samples[3]: more than 3 samples`},
	} {
		_, err := DecodeForwardBackward(strings.NewReader(c.body), 3)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one with %s", c.name, err, c.want)
		}
	}
}

func TestReadErrorsComeThrough(t *testing.T) {
	broken := fmt.Errorf("the line is down")
	_, err := DecodeForwardBackward(io.MultiReader(strings.NewReader(`{"samples":[`), iotest.ErrReader(broken)), 0)
	if err == nil || !strings.Contains(err.Error(), "the line is down") {
		t.Errorf("got %v", err)
	}
}

// FuzzDecodeForwardBackward: what is accepted is JSON, and comes back when it is written again.
func FuzzDecodeForwardBackward(f *testing.F) {
	f.Add([]byte(wrapped(`{"target_tokens":{"data":[1,-2],"dtype":"int64"},"weights":{"data":[0.25,1e-3,7],"dtype":"float32"}}`)))
	f.Add([]byte(`{"samples":[{"model_input":{"chunks":[{"encoded_text":{"tokens":["1",2]}}]}}],"forward_only":true,"payload_id":"\ud83d\ude00\ud83d"}`))
	f.Add([]byte(`{"loss":{"type":"LOSS_TYPE_GRPO","grpo_params":{"beta":1e-2,"agg_type":"A"},"dro_params":{}},"samples":[{"loss_fn_inputs":{"mask":{"data":[1],"dtype":"int64"},"advantages":{"data":[-0.5],"dtype":"float32"}}}]}`))
	f.Add([]byte(`{"x":{"y":[1,2,{"z":null}]},"loss":{"type":"\\\"\u0000"}}`))
	f.Add([]byte(`{"a":-0.0e-0,"b":[[[[]]]]}`))
	f.Add([]byte(older(LossGRPO, `,"weights":{"data":[0,1],"dtype":"D_TYPE_INT64"},"grpo_inputs":`+triple, `,"routed_experts":{"data":"AQACAAMABAA=","shape":["2",2,1]}`)))
	f.Add([]byte(older(LossCrossEntropy, `,"weights":{"data":[0.1,1],"dtype":"D_TYPE_BFLOAT16"}`, `,"routed_experts_key":null`)))
	f.Add([]byte(`{"loss":{"type":"LOSS_TYPE_DRO"},"samples":[{"loss_inputs":{"dro_inputs":{}}},{"loss_fn_inputs":null,"loss_inputs":{"dro_inputs":{"logprobs":{}}}}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		got, err := DecodeForwardBackward(iotest.HalfReader(bytes.NewReader(b)), 100)
		if err != nil {
			return
		}
		if !json.Valid(b) {
			t.Fatalf("accepted, but is not JSON: %q", b)
		}
		body, err := AppendForwardBackward(nil, got)
		if err != nil {
			t.Fatalf("cannot be written again: %v", err)
		}
		again, err := DecodeForwardBackward(bytes.NewReader(body), 100)
		if err != nil {
			t.Fatalf("%s: %v", body, err)
		}
		if got.Samples == nil { // an absent list is written as an empty one
			got.Samples = []Sample{}
		}
		for i := range got.Samples {
			if got.Samples[i].Tokens == nil {
				got.Samples[i].Tokens = []int32{}
			}
		}
		if !reflect.DeepEqual(again, got) {
			t.Fatalf("got  %+v\nwant %+v", again, got)
		}
	})
}

// FuzzNumber: the fast path reads what strconv reads.
func FuzzNumber(f *testing.F) {
	for _, s := range []string{"0", "-0", "1.5", "123456789012345", "1e22", "1e23", "4.9e-324", "0.1", "9007199254740993", "-1e-22", "1e400"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		sc := newScanner(strings.NewReader(s))
		got := sc.double()
		sc.end()
		var want float64
		err := json.Unmarshal([]byte(s), &want)
		if len(s) < longestNumber && (sc.err == nil) != (err == nil) {
			if strings.TrimSpace(s) == "null" {
				return
			}
			t.Fatalf("%q: our error %v, encoding/json's %v", s, sc.err, err)
		}
		if sc.err == nil && math.Float64bits(got) != math.Float64bits(want) {
			t.Fatalf("%q: got %v, want %v", s, got, want)
		}
	})
}

// A large body is given its room at once: grown by halves it would be copied again and again.
func TestABodyIsGrownOnce(t *testing.T) {
	f := &ForwardBackward{Loss: LossConfig{Type: LossCrossEntropy}}
	for range 64 {
		x := Sample{Tokens: make([]int32, 512), Targets: make([]int32, 512), Weights: make([]float64, 512)}
		for t := range x.Tokens {
			x.Tokens[t], x.Targets[t], x.Weights[t] = 151935, 151935, 1
		}
		f.Samples = append(f.Samples, x)
	}
	got := testing.AllocsPerRun(10, func() {
		if _, err := AppendForwardBackward(nil, f); err != nil {
			t.Fatal(err)
		}
	})
	if got > 2 { // one, and one more that the race detector keeps the compiler from leaving out; growing makes a dozen
		t.Errorf("%v allocations for one body, want 1", got)
	}
}
