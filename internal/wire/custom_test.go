package wire

import (
	"bytes"
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"
)

func TestCustomBodyIsReadAndWritten(t *testing.T) {
	const body = `{"samples":[{"model_input":{"chunks":[{"encoded_text":{"tokens":[1,2]}}]},"loss_fn_inputs":{"target_tokens":{"data":[2,3],"dtype":"int64"}}}],` +
		`"gradients":[{"data":[-0.5,0.25],"dtype":"D_TYPE_FLOAT32"}],"payload_id":"p"}`
	want := &CustomForwardBackward{Samples: []Sample{{Tokens: []int32{1, 2}, Targets: []int32{2, 3}}}, Gradients: [][]float64{{-0.5, 0.25}}, PayloadID: "p"}
	for _, text := range []string{
		body,
		strings.Replace(body, `,"dtype":"D_TYPE_FLOAT32"`, ``, 1),
		strings.Replace(body, `D_TYPE_FLOAT32`, `float32`, 1),
		strings.Replace(body, `D_TYPE_FLOAT32`, `D_TYPE_UNSPECIFIED`, 1),
		strings.Replace(body, `"samples"`, `"loss":{"type":1},"new":[{}],"samples"`, 1),
	} {
		got, err := DecodeCustomForwardBackward(strings.NewReader(text), 1)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, %v", text, got, err)
		}
	}
	if got, err := AppendCustomForwardBackward([]byte("x"), want); err != nil || string(got) != "x"+body {
		t.Errorf("got %s, %v", got, err)
	}
	for _, bad := range []float64{math.NaN(), math.Inf(-1), 1e39} {
		got, err := AppendCustomForwardBackward([]byte("kept"), &CustomForwardBackward{Gradients: [][]float64{{}, {0, bad}}})
		if err == nil || !strings.Contains(err.Error(), "gradients[1].data[1]") || string(got) != "kept" {
			t.Errorf("%v: got %s, %v", bad, got, err)
		}
	}
}

func TestCustomBodyIsRefusedByPlace(t *testing.T) {
	for _, c := range []struct{ name, body, want string }{
		{"a bare list", `{"gradients":[[0.1]]}`, `gradients[0]: want '{', found an array`},
		{"a gradient that is null", `{"gradients":[null]}`, `gradients[0]: want '{', found a literal`},
		{"another dtype", `{"gradients":[{"data":[1],"dtype":"D_TYPE_BFLOAT16"}]}`, `gradients[0]: dtype is "D_TYPE_BFLOAT16", want D_TYPE_FLOAT32`},
		{"a number beyond float32", `{"gradients":[{"data":[1,1e39]}]}`, `gradients[0].data[1]: 1e39 is beyond float32`},
		{"text", `{"gradients":[{"data":["nan"]}]}`, `gradients[0].data[0]: want a number, found a string`},
		{"a gradient of nothing", `{"gradients":[{}]}`, `gradients[0].data: is required`},
		{"a dtype that is empty", `{"gradients":[{"data":[],"dtype":""}]}`, `gradients[0].dtype: is empty`},
		{"too many", `{"gradients":[{"data":[]},{"data":[]},{"data":[]}]}`, `gradients[2]: more than 2 gradients`},
		{"too many samples", `{"samples":[{},{},{}]}`, `samples[2]: more than 2 samples`},
	} {
		if _, err := DecodeCustomForwardBackward(strings.NewReader(c.body), 2); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %s", c.name, err, c.want)
		}
	}
}

// FuzzDecodeCustom: what is accepted is JSON, and comes back when it is written again.
func FuzzDecodeCustom(f *testing.F) {
	f.Add([]byte(`{"samples":[{"loss_fn_inputs":{"mask":{"data":[1,0],"dtype":"int64"}}}],"gradients":[{"data":[0.1,-2e-3],"dtype":"D_TYPE_FLOAT32"},{}]}`))
	f.Add([]byte(`{"gradients":[],"payload_id":"p"}`))
	f.Add([]byte(`{"samples":[{"loss_inputs":{"target_tokens":{"data":["1"]},"weights":{"data":[0]}},"routed_experts":{"data":"AQA=","shape":[1,1,1]}}],"gradients":[{"data":[1]}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		got, err := DecodeCustomForwardBackward(iotest.HalfReader(bytes.NewReader(b)), 100)
		if err != nil {
			return
		}
		if !json.Valid(b) {
			t.Fatalf("accepted, but is not JSON: %q", b)
		}
		body, err := AppendCustomForwardBackward(nil, got)
		if err != nil {
			t.Fatalf("cannot be written again: %v", err)
		}
		again, err := DecodeCustomForwardBackward(bytes.NewReader(body), 100)
		if err != nil {
			t.Fatalf("%s: %v", body, err)
		}
		if len(again.Samples) != len(got.Samples) || len(again.Gradients) != len(got.Gradients) || again.PayloadID != got.PayloadID {
			t.Fatalf("got  %+v\nwant %+v", again, got)
		}
		for i, row := range got.Gradients {
			for p, v := range row {
				if again.Gradients[i][p] != v {
					t.Fatalf("gradient %d, %d: got %v, want %v", i, p, again.Gradients[i][p], v)
				}
			}
		}
	})
}
