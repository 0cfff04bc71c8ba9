package runner_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"trainer/internal/hub"
	"trainer/internal/sandbox"
	"trainer/runner"
)

const pairRows = `{"prompt":"cat?","chosen":"meow","rejected":"woof"}
{"prompt":"dog?","chosen":"woof","rejected":"moo"}
{"prompt":"cow?","chosen":"moo","rejected":"quack"}
{"prompt":"duck?","chosen":"quack","rejected":"buzz"}
{"prompt":"bee?","chosen":"buzz","rejected":"meow"}
`

const labelledRows = `{"prompt":"cat?","completion":"meow","label":true}
{"prompt":"dog?","completion":"moo","label":false}
{"prompt":"cow?","completion":"moo","label":true}
{"prompt":"duck?","completion":"buzz","label":false}
{"prompt":"bee?","completion":"buzz","label":true}
`

// taughtRows are of tokens that a teacher has scored, in the two forms that there are.
const taughtRows = `{"prompt_tokens":[256,65,66],"tokens":[67,257],"teacher_logprobs":[-0.5,-2]}
{"tokens":[256,67,68,257],"weights":[0,0,1,1],"teacher_logprobs":[null,null,-1,-0.25]}
{"tokens":[256,70,71,72],"teacher_logprobs":[null,-3,-3,-1]}
{"prompt_tokens":[256],"tokens":[75],"teacher_logprobs":[-0.125]}
`

// preferring is a bench of a loss of preferences.
func preferring(t *testing.T, loss string, set ...string) *bench {
	rows := pairRows
	if loss == "kto" {
		rows = labelledRows
	}
	if loss == "reverse_kl" {
		rows = taughtRows
	}
	text := "base_model: sandbox/bytes-tiny\nloss: {type: " + loss + "}\nlora_config: {rank: 8, alpha: 16}\n" +
		"dataset: {train: rows.jsonl, validation: rows.jsonl}\noptimizer: {learning_rate: 3.0e-3}\n" +
		"train: {batch_size: 2, epochs: 2, gradient_accumulation: 2}\neval: {every: 2, at_start: true}\ncheckpoint: {every: 3}\n"
	return benchOf(t, map[string]string{"r.yaml": text, "rows.jsonl": rows}, set...)
}

// TestPreferencesKilledAtEveryRequest cuts a run at each of its requests, before it arrives or with its answer lost. What it
// ends with is what the unbroken run ends with, to the bit, and every gradient was sent once.
func TestPreferencesKilledAtEveryRequest(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		loss      string
		lookahead int
		stride    int
	}{{"dpo", 1, 1}, {"dpo", 0, 1}, {"kto", 1, 3}, {"orpo", 1, 7}, {"reverse_kl", 1, 7}} {
		t.Run(fmt.Sprintf("%s, lookahead %d", c.loss, c.lookahead), func(t *testing.T) {
			b := preferring(t, c.loss, fmt.Sprintf("train.lookahead=%d", c.lookahead), "train.epochs=1", "checkpoint.every=2")
			b.cutAtRequests(c.stride, 4, b.wholeBehind(b.measured()))
		})
	}
}

// asked counts the operations of a life by what they are.
type asked struct {
	next   http.RoundTripper
	scores int // forward passes
	custom int
}

func (a *asked) RoundTrip(r *http.Request) (*http.Response, error) {
	if posts("forward-backward")(r) {
		a.scores++
	}
	if posts("custom-forward-backward")(r) {
		a.custom++
	}
	return a.next.RoundTrip(r)
}

// TestTheReferenceIsScoredOnce: before the first step, whatever reads it later; another run of the same rows and weights
// asks for nothing where both share a folder, and a loss that compares with no reference never asks.
func TestTheReferenceIsScoredOnce(t *testing.T) {
	shared := t.TempDir()
	count := func(loss, dir string, set ...string) (n int) {
		b := preferring(t, loss, append([]string{"eval.every=null", "eval.at_start=false", "eval.at_end=false", "checkpoint.every=null", "train.gradient_accumulation=auto"}, set...)...)
		b.alter = func(w *runner.World) { w.References = dir }
		b.onDisk(func(t *testing.T) {
			a := &asked{next: b.server}
			if _, err := b.through(a); err != nil {
				t.Fatal(err)
			}
			n = a.scores - a.custom // a step is scored once, and has one gradient
		})
		return n
	}
	bare := count("orpo", "")
	if got := count("dpo", shared); got != bare+1 {
		t.Errorf("dpo asks for %d passes beside its steps, orpo for %d: the reference is one pass", got, bare)
	}
	if got := count("dpo", shared); got != bare {
		t.Errorf("the second run asks for %d passes beside its steps, want %d: the reference is in the folder", got, bare)
	}
	if got := count("ipo", shared); got != bare {
		t.Errorf("another loss asks for %d passes beside its steps, want %d: the reference is of the weights alone", got, bare)
	}
	if got := count("dpo", shared, "base_model=sandbox/bytes-small"); got != bare+1 {
		t.Errorf("another model asks for %d passes beside its steps, want %d", got, bare+1)
	}
	files, err := filepath.Glob(filepath.Join(shared, "*"))
	if err != nil || len(files) != 2 {
		t.Errorf("%d files, %v", len(files), err)
	}
	damaged, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	damaged[len(damaged)/2] ^= 1
	write(t, files[0], string(damaged))
	if a, b := count("dpo", shared), count("dpo", shared, "base_model=sandbox/bytes-small"); a+b != 2*bare+1 {
		t.Errorf("beside a damaged file the runs ask for %d and %d passes beside their steps, want one more than %d", a, b, 2*bare)
	}
}

// What the reference said is needed to the end: rows that it was not asked about cannot be compared any more.
func TestALostReferenceIsNotMadeOfTrainedWeights(t *testing.T) {
	b := preferring(t, "dpo", "checkpoint.every=1")
	b.onDisk(func(t *testing.T) {
		if err := b.cutAt(3); err == nil {
			t.Fatal("the life was not cut")
		}
		if err := os.RemoveAll(filepath.Join(b.dir, "reference")); err != nil {
			t.Fatal(err)
		}
		c := &creates{next: b.server}
		_, err := b.through(c)
		if c.n > 0 {
			t.Errorf("%d resources were asked for", c.n)
		}
		if !errors.Is(err, runner.ErrHopeless) || !strings.Contains(err.Error(), "dpo compares with a reference that is scored before the first step") {
			t.Errorf("got %v", err)
		}
		if left := b.ready(); len(left) > 0 {
			t.Errorf("left running: %v", left)
		}
	})
}

// TestAStepIsTheSameHoweverItIsCut: the gradient is of the whole step, whatever number of requests carries it.
func TestAStepIsTheSameHoweverItIsCut(t *testing.T) {
	for _, loss := range []string{"dpo", "ipo", "hinge", "simpo", "orpo", "kto", "slic"} {
		whole := preferring(t, loss, "train.batch_size=4", "train.gradient_accumulation=1").measured()
		for _, set := range []string{"train.gradient_accumulation=2", "train.gradient_accumulation=4", "train.lookahead=0"} {
			got := preferring(t, loss, "train.batch_size=4", set).measured()
			near(t, loss+", "+set, got.steps, whole.steps)
		}
	}
}

// near compares metrics to four digits: where a step is cut, sums over its requests are rounded one by one.
func near(t *testing.T, what, got, want string) {
	t.Helper()
	a, b := strings.Fields(got), strings.Fields(want)
	if len(a) != len(b) {
		t.Errorf("%s: got\n%swant\n%s", what, got, want)
		return
	}
	value := func(word string) (v float64) {
		_, _ = fmt.Sscan(strings.TrimSuffix(word[strings.LastIndex(word, ":")+1:], "]"), &v)
		return v
	}
	for i := range a {
		if v, w := value(a[i]), value(b[i]); math.Abs(v-w) > 1e-4*(1+math.Abs(w)) {
			t.Errorf("%s: %s, want %s", what, a[i], b[i])
		}
	}
}

// A step that fails for what it was sent names its pairs, and where the recipe says so is left out.
func TestPairsThatFailAreNamed(t *testing.T) {
	b := preferring(t, "dpo", "train.gradient_accumulation=2")
	b.onDisk(func(t *testing.T) {
		fails := &nonFinite{next: b.server, at: 3}
		_, err := b.through(fails)
		var unfit *runner.Unfit
		if !errors.As(err, &unfit) || len(unfit.Rows) != 1 || !strings.HasPrefix(unfit.Rows[0], "rows.jsonl:") {
			t.Errorf("got %v, rows %v; each request of a step carries one pair", err, unfit)
		}
	})
}

// nonFinite has a custom gradient fail: its answers say that the loss is not finite.
type nonFinite struct {
	next http.RoundTripper
	at   int
	id   string
}

func (f *nonFinite) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := f.next.RoundTrip(r)
	if err != nil || !strings.Contains(r.URL.Path, "/operations/custom-forward-backward") {
		return res, err
	}
	if r.Method == http.MethodPost {
		if f.at--; f.at != 0 {
			return res, err
		}
	} else if f.id == "" || !strings.HasSuffix(r.URL.Path, f.id) {
		return res, err
	}
	data, err := io.ReadAll(res.Body)
	if err != nil {
		return nil, err
	}
	_, rest, _ := strings.Cut(string(data), `"id":"`)
	f.id, _, _ = strings.Cut(rest, `"`)
	body := `{"id":"` + f.id + `","status":"TRAINING_OPERATION_STATUS_FAILED","error":{"code":"TRAINING_OPERATION_ERROR_CODE_NON_FINITE_LOSS","message":"a gradient"}}`
	res.Body, res.ContentLength = io.NopCloser(strings.NewReader(body)), int64(len(body))
	return res, nil
}

// TestPreferencesDieAtTheirDisk kills a run, or cuts its power, at operations of its disk: what was scored, and what the
// reference says, is there before anything is made of it.
func TestPreferencesDieAtTheirDisk(t *testing.T) {
	t.Parallel()
	b := preferring(t, "dpo")
	want, stride := b.measured(), 2**diskStride+1
	for i, how := range deaths {
		points := 0
		for at, over := 1+i*stride/len(deaths), false; !over; at += sparse(stride) {
			b.onDisk(func(t *testing.T) {
				d := newMortal(t.TempDir(), uint64(at), b.dir)
				if over = !b.dies(t, d, how, at); !over {
					points++
					b.revives(t, fmt.Sprintf("%s operation %d", how, at), want)
				}
			})
		}
		if t.Logf("%s: %d points", how, points); points < fewest(3) {
			t.Errorf("%s: %d points are too few", how, points)
		}
	}
}

// TestPreferencesUnderFaults: what only scores is asked for again when it fails, what carries a gradient never is in its
// session; and whatever a network and a service do to a run, it is the one that nothing disturbed.
func TestPreferencesUnderFaults(t *testing.T) {
	t.Parallel()
	for i, tt := range []struct {
		name   string
		faults []string
		rolls  string // a pattern of the warning that tells of a rollback; empty: there is none
	}{
		{"the reference fails", []string{"fail:on=forward-backward,at=2,code=INTERNAL_ERROR"}, ""},
		{"a scoring fails", []string{"fail:on=forward-backward,at=6,code=RESOURCE_EXHAUSTED"}, ""},
		{"scorings are forgotten", []string{"forget-operation:on=forward-backward,at=6"}, ""},
		{"a gradient fails and leaves nothing", []string{"fail:on=custom-forward-backward,at=3,code=INTERNAL_ERROR"}, "INTERNAL_ERROR"},
		{"a gradient fails and is left", []string{"fail:on=custom-forward-backward,at=3,code=TIMEOUT,leaves=gradient"}, "TIMEOUT"},
		{"an optim-step fails that was applied", []string{"fail:on=optim-step,at=3,leaves=step"}, "INTERNAL_ERROR"},
		{"a session expires", []string{"expire-session:on=optim-step,at=3"}, "SESSION_NOT_ACTIVE|EXPIRED"},
		{"keys are forgotten at once", []string{"forget-key"}, ""},
		{"a bad network", []string{"drop:rate=0.03", "drop:rate=0.03,when=after", "server-error:rate=0.03,status=503,retry_after=2s", "truncate:rate=0.03", "slow-body:rate=0.05,uniform=1s..30s"}, ""},
	} {
		for _, lookahead := range []int{0, 1} {
			if !inTurn(i, lookahead, 2) {
				continue
			}
			t.Run(fmt.Sprintf("%s, lookahead %d", tt.name, lookahead), func(t *testing.T) {
				b := preferring(t, "dpo", fmt.Sprintf("train.lookahead=%d", lookahead))
				b.patience = b.in.Recipe.InactiveTimeout / 2
				want := b.measured()
				b.against(sandbox.Options{FaultSeed: 3}, func(t *testing.T) {
					ended, complete := b.lives(t)
					if !complete || len(ended) > 0 {
						t.Fatalf("it took more than one life: %v", ended)
					}
					if rolled := strings.Contains(b.warned.String(), "rolling back"); rolled != (tt.rolls != "") || !regexp.MustCompile(tt.rolls).MatchString(b.warned.String()) {
						t.Errorf("warned of %q, want a rollback by %q", b.warned.String(), tt.rolls)
					}
					b.compare(t, want)
					if left := b.readyNow(t); len(left) > 0 {
						t.Errorf("left running: %v", left)
					}
				}, tt.faults...)
			})
		}
	}
}

// A scoring that fails however often it is asked for ends the life, and not the run.
func TestAScoringThatFailsOnIsAskedForByTheNextLife(t *testing.T) {
	b := preferring(t, "dpo", "checkpoint.every=1", "eval.every=null", "eval.at_start=false", "train.gradient_accumulation=auto", "keep_resources=on_failure")
	want := b.measured()
	b.against(sandbox.Options{}, func(t *testing.T) {
		ended, complete := b.lives(t)
		if !complete || len(ended) != 1 || !strings.Contains(ended[0].Error(), "INTERNAL_ERROR") {
			t.Errorf("the lives ended by %v, want one to end by INTERNAL_ERROR", ended)
		}
		b.compare(t, want)
	}, "fail:on=forward-backward,at=5,code=INTERNAL_ERROR", "fail:on=forward-backward,at=6,code=INTERNAL_ERROR", "fail:on=forward-backward,at=7,code=INTERNAL_ERROR")
}

// TestTheReferenceIsACheckpoint: what a recipe names is scored in a session of its own, which is over before the one that
// trains begins; a run that is killed at any request of it compares with the same.
func TestTheReferenceIsACheckpoint(t *testing.T) {
	t.Parallel()
	b := preferring(t, "dpo")
	whole := *b
	var want string
	start := func(t *testing.T, set ...string) { // a run on the server that has a checkpoint, and compares with it
		b.in, b.plan, b.dir = whole.in, whole.plan, t.TempDir()
		if _, err := b.through(b.server); err != nil {
			t.Fatal(err)
		}
		id := ""
		for _, e := range judge(t, b.dir, b.store, true).records {
			if e.text("type") == "checkpoint" && e.text("kind") == "training" {
				id = e.text("id")
			}
		}
		r := b.loaded(t, append([]string{"reference.checkpoint_id=" + id}, set...)...)
		in, err := runner.Open(t.Context(), r, &hub.Hub{}, true)
		if err != nil {
			t.Fatal(err)
		}
		s, err := runner.StartOf(b.loaded(t, "init_from.checkpoint_id="+id))
		if err != nil {
			t.Fatal(err)
		}
		b.in = in
		if len(set) > 0 {
			b.begins(t, s)
		} else if b.plan, err = runner.NewPlan(in); err != nil {
			t.Fatal(err)
		}
		b.dir = t.TempDir()
	}
	judged := func(t *testing.T, point string) *oracle { // the server has carried out another run too
		o := judge(t, b.dir, b.store, true)
		o.faults = slices.DeleteFunc(o.faults, func(f string) bool {
			return strings.HasSuffix(f, "was accepted without an intent") || strings.HasSuffix(f, "is in no record of the journal")
		})
		o.hold(t, point)
		return o
	}
	b.onDisk(func(t *testing.T) {
		start(t, "init_from=null") // begins at the checkpoint that it compares with
		if _, err := b.through(b.server); err != nil {
			t.Fatal(err)
		}
		if loss, kl := b.metric(t, "train/loss")[1], b.metric(t, "eval/kl")[0]; math.Abs(loss-math.Ln2) > 1e-12 || kl != 0 {
			t.Errorf("at the reference itself the loss is %v, the KL %v", loss, kl)
		}
	})
	b.onDisk(func(t *testing.T) {
		start(t)
		if _, err := b.through(b.server); err != nil {
			t.Fatal(err)
		}
		o := judged(t, "unbroken")
		if want = b.steps(); b.metric(t, "eval/kl")[0] == 0 || len(o.begun()) != 2 {
			t.Errorf("%d sessions, and the first evaluation is\n%s", len(o.begun()), want)
		}
	})
	points := 0
	for die, over := 3, false; !over; die += sparse(9) {
		b.onDisk(func(t *testing.T) {
			start(t)
			_, n, err := b.life(die, die%2 == 0)
			if over = err == nil && n < die; over {
				return
			}
			points++
			point := fmt.Sprintf("request %d", die)
			if _, err := b.through(b.server); err != nil {
				t.Fatalf("%s: resume: %v", point, err)
			}
			judged(t, point)
			if got := b.steps(); got != want {
				t.Fatalf("%s: got\n%swant\n%s", point, got, want)
			}
			if left := b.readyNow(t); len(left) > 0 {
				t.Fatalf("%s: left running: %v", point, left)
			}
		})
	}
	t.Logf("%d points", points)
}

// TestAForkComparesWithWhatItsRunDid: behind the step that it begins from, a fork measures what the run measured, also one
// that is killed and resumed; a run that has kept nothing of its start has no fork that compares with it.
func TestAForkComparesWithWhatItsRunDid(t *testing.T) {
	t.Parallel()
	b := preferring(t, "dpo")
	whole := *b
	b.onDisk(func(t *testing.T) {
		if _, err := b.through(b.server); err != nil {
			t.Fatal(err)
		}
		want := behind(b.steps(), 3)
		for die := 0; die < 40; die += 3 {
			b.in, b.plan = whole.in, whole.plan
			of := b.dir
			b.forkable(t)
			s, err := runner.Fork(b.dir, 3)
			if err != nil {
				t.Fatal(err)
			}
			b.begins(t, s)
			b.dir = t.TempDir()
			if _, _, err := b.life(die, true); err != nil {
				if _, err := b.through(b.server); err != nil {
					t.Fatalf("request %d: %v", die, err)
				}
			}
			if got := b.steps(); got != want || want == "" {
				t.Fatalf("request %d: got\n%swant\n%s", die, got, want)
			}
			b.dir = of
		}
	})
	b = preferring(t, "simpo")
	b.onDisk(func(t *testing.T) {
		if _, err := b.through(b.server); err != nil {
			t.Fatal(err)
		}
		b.forkable(t)
		s, err := runner.Fork(b.dir, 3)
		if err != nil {
			t.Fatal(err)
		}
		in := *whole.in
		in.Start = s
		if _, err := runner.NewPlan(&in); err == nil || !strings.Contains(err.Error(), "dpo compares with the weights that training started from") {
			t.Errorf("got %v", err)
		}
	})
}

// sent keeps what a life sends, without names that are drawn.
type sent struct {
	next   http.RoundTripper
	mu     sync.Mutex
	bodies []string
}

var (
	aUUID  = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
	tagged = regexp.MustCompile(`("inactive_timeout":"?)\d+`)
)

func (s *sent) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodPost {
		var body []byte
		if r.Body != nil {
			var err error
			if body, err = io.ReadAll(r.Body); err != nil {
				return nil, err
			}
			r.Body = io.NopCloser(bytes.NewReader(body))
		}
		text := tagged.ReplaceAllString(aUUID.ReplaceAllString(r.URL.Path+" "+string(body), "id"), "${1}0")
		s.mu.Lock()
		s.bodies = append(s.bodies, text)
		s.mu.Unlock()
	}
	return s.next.RoundTrip(r)
}

// Each setting that supervised training obeys is obeyed here too: the same recipe sends the same, and another value of any
// common key sends something else. With full weights no request speaks of an adapter.
func TestSettingsReachThePreferenceLoop(t *testing.T) {
	requests := func(set ...string) (out []string) {
		b := preferring(t, "dpo", append([]string{"train.num_steps=3", "train.epochs=null"}, set...)...)
		b.onDisk(func(t *testing.T) {
			s := &sent{next: b.server}
			if _, err := b.through(s); err != nil {
				t.Fatalf("%v: %v", set, err)
			}
			out = s.bodies
		})
		return out
	}
	base := requests()
	if again := requests(); !slices.Equal(base, again) {
		t.Error("the same recipe sends something else")
	}
	for i, set := range []string{
		"seed=7", "dataset.shuffle=false", "train.batch_size=3", "train.gradient_accumulation=1", "optimizer.learning_rate=1e-3", "optimizer.beta1=0.8",
		"optimizer.weight_decay=0.1", "optimizer.grad_clip_norm=0.5", "lr_schedule.type=cosine", "lora_config.rank=4", "lora_config.alpha=8", "lora_config.dropout=0.1",
		"checkpoint.every=1", "checkpoint.inference_every=1", "eval.every=1", "eval.at_start=false", "eval.limit=2", "chat.system=s", "chat.train_on=all_tokens",
		"loss.params.beta=0.2", "loss.params.label_smoothing=0.1", "loss.params.gamma=0.5", "loss.params.length_normalized=true", "loss.params.sft_weight=1",
	} {
		if testing.Short() && i%4 > 0 {
			continue
		}
		if slices.Equal(base, requests(set)) {
			t.Errorf("%s sends nothing else", set)
		}
	}
	full := strings.Join(requests("lora_config=null", "optimizer.learning_rate=1e-3"), "\n")
	if !strings.Contains(full, `"lora_enabled":false`) || strings.Contains(full, "lora_config") {
		t.Error("full weights are asked for with an adapter")
	}
}
