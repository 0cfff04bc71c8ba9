package runner_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	api "trainer/internal/wire"
	"trainer/runner"
)

// likeliestRows say what a teacher finds likeliest, of some tokens more than of others.
const likeliestRows = `{"tokens":[256,99,97,116,63],"teacher_topk":[null,[[99,-0.3],[100,-1.5],[101,-4]],[[97,-0.1]],[[116,-0.9],[112,-0.9]],null]}
{"tokens":[256,100,111,103],"teacher_topk":[null,null,[[111,-0.2],[105,-2]],[[103,-0.01],[116,-5]]]}
{"tokens":[256,99,111,119],"weights":[0,1,0,0.5],"teacher_topk":[null,[[99,-1],[98,-1.2],[100,-1.5],[101,-3]],null,[[119,-0.5],[112,-1]]]}
{"tokens":[256,98,101,101],"teacher_topk":[null,[[98,-0.4],[99,-1.4]],[[101,-0.05]],[[101,-0.6],[114,-1]]]}
`

// softRows is a bench of rows that a teacher's likeliest tokens are learnt from.
func softRows(t *testing.T, set ...string) *bench {
	text := "base_model: sandbox/bytes-tiny\nloss: {type: forward_kl, params: {top_k: 3}}\nlora_config: {rank: 8, alpha: 16}\n" +
		"dataset: {train: rows.jsonl, validation: rows.jsonl}\noptimizer: {learning_rate: 3.0e-3}\n" +
		"train: {batch_size: 2, epochs: 2}\neval: {every: 2, at_start: true}\ncheckpoint: {every: 3}\n"
	return benchOf(t, map[string]string{"r.yaml": text, "rows.jsonl": likeliestRows}, set...)
}

// newSoftly is a bench of a student that learns another model's likeliest tokens.
func newSoftly(t *testing.T, set ...string) *bench {
	return newDistil(t, append([]string{"loss.type=forward_kl", "loss.params.top_k=3", "loss.params.skip_first=1", "rollout.group_size=2", "train.gradient_accumulation=2"}, set...)...)
}

// TestKillForwardKLAtRequests cuts runs of forward_kl at their requests, resumes them, and compares them with the unbroken ones: the
// same losses and divergences, the same weights to the bit, and nothing left running.
func TestKillForwardKLAtRequests(t *testing.T) {
	for _, c := range []struct {
		name   string
		stride int
		of     func(t *testing.T, set ...string) *bench
	}{
		{"rows", 5, softRows},
		{"a teacher that is asked", 23, newSoftly},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := c.of(t)
			steps := b.sameWherever(c.stride, 4, b.student)
			if !strings.Contains(steps, "distill/forward_kl") || !strings.Contains(steps, "eval/distill/forward_kl") {
				t.Errorf("no divergence is measured:\n%s", steps)
			}
		})
	}
}

// student is the weights of the newest session that is not a teacher's.
func (b *bench) student() string {
	b.t.Helper()
	list, err := client(b.server).Sessions(context.Background(), "")
	if err != nil {
		b.t.Fatal(err)
	}
	for _, s := range list {
		if strings.Contains(s.DisplayName, "/teacher/") {
			continue
		}
		hash, err := b.server.WeightsHash(s.ID)
		if err != nil {
			b.t.Fatal(err)
		}
		return fmt.Sprintf("%x", hash)
	}
	b.t.Fatal("the student has no session")
	return ""
}

// TestCopiesAreTheSameHoweverTheyAreCut: a step has all copies of its rows, whichever request carries them and in either shape.
func TestCopiesAreTheSameHoweverTheyAreCut(t *testing.T) {
	for _, reduction := range []string{"token_mean", "sequence_mean"} {
		set := "loss.reduction=" + reduction
		whole := softRows(t, set, "train.batch_size=4", "train.gradient_accumulation=1").unbroken()
		for _, n := range []string{"2", "3", "4"} {
			b := softRows(t, set, "train.batch_size=4", "train.gradient_accumulation="+n)
			near(t, reduction+", in "+n, withoutAPI(b.unbroken()), withoutAPI(whole))
		}
		older := softRows(t, set, "train.batch_size=4")
		older.shape = api.April2026
		near(t, reduction+", in the older shape", withoutAPI(older.unbroken()), withoutAPI(whole))
	}
}

// withoutAPI leaves out what the service says of each request.
func withoutAPI(steps string) string {
	var out []string
	for _, word := range strings.Fields(steps) {
		if !strings.HasPrefix(strings.TrimPrefix(word, "map["), "api/") {
			out = append(out, word)
		}
	}
	return strings.Join(out, " ")
}

// TestATeacherIsAskedOnce: one question for a request's worth of samples, its answer on the disk before what trains on it is sent,
// and none in a later life of what is stored.
func TestATeacherIsAskedOnce(t *testing.T) {
	b := newSoftly(t, "train.num_steps=2", "train.epochs=null", "eval.every=null", "eval.at_start=false", "eval.at_end=false")
	b.fresh(func(t *testing.T) {
		unstored := 0
		line := &ahead{next: b.server, operation: "forward-backward", at: 3, do: func() { // the first two are the witness
			if !strings.Contains(b.sampleFile(t, 1), `"teacher_topk":[[[`) {
				unstored++
			}
		}}
		count := &questions{next: line}
		if _, err := b.through(count); err != nil {
			t.Fatal(err)
		}
		if unstored > 0 || count.n != 2 {
			t.Errorf("%d questions for 2 batches, %d of them trained on before they were stored", count.n, unstored)
		}
	})
}

// questions counts the samples that are asked for the likeliest tokens.
type questions struct {
	next http.RoundTripper
	n    int
}

func (q *questions) RoundTrip(r *http.Request) (*http.Response, error) {
	if posts("sample")(r) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		sent, err := api.DecodeSample(bytes.NewReader(body), 0)
		if err != nil {
			return nil, err
		}
		if sent.TopPromptLogprobs == 3 && sent.PromptLogprobs && *sent.Params.MaxTokens == 1 {
			q.n++
		}
	}
	return q.next.RoundTrip(r)
}

// sampleFile is what is stored of a rollout batch, from 1.
func (b *bench) sampleFile(t *testing.T, batch int) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(b.dir, "samples", fmt.Sprintf("batch-%06d.g0.jsonl", batch)))
	if err != nil {
		t.Error(err)
	}
	return string(text)
}

// TestSamplesAreRows: a line of what was sampled, with the tokens of its prompt, is a row of the same loss; what is learnt of it is
// the same.
func TestSamplesAreRows(t *testing.T) {
	b := newSoftly(t, "loss.params.skip_first=0", "train.num_steps=1", "train.epochs=null", "eval.every=null", "eval.at_start=false", "eval.at_end=false")
	var rows []string
	var want float64
	b.fresh(func(t *testing.T) {
		if _, _, err := b.life(0, false); err != nil {
			t.Fatal(err)
		}
		lines, err := runner.ReadMetrics(b.dir)
		if err != nil {
			t.Fatal(err)
		}
		want = lines[len(lines)-1]["distill/forward_kl"]
		for _, line := range strings.Split(strings.TrimSpace(b.sampleFile(t, 1)), "\n") {
			var s struct {
				Prompt []int32           `json:"prompt_tokens"`
				Tokens []int32           `json:"tokens"`
				Top    []json.RawMessage `json:"teacher_topk"`
			}
			if err := json.Unmarshal([]byte(line), &s); err != nil {
				t.Fatal(err)
			}
			row, err := json.Marshal(map[string]any{"tokens": append(s.Prompt, s.Tokens...), "teacher_topk": append(make([]json.RawMessage, len(s.Prompt)), s.Top...)})
			if err != nil {
				t.Fatal(err)
			}
			rows = append(rows, string(row))
		}
	})
	text := "base_model: sandbox/bytes-tiny\nloss: {type: forward_kl, params: {top_k: 3}}\nlora_config: {rank: 8, alpha: 16}\n" +
		"dataset: {train: rows.jsonl}\noptimizer: {learning_rate: 5.0e-3}\ntrain: {batch_size: 4, num_steps: 1, epochs: null}\n"
	got := benchOf(t, map[string]string{"r.yaml": text, "rows.jsonl": strings.Join(rows, "\n")}).unbroken()
	if at := fmt.Sprintf("distill/forward_kl:%.4g", want); !strings.Contains(got, at[:len(at)-1]) {
		t.Errorf("%s\nwant %s", got, at)
	}
}

// TestThePlanCountsCopies: of rows those that each has, of samples the most that each can have.
func TestThePlanCountsCopies(t *testing.T) {
	p := softRows(t).plan
	// tokens: 3·5, 2·4, 3·4, 2·4, twice; trained: 6, 4, 5, 5
	if p.Copies != 3 || p.Tokens != 2*43 || p.Trained != 2*20 {
		t.Errorf("%d copies, %d tokens, %d trained; want 3, 86, 40", p.Copies, p.Tokens, p.Trained)
	}
	whole, copies := newSoftly(t, "loss.params.top_k=1").plan, newSoftly(t).plan
	if copies.Copies != 3 || copies.Tokens != 3*whole.Tokens || copies.Sampled != whole.Sampled {
		t.Errorf("%+v, want three times the tokens of %+v", copies, whole)
	}
}
