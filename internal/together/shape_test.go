package together

import (
	"bytes"
	"context"
	"errors"
	"math"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"

	"trainer/internal/wire"
	"trainer/loss"
	"trainer/runner"
)

// olderRow is what a policy loss reads, of 12 tokens.
func olderRow() loss.Datum {
	d := bigForward(1, 12).Data[0]
	for range d.Input {
		d.OldLogprobs, d.Advantages, d.RefLogprobs = append(d.OldLogprobs, -0.5), append(d.Advantages, 2), append(d.RefLogprobs, -0.25)
	}
	return d
}

// times is v as often as a list has it.
func times(v string, n int) string { return "[" + strings.Repeat(v+",", n-1) + v + "]" }

func TestTheOlderShapeIsSent(t *testing.T) {
	const input = `{"model_input":{"chunks":[{"encoded_text":{"tokens":[100000,100001,100002]}}]},"loss_inputs":{"target_tokens":{"data":[100001,100002,100003],"dtype":"D_TYPE_INT64"},` +
		`"weights":{"data":[1,1,1],"dtype":"D_TYPE_FLOAT32"}`
	row := bigForward(1, 3).Data[0]
	policy := row
	policy.OldLogprobs, policy.Advantages = []float64{-1, -2, -3}, []float64{1, 0, -1}
	tensors := `"advantages":{"data":[1,0,-1],"dtype":"D_TYPE_FLOAT32"},"logprobs":{"data":[-1,-2,-3],"dtype":"D_TYPE_FLOAT32"}`
	for _, x := range []struct {
		name string
		op   runner.Forward
		want string
	}{
		{"cross-entropy", runner.Forward{Loss: &loss.CrossEntropy{}, Data: []loss.Datum{row}, Backward: true},
			`{"loss":{"type":"LOSS_TYPE_CROSS_ENTROPY"},"samples":[` + input + `}}]}`},
		{"a policy loss", runner.Forward{Loss: &loss.DRO{Beta: new(0.5)}, Data: []loss.Datum{policy}, Backward: true},
			`{"loss":{"type":"LOSS_TYPE_DRO","dro_params":{"beta":0.5}},"samples":[` + input + `,"dro_inputs":{` + tensors + `}}}]}`},
		{"what only scores", runner.Forward{Loss: &loss.CrossEntropy{}, Data: []loss.Datum{row}},
			`{"loss":{"type":"LOSS_TYPE_CROSS_ENTROPY"},"samples":[` + input + `}}],"forward_only":true,"return_loss_fn_outputs":true}`},
	} {
		p, err := New(Options{BaseURL: testBase, Shape: wire.April2026}).Join(spec, "s1").Prepare(context.Background(), x.op)
		if err != nil || string(p.Body) != x.want {
			t.Errorf("%s: got %s, %v\nwant %s", x.name, p.Body, err, x.want)
		}
	}
	dppo := runner.Forward{Loss: &loss.DPPO{DeltaLow: 0.1, DeltaHigh: 0.1}, Data: []loss.Datum{policy}, Backward: true}
	_, err := New(Options{BaseURL: testBase, Shape: wire.April2026}).Join(spec, "s1").Prepare(context.Background(), dppo)
	if err == nil || !strings.Contains(err.Error(), "LOSS_TYPE_DPPO is not in the 2026-04 shape") {
		t.Errorf("dppo: got %v", err)
	}
}

// A large body is uploaded in the shape, and its POST has eight numbers of each list.
func TestALargeBodyOfTheOlderShapeIsUploaded(t *testing.T) {
	s := &script{steps: []any{
		says(200, `{"payload_id":"pl","upload_url":"`+testBase+`/blob"}`),
		says(200, `{}`),
	}}
	c := New(Options{BaseURL: testBase, Transport: s, Shape: wire.April2026})
	c.inline = 600
	op := runner.Forward{Loss: &loss.GRPO{ClipLowThreshold: 0.8, ClipHighThreshold: 1.2, Beta: 0.1, AggType: "token_mean", RatioType: "token"}, Data: []loss.Datum{olderRow()}, Backward: true}
	p, err := c.Join(spec, "s1").Prepare(context.Background(), op)
	if err != nil {
		t.Fatal(err)
	}
	body := func(n int, more string) string {
		ids := strings.Split("100000,100001,100002,100003,100004,100005,100006,100007,100008,100009,100010,100011,100012", ",")
		float := func(name, v string) string {
			return `"` + name + `":{"data":` + times(v, n) + `,"dtype":"D_TYPE_FLOAT32"}`
		}
		return `{"loss":{"type":"LOSS_TYPE_GRPO","grpo_params":{"beta":0.1,"agg_type":"GRPO_LOSS_AGGREGATION_TYPE_TOKEN_MEAN","ratio_type":"GRPO_LOSS_RATIO_TYPE_TOKEN","clip_low_threshold":0.8,"clip_high_threshold":1.2}},` +
			`"samples":[{"model_input":{"chunks":[{"encoded_text":{"tokens":[` + strings.Join(ids[:n], ",") + `]}}]},"loss_inputs":{"target_tokens":{"data":[` + strings.Join(ids[1:n+1], ",") + `],"dtype":"D_TYPE_INT64"},` +
			float("weights", "1") + `,"grpo_inputs":{` + float("advantages", "2") + `,` + float("logprobs", "-0.5") + `,` + float("reference_logprobs", "-0.25") + `}}}]` + more + `}`
	}
	if len(s.body) != 2 || s.body[1] != body(12, "") {
		t.Errorf("uploaded %q\nwant %s", s.body, body(12, ""))
	}
	if want := body(8, `,"payload_id":"pl"`); string(p.Body) != want || p.PayloadID != "pl" {
		t.Errorf("got  %s\nwant %s", p.Body, want)
	}
}

// Gradients go out in either shape, whole or uploaded, and what does not fit together does not go out.
func TestGradientsOfALossOfOurs(t *testing.T) {
	d := bigForward(1, 12).Data[0]
	grads := [][]float64{{0, 0, 0, 0, 0, 0, 0, 0, 0.5, 0.5, -1, 2}}
	for _, shape := range []wire.Shape{wire.Current, wire.April2026} {
		s := &script{steps: []any{says(200, `{"payload_id":"pl","upload_url":"`+testBase+`/blob"}`), says(200, `{}`)}}
		c := New(Options{BaseURL: testBase, Transport: s, Shape: shape})
		whole, err := c.Join(spec, "s1").Prepare(context.Background(), runner.Custom{Data: []loss.Datum{d}, Grads: grads})
		if err != nil || whole.PayloadID != "" || whole.Op != runner.OpCustom || whole.Work != 36 {
			t.Fatalf("%v: %+v, %v", shape, whole, err)
		}
		got, err := wire.DecodeCustomForwardBackward(bytes.NewReader(whole.Body), 0)
		want := &wire.CustomForwardBackward{Shape: shape, Samples: []wire.Sample{{Tokens: d.Input, Targets: d.Targets}}, Gradients: grads}
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%v: sent %s, %v", shape, whole.Body, err)
		}
		c.inline = 300
		short, err := c.Join(spec, "s1").Prepare(context.Background(), runner.Custom{Data: []loss.Datum{d}, Grads: grads})
		if err != nil || short.PayloadID != "pl" || len(s.body) != 2 || s.body[1] != string(whole.Body) {
			t.Errorf("%v: uploaded %q, %v", shape, s.body, err)
		}
		if got, err := wire.DecodeCustomForwardBackward(bytes.NewReader(short.Body), 0); err != nil || got.PayloadID != "pl" || len(got.Gradients[0]) != wire.ShortLength {
			t.Errorf("%v: beside the upload %s, %v", shape, short.Body, err)
		}
	}
	for want, op := range map[string]runner.Custom{
		"0 sequences":                            {},
		"1 sequences and gradients for 0":        {Data: []loss.Datum{d}},
		"sequence 0: 1 gradients for 12 targets": {Data: []loss.Datum{d}, Grads: [][]float64{{1}}},
		"gradients[0].data[0]":                   {Data: []loss.Datum{d}, Grads: [][]float64{append([]float64{math.NaN()}, grads[0][1:]...)}},
	} {
		_, err := New(Options{BaseURL: testBase}).Join(spec, "s1").Prepare(context.Background(), op)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

const (
	accepted = `{"id":"o1","status":"TRAINING_OPERATION_STATUS_PENDING"}`
	scored   = `{"id":"o1","status":"TRAINING_OPERATION_STATUS_COMPLETED","output":{"loss":1,"metrics":{},"loss_fn_outputs":[{"logprobs":{"data":[-1,-1,-1],"dtype":"float32"}}]}}`
	bare     = `{"id":"o1","status":"TRAINING_OPERATION_STATUS_COMPLETED","output":{"loss":1,"metrics":{}}}`
	gaveUp   = `{"id":"o1","status":"TRAINING_OPERATION_STATUS_FAILED","error":{"code":"TRAINING_OPERATION_ERROR_CODE_TIMEOUT","message":"late"}}`
)

// A server that does not know forward_only, which the older shape's page does not have, is found out by its first answer.
func TestAServerThatWouldTrainWhatItIsToScoreIsFoundOut(t *testing.T) {
	score := runner.Forward{Loss: &loss.CrossEntropy{}, Data: bigForward(1, 3).Data}
	train := score
	train.Backward = true
	for _, x := range []struct {
		name  string
		shape wire.Shape
		op    runner.Forward
		says  string
		err   string
		sent  int // by Submit
	}{
		{"one that scores", wire.April2026, score, scored, "", 2},
		{"one that does not", wire.April2026, score, bare, "this server knows no forward_only in the 2026-04 shape", 2},
		{"one that fails", wire.April2026, score, gaveUp, "", 2},
		{"one that is asked to train", wire.April2026, train, bare, "", 1},
		{"the current shape", wire.Current, score, bare, "", 1},
	} {
		t.Run(x.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				posts := func(r *http.Request) (*http.Response, error) {
					if r.Method == http.MethodPost {
						return answer(200, accepted), nil
					}
					return answer(200, x.says), nil
				}
				s := &script{steps: []any{posts}}
				session, ctx := New(Options{BaseURL: testBase, Transport: s, Shape: x.shape}).Join(spec, "s1"), context.Background()
				p, err := session.Prepare(ctx, x.op)
				if err != nil {
					t.Fatal(err)
				}
				id, err := session.Submit(ctx, aKey, p)
				if got := ""; err != nil {
					got = err.Error()
					if x.err == "" || !strings.Contains(got, x.err) {
						t.Errorf("got %s, want %q", got, x.err)
					}
					return
				}
				if x.err != "" || len(s.reqs) != x.sent {
					t.Errorf("got no error and %d requests, want %q and %d", len(s.reqs), x.err, x.sent)
				}
				_, err = session.Wait(ctx, p.Op, id)
				var failed *runner.Failed
				if errors.As(err, &failed) != (x.says == gaveUp) || err != nil && failed == nil {
					t.Errorf("waiting: %v", err)
				}
				if x.says != scored {
					return
				}
				if p, err = session.Prepare(ctx, x.op); err != nil || strings.Contains(string(p.Body), "return_loss_fn_outputs") {
					t.Errorf("once that is known: got %s, %v", p.Body, err)
				}
			})
		})
	}
}
