package wire

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"
)

func TestOutputRoundTrip(t *testing.T) {
	for _, o := range []ForwardBackwardOutput{
		{},
		{Loss: new(0.0), Metrics: map[string]float64{}},
		{Loss: new(-1.25e300), Metrics: map[string]float64{`loss/"q"`: 0.1, "a": -2}, Logprobs: [][]float64{{-0.5, 0}, {}}, PayloadID: "pl_1"},
		{Logprobs: [][]float64{}},
	} {
		b, err := json.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		var got ForwardBackwardOutput
		if err := json.Unmarshal(b, &got); err != nil {
			t.Fatalf("%s: %v", b, err)
		}
		if !reflect.DeepEqual(got, o) {
			t.Errorf("%s\ngot  %+v\nwant %+v", b, got, o)
		}
	}
}

func TestStoredMembersReplaceInlineOnes(t *testing.T) {
	o := ForwardBackwardOutput{Loss: new(1.0), Metrics: map[string]float64{"a": 1}, PayloadID: "pl_1"}
	stored := `{"loss":null,"loss_fn_outputs":[{"tensors":{"entropy":{},"logprobs":{"data":[-0.1],"dtype":"float32"}}}],"metrics":{"b":2,"c":null},"new":[1]}`
	if err := o.Merge(strings.NewReader(stored)); err != nil {
		t.Fatal(err)
	}
	want := ForwardBackwardOutput{Loss: new(1.0), Metrics: map[string]float64{"b": 2}, Logprobs: [][]float64{{float64(float32(-0.1))}}, PayloadID: "pl_1"}
	if !reflect.DeepEqual(o, want) {
		t.Errorf("got  %+v\nwant %+v", o, want)
	}
}

func TestOperationReadsItsEnvelope(t *testing.T) {
	for body, want := range map[string]*Operation[ForwardBackwardOutput]{
		`{"id":"o1","status":"TRAINING_OPERATION_STATUS_RUNNING","output":null,"error":null,"queue":3}`: {ID: "o1", Status: OperationRunning},
		`{"error":{"message":"m","code":"TRAINING_OPERATION_ERROR_CODE_TIMEOUT","at":1},"id":"o2","status":"TRAINING_OPERATION_STATUS_FAILED"}`: {
			ID: "o2", Status: OperationFailed, Error: &OperationError{Code: CodeTimeout, Message: "m"}},
		`{"id":"o3","status":"TRAINING_OPERATION_STATUS_COMPLETED","output":{"loss":2.5}}`: {
			ID: "o3", Status: OperationCompleted, Output: &ForwardBackwardOutput{Loss: new(2.5)}},
	} {
		got, err := DecodeForwardBackwardOperation(iotest.OneByteReader(strings.NewReader(body)))
		if err != nil {
			t.Fatalf("%s: %v", body, err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s\ngot  %+v\nwant %+v", body, got, want)
		}
	}
	for _, body := range []string{`{"id":1}`, `{"output":[]}`, `{"output":{"loss":"1"}}`, `{"output":{"loss_fn_outputs":[{"tensors":[]}]}}`, `<html>`} {
		if op, err := DecodeForwardBackwardOperation(strings.NewReader(body)); err == nil {
			t.Errorf("%s was read as %+v", body, op)
		}
	}
}

// FuzzDecodeOperation: what is accepted is JSON that encoding/json reads alike, and comes back when it is written again.
func FuzzDecodeOperation(f *testing.F) {
	f.Add([]byte(`{"id":"o3","status":"s","output":{"loss":2.5,"metrics":{"a":1},"loss_fn_outputs":[{"tensors":{"logprobs":{"data":[-0.5,0],"dtype":"float32"}}}]}}`))
	f.Add([]byte(`{"id":"o3","status":"s","error":{"code":"c","message":"m"},"output":{"payload_id":"p"}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		got, err := DecodeForwardBackwardOperation(bytes.NewReader(b))
		if err != nil {
			return
		}
		if !json.Valid(b) {
			t.Fatalf("accepted, but is not JSON: %q", b)
		}
		written, err := json.Marshal(got)
		if err != nil {
			t.Fatalf("cannot be written again: %v", err)
		}
		again, err := DecodeForwardBackwardOperation(bytes.NewReader(written))
		if err != nil {
			t.Fatalf("%s: %v", written, err)
		}
		if got.Output != nil {
			for i, row := range got.Output.Logprobs {
				if row == nil { // a row without the tensor is written as an empty one
					got.Output.Logprobs[i] = []float64{}
				}
				for j := range row {
					row[j] += 0 // the sign of a zero is not written
				}
			}
		}
		if !reflect.DeepEqual(again, got) {
			t.Fatalf("got  %+v\nwant %+v", again, got)
		}
	})
}
