package runner_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"trainer/internal/journal"
	"trainer/internal/sandbox"
	api "trainer/internal/wire"
	"trainer/recipe"
	"trainer/runner"
)

// creates is what the journal says of them, in order: what, and how it came out.
func (b *bench) creates() string {
	b.t.Helper()
	records, err := journal.Read(b.dir)
	if err != nil {
		b.t.Fatal(err)
	}
	var out []string
	for _, r := range records {
		var v struct{ What, How, Why string }
		if err := json.Unmarshal(r.Data, &v); err != nil {
			b.t.Fatal(err)
		}
		switch r.Type {
		case "created":
			out = append(out, v.What+" "+v.How)
		case "not_created":
			out = append(out, v.What+" none: "+v.Why)
		}
	}
	return strings.Join(out, ", ")
}

// TestCreatesWithoutAnAnswer: a create that nobody answered is looked for, and taken, or sent once more; the run is what it
// is without that, in one life, and nothing is left running but what is said.
func TestCreatesWithoutAnAnswer(t *testing.T) {
	for _, c := range []struct {
		name, want string
		faults     []string
		twins      int
	}{
		{"the resource's answer is lost", "resource adopted, session answer",
			[]string{"drop:when=after,on=create-resource,at=1"}, 0},
		{"the resource's answer is cut", "resource adopted, session answer",
			[]string{"truncate:on=create-resource,at=1"}, 0},
		{"the resource's create is lost", "resource none: settled, resource answer, session answer",
			[]string{"drop:when=before,on=create-resource,at=1"}, 0},
		{"a server error before the work", "resource none: settled, resource answer, session answer",
			[]string{"server-error:when=before,on=create-resource,at=1"}, 0},
		{"the resource is in no list for a while", "resource adopted, session answer",
			[]string{"late-create:after=70s,on=create-resource,at=1", "drop:when=after,on=create-resource,at=1"}, 0},
		{"the resource is in no list until it is too late", "resource none: settled, resource answer, session answer",
			[]string{"latency:fixed=1s,on=optim-step", "late-create:after=121s,on=create-resource,at=1", "drop:when=after,on=create-resource,at=1"}, 1},
		{"the resource is made twice", "resource answer, session answer",
			[]string{"double-create:on=create-resource,at=1"}, 1},
		{"the session's answer is lost", "resource answer, session adopted",
			[]string{"drop:when=after,on=create-session,at=1"}, 0},
		{"the session's create is lost", "resource answer, session none: settled, session answer",
			[]string{"drop:when=before,on=create-session,at=1"}, 0},
		{"the session is in no list for a while", "resource answer, session adopted",
			[]string{"late-create:after=45s,on=create-session,at=1", "drop:when=after,on=create-session,at=1"}, 0},
		{"the session is in no list until it is too late", "resource answer, session none: settled, session answer",
			[]string{"late-create:after=2m,on=create-session,at=1", "drop:when=after,on=create-session,at=1"}, 0},
		{"the session is made twice, unanswered", "resource answer, session adopted",
			[]string{"double-create:on=create-session,at=1", "drop:when=after,on=create-session,at=1"}, 0},
		{"both answers are lost", "resource adopted, session adopted", []string{"drop:when=after,on=creates,times=2"}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t)
			want := b.unbroken()
			b.against(sandbox.Options{}, func(t *testing.T) {
				s, err := b.through(b.server)
				if err != nil {
					t.Fatal(err)
				}
				if got := b.creates(); got != c.want {
					t.Errorf("creates: %s, want %s", got, c.want)
				}
				if got := b.steps(); got != want {
					t.Errorf("got\n%swant\n%s", got, want)
				}
				left := b.readyNow(t)
				if len(left) != c.twins || len(s.Twins) != c.twins || c.twins > 0 && !strings.HasPrefix(left[0], s.Twins[0]) {
					t.Errorf("left running: %v, told: %v, want %d", left, s.Twins, c.twins)
				}
				o := judge(t, b.dir, b.store, false)
				o.hold(t, c.name)
			}, c.faults...)
		})
	}
}

// TestSeveralThatACreateMayHaveMade: where it cannot be told which resource is the run's, none is taken, each is named, and
// once a person has stopped all but one the run goes on.
func TestSeveralThatACreateMayHaveMade(t *testing.T) {
	b := newBench(t)
	want := b.unbroken()
	b.against(sandbox.Options{}, func(t *testing.T) {
		s, err := b.through(b.server)
		var several *runner.Several
		if !errors.As(err, &several) || len(several.IDs) != 2 || len(s.Unreleased) != 2 {
			t.Fatalf("%v; left: %v", err, s.Unreleased)
		}
		for _, id := range several.IDs {
			if !strings.Contains(err.Error(), id) || !strings.Contains(strings.Join(s.Unreleased, " "), id) {
				t.Errorf("%s is not named: %v; %v", id, err, s.Unreleased)
			}
		}
		if _, err := client(b.server).Stop(context.Background(), several.IDs[0], false); err != nil {
			t.Fatal(err)
		}
		if _, err := b.through(b.server); err != nil {
			t.Fatal(err)
		}
		if got := b.creates(); got != "resource adopted, session answer" || b.steps() != want || len(b.readyNow(t)) != 0 {
			t.Errorf("creates: %s; left: %v\n%s", got, b.readyNow(t), b.steps())
		}
	}, "double-create:on=create-resource,at=1", "drop:when=after,on=create-resource,at=1")
}

// TestATwinIsOfferedToGC: once its run is at its end, what a create of it has made twice is stopped as what dead runs leave.
func TestATwinIsOfferedToGC(t *testing.T) {
	b := newBench(t)
	b.against(sandbox.Options{}, func(t *testing.T) {
		if s, err := b.through(b.server); err != nil || len(s.Twins) != 1 {
			t.Fatalf("%v; twins %v", err, s.Twins)
		}
		twin := b.mine(t)
		if h := b.holdings(t); h.Reason(twin) != "a create of its run was carried out twice, or late" {
			t.Errorf("%s: %q", twin.ID, h.Reason(twin))
		}
		if err := runner.Collect(t.Context(), b.dir, twin, client(b.server)); err != nil {
			t.Error(err)
		}
		if left := b.readyNow(t); len(left) != 0 {
			t.Errorf("left running: %v", left)
		}
		if h := b.holdings(t); len(h.Held) != 0 || h.Reason(twin) != "" {
			t.Errorf("behind it %+v", h)
		}
	}, "double-create:on=create-resource,at=1")
}

// TestAnothersResourceIsNotTaken: what looks like ours, and has a session of someone else on it, is not.
func TestAnothersResourceIsNotTaken(t *testing.T) {
	b := newBench(t)
	b.against(sandbox.Options{}, func(t *testing.T) {
		other := ""
		line := &liar{next: b.server, match: postTo(api.PathResources), at: 1, reach: 1, do: func(r *http.Request, p pass) (*http.Response, error) {
			if _, err := p(); err != nil {
				t.Fatal(err)
			}
			mine := b.readyNow(t)
			other, _, _ = strings.Cut(mine[0], " ")
			for {
				spec := runner.SessionSpec{Resource: other, DisplayName: "another", LoRA: &recipe.LoRA{Rank: 8, Alpha: 16}}
				if _, err := client(b.server).Open(context.Background(), spec); err == nil {
					return nil, errCut
				}
			}
		}}
		s, err := b.through(line)
		if err != nil || len(s.Twins) != 0 {
			t.Fatalf("%v; twins %v", err, s.Twins)
		}
		if got := b.creates(); got != "resource none: settled, resource answer, session answer" {
			t.Errorf("creates: %s", got)
		}
		if left := b.readyNow(t); len(left) != 1 || !strings.HasPrefix(left[0], other) {
			t.Errorf("left: %v, want %s", left, other)
		}
	})
}

func postTo(path string) func(*http.Request) bool {
	return func(r *http.Request) bool { return r.Method == http.MethodPost && r.URL.Path == path }
}

// TestAStoppedSearchIsTakenUpAgain: a run that is stopped while it looks says what may be there; the next life finds it.
func TestAStoppedSearchIsTakenUpAgain(t *testing.T) {
	b := newBench(t)
	want := b.unbroken()
	b.against(sandbox.Options{}, func(t *testing.T) {
		stop, ask := context.WithCancelCause(t.Context())
		c := client(b.server)
		w := runner.World{Backend: c, Resources: c, Dir: b.dir, Sandbox: true, Sinks: []runner.Sink{onWarning(func(text string) {
			if strings.Contains(text, "looking for") {
				ask(runner.ErrInterrupted)
			}
		})}}
		s, err := runner.Run(t.Context(), stop, b.in, b.plan, w)
		if !errors.Is(err, runner.ErrInterrupted) || len(s.Unreleased) != 1 || !strings.Contains(s.Unreleased[0], "perhaps a resource") {
			t.Fatalf("%v; left: %v", err, s.Unreleased)
		}
		if _, err := b.through(b.server); err != nil {
			t.Fatal(err)
		}
		if got := b.creates(); got != "resource adopted, session answer" || b.steps() != want || len(b.readyNow(t)) != 0 {
			t.Errorf("creates: %s; left: %v\n%s", got, b.readyNow(t), b.steps())
		}
	}, "late-create:after=70s,on=create-resource,at=1", "drop:when=after,on=create-resource,at=1")
}

// TestAStopBehindALostAnswerReleases: what a create without an answer has made is stopped on the way out too.
func TestAStopBehindALostAnswerReleases(t *testing.T) {
	b := newBench(t)
	b.against(sandbox.Options{}, func(t *testing.T) {
		hard, cut := context.WithCancelCause(t.Context())
		line := &liar{next: b.server, match: postTo(api.PathResources), at: 1, reach: 1, do: func(r *http.Request, p pass) (*http.Response, error) {
			res, err := after(r, p)
			cut(runner.ErrInterrupted)
			return res, err
		}}
		c := client(line)
		s, err := runner.Run(hard, hard, b.in, b.plan, runner.World{Backend: c, Resources: c, Dir: b.dir, Sandbox: true})
		if !errors.Is(err, runner.ErrInterrupted) {
			t.Error(err)
		}
		if left := b.readyNow(t); len(left) != 0 || len(s.Unreleased) != 0 {
			t.Errorf("left running: %v; told: %v", left, s.Unreleased)
		}
	})
}

// onWarning is a sink.
type onWarning func(string)

func (onWarning) Open(context.Context, runner.RunInfo) error { return nil }
func (onWarning) Close(context.Context) error                { return nil }
func (f onWarning) Emit(e runner.Event) {
	if e.Kind == runner.WarnEvent {
		f(e.Text)
	}
}

// TestStraysGiveBackTheirPlaces: where a resource has one place, a session of ours that turned up too late holds it: it is
// stopped, and the next create goes through.
func TestStraysGiveBackTheirPlaces(t *testing.T) {
	b := newBench(t, "lora_config=null", "optimizer.learning_rate=1e-3")
	want := b.unbroken()
	b.against(sandbox.Options{}, func(t *testing.T) {
		if _, err := b.through(b.server); err != nil {
			t.Fatal(err)
		}
		if got := b.creates(); got != "resource answer, session none: settled, session none: refused, session answer" || b.steps() != want {
			t.Errorf("creates: %s\n%s", got, b.steps())
		}
	}, "late-create:after=61s,on=create-session,at=1", "drop:when=after,on=create-session,at=1")
}

// TestStraysAreStoppedAtTheEnd: of a resource that is not ours to stop, every session of ours is gone at the end, and no
// other one.
func TestStraysAreStoppedAtTheEnd(t *testing.T) {
	attached := newBench(t)
	attached.against(sandbox.Options{}, func(t *testing.T) {
		c := client(attached.server)
		res, err := c.Create(t.Context(), runner.ResourceSpec{BaseModel: "sandbox/bytes-tiny", GPUType: gpuOf(t, c), LoRA: true, InactiveTimeout: recipeTimeout})
		if err != nil {
			t.Fatal(err)
		}
		for res.Status != runner.Ready {
			if res, err = c.Resource(t.Context(), res.ID); err != nil {
				t.Fatal(err)
			}
		}
		other, err := c.Open(t.Context(), runner.SessionSpec{Resource: res.ID, DisplayName: "another", LoRA: &recipe.LoRA{Rank: 8, Alpha: 16}})
		if err != nil {
			t.Fatal(err)
		}
		b := newBench(t, "model_resources_id="+res.ID)
		b.server, b.dir, b.store = attached.server, attached.dir, attached.store
		if _, err := b.through(b.server); err != nil {
			t.Fatal(err)
		}
		all, err := c.Sessions(t.Context(), res.ID)
		if err != nil || len(all) != 3 {
			t.Fatalf("%d sessions, %v", len(all), err)
		}
		for _, s := range all {
			if running := s.Status == runner.Running; running != (s.ID == other.ID()) {
				t.Errorf("session %s (%s) is %s", s.ID, s.DisplayName, s.Status)
			}
		}
	}, "double-create:on=create-session,at=2")
}

// TestOneProcessAsksAtATime: the lock is taken before the list is read, and given back behind the last look.
func TestOneProcessAsksAtATime(t *testing.T) {
	b := newBench(t)
	b.against(sandbox.Options{}, func(t *testing.T) {
		var seen []string
		note := &liar{next: b.server, match: func(r *http.Request) bool { return r.URL.Path == api.PathResources }, at: 1, reach: forever,
			do: func(r *http.Request, p pass) (*http.Response, error) {
				seen = append(seen, strings.ToLower(r.Method))
				return p()
			}}
		b.alter = func(w *runner.World) {
			w.Alone = func(context.Context) (func(), error) {
				seen = append(seen, "take")
				return func() { seen = append(seen, "free") }, nil
			}
		}
		if _, err := b.through(note); err != nil {
			t.Fatal(err)
		}
		want := []string{"take", "get", "post", "get", "free"}
		if len(seen) < len(want) || !slices.Equal(seen[:len(want)], want) {
			t.Errorf("%v, want %v first", seen, want)
		}
		b.alter = func(w *runner.World) {
			w.Alone = func(context.Context) (func(), error) { return nil, fmt.Errorf("no room for a lock") }
		}
		b.dir = t.TempDir()
		if _, err := b.through(b.server); err != nil || !strings.Contains(b.warned.String(), "no room for a lock") {
			t.Errorf("without a lock: %v; told %q", err, b.warned.String())
		}
	}, "drop:when=after,on=create-resource,at=1")
}

const recipeTimeout = 15 * time.Minute

func gpuOf(t *testing.T, c runner.Backend) string {
	t.Helper()
	models, err := c.Models(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range models {
		if m.Name == "sandbox/bytes-tiny" {
			return m.DefaultGPU
		}
	}
	t.Fatal("no sandbox/bytes-tiny")
	return ""
}
