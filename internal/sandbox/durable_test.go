package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"trainer/internal/wire"
	"trainer/loss"
)

// story is what a careful client does: it finds what exists by its name, sends every operation under a key of its own,
// and can be told again from the start at any time. It trains two sessions, the second from a checkpoint of the first.
type story struct {
	c      *client
	mu     sync.Mutex
	drawn  []string          // outputs of samples
	bodies map[string]string // of operations whose payload was uploaded: what a client keeps, and sends again as it is
	acked  []string          // paths of operations that were accepted
}

func newStory(c *client) *story { return &story{c: c, bodies: map[string]string{}} }

// tell returns the ids of the sessions.
func (s *story) tell(t testing.TB) []string {
	var resources wire.Page[wire.Resource]
	s.c.ok("GET", wire.PathResources+"?created_by=me", "", &resources)
	if len(resources.Data) == 0 {
		resources.Data = append(resources.Data, s.c.resource(`{"base_model":"sandbox/bytes-tiny"}`))
	}
	resource := resources.Data[0].ID
	first := s.session(resource, "first", `,"lora_config":{"rank":2,"seed":5}`)
	var saved wire.TrainingCheckpointOutput
	for i := range 6 {
		s.train(t, first, i)
		switch i {
		case 1:
			s.sample(first, "before")
		case 2:
			s.operate(first, wire.KindTrainingCheckpoint, "save", "", &saved)
		case 3:
			s.operate(first, wire.KindWeightsSync, "early", `{"weight_sync_type":"WEIGHT_SYNC_TYPE_BACKGROUND_PUBLISH"}`, nil)
		}
	}
	s.operate(first, wire.KindWeightsSync, "sync", `{"weight_sync_type":"WEIGHT_SYNC_TYPE_SYNCHRONOUS"}`, nil)
	s.sample(first, "after")
	s.overtaken(t, first)
	second := s.session(resource, "second", `,"resume_from_checkpoint_id":"`+saved.Checkpoint.ID+`"`)
	for i := range 2 {
		s.train(t, second, 3+i)
	}
	s.operate(second, wire.KindForwardBackward, "half", batch(t, "", row("half of a step")), nil)
	return []string{first, second}
}

func (s *story) session(resource, name, more string) string {
	var list wire.Page[wire.Session]
	s.c.ok("GET", wire.PathSessions+"?model_resources_id="+resource, "", &list)
	for _, x := range list.Data {
		if x.DisplayName == name {
			return x.ID
		}
	}
	return s.c.session(`{"model_resources_id":"` + resource + `","display_name":"` + name + `"` + more + `}`).ID
}

// train is a step; its rows are a function of its number.
func (s *story) train(t testing.TB, session string, i int) {
	texts := []string{"one potato", "two potato", "three potato four"}
	s.operate(session, wire.KindForwardBackward, fmt.Sprintf("forward-%d", i), batch(t, "", row(texts[i%3])), nil)
	if i == 4 {
		s.operate(session, wire.KindForwardBackward, "upload", s.uploaded(t, session), nil)
	}
	if i == 5 {
		s.operate(session, wire.KindForwardBackward, "policy", body(t, &loss.PPO{ClipLowThreshold: 0.8, ClipHighThreshold: 1.2}, "", policyRow("a policy")), nil)
		s.operate(session, wire.KindCustomForwardBackward, "custom", custom(t, "", [][]float64{{-1, 0.5}}, row("abc")), nil)
	}
	s.operate(session, wire.KindOptimStep, fmt.Sprintf("optim-%d", i), `{"adam_params":{"learning_rate":0.003}}`, nil)
}

// sample leaves the sample in flight while the next operation is sent, and notes what came of it.
func (s *story) sample(session, key string) {
	body := prompt(`,"num_samples":2,"sampling_params":{"max_tokens":9}`, "one", "three")
	var op wire.Operation[json.RawMessage]
	s.c.ok("POST", opsPath(session, wire.KindSample), body, &op, wire.KeyHeader, key+"-"+session)
	s.operate(session, wire.KindForwardBackward, "beside-"+key, batch(s.c.t, `,"forward_only":true`, row("one potato")), nil)
	op = s.c.wait(session, wire.KindSample, op.ID)
	if op.Output == nil {
		s.c.t.Fatalf("%s: got %+v", key, op)
	}
	s.drawn = append(s.drawn, string(*op.Output))
}

// overtaken leaves a sample in flight while a step is trained and published in its midst.
func (s *story) overtaken(t testing.TB, session string) {
	body := prompt(`,"num_samples":2,"sampling_params":{"max_tokens":14}`, "two", "three")
	var op wire.Operation[json.RawMessage]
	s.c.ok("POST", opsPath(session, wire.KindSample), body, &op, wire.KeyHeader, "overtaken-"+session)
	s.train(t, session, 6)
	s.operate(session, wire.KindWeightsSync, "pipeline", `{"weight_sync_type":"WEIGHT_SYNC_TYPE_PIPELINE"}`, nil)
	op = s.c.wait(session, wire.KindSample, op.ID)
	var out wire.SampleOutput
	if err := json.Unmarshal(*op.Output, &out); err != nil || len(out.Results[0].PolicySegments) != 2 {
		s.c.t.Fatalf("the sample in flight: got %s, want two versions", *op.Output)
	}
	s.drawn = append(s.drawn, string(*op.Output))
}

func (s *story) uploaded(t testing.TB, session string) string {
	if body := s.bodies[session]; body != "" {
		return body
	}
	var up wire.UploadURL
	s.c.ok("POST", wire.PathSessions+"/"+session+"/payloads/upload-url", "", &up)
	s.c.ok("PUT", up.UploadURL, batch(t, "", row("a row that is uploaded")), nil)
	body := batch(t, `,"return_loss_fn_outputs":true,"payload_id":"`+up.PayloadID+`"`, row("a row"))
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bodies[session] = body
	return body
}

func (s *story) operate(session string, kind wire.Kind, key, body string, out any) {
	s.c.t.Helper()
	var op wire.Operation[json.RawMessage]
	s.c.ok("POST", opsPath(session, kind), body, &op, wire.KeyHeader, key+"-"+session)
	s.mu.Lock()
	s.acked = append(s.acked, opsPath(session, kind)+"/"+op.ID)
	s.mu.Unlock()
	op = s.c.wait(session, kind, op.ID)
	if op.Status != wire.OperationCompleted {
		s.c.t.Fatalf("%s: got %+v", key, op)
	}
	if out != nil {
		if err := json.Unmarshal(*op.Output, out); err != nil {
			s.c.t.Fatal(err)
		}
	}
}

// crash is the folder as it was at some instant, with what the client knew then.
type crash struct {
	name   string
	dir    string
	bodies map[string]string
	acked  []string
}

// crashing copies the folder whenever a record is about to be written: as it is after a kill, with a random part of the
// record in the log, and as it is after a power cut, with nothing in the log that was not synced.
type crashing struct {
	*disk
	t      *testing.T
	root   string
	rand   *rand.Rand
	story  *story
	synced atomic.Int64
	made   []crash
}

func (c *crashing) append(head, body []byte) (span, int64, error) {
	front, back, _ := seal(c.chain, head, body)
	frame := slices.Concat(front, body, back)
	torn := frame[:c.rand.IntN(len(frame))]
	if len(c.made)%4 == 0 {
		torn = nil // killed between two records
	}
	var r record
	if err := json.Unmarshal(head, &r); err != nil {
		c.t.Error(err)
	}
	c.copy(fmt.Sprintf("killed in record %d (%s), %d of %d bytes", len(c.made)/2, r.Kind, len(torn), len(frame)), c.end, torn)
	c.copy(fmt.Sprintf("power cut at record %d (%s)", len(c.made)/2, r.Kind), c.synced.Load(), nil)
	return c.disk.append(head, body)
}

func (c *crashing) sync(mark int64) error {
	written := c.written.Load()
	err := c.disk.sync(mark)
	if err == nil && c.durable.Load() >= written {
		c.synced.Store(max(c.synced.Load(), written))
	}
	return err
}

func (c *crashing) copy(name string, size int64, torn []byte) {
	c.story.mu.Lock()
	at := crash{name, filepath.Join(c.root, fmt.Sprint(len(c.made))), maps.Clone(c.story.bodies), slices.Clone(c.story.acked)}
	c.story.mu.Unlock()
	if err := copyDir(at.dir, c.dir); err != nil {
		c.t.Error(err)
	}
	log := filepath.Join(at.dir, "server.log")
	b, err := os.ReadFile(log)
	if err == nil {
		err = os.WriteFile(log, append(b[:min(size, int64(len(b)))], torn...), 0o600)
	}
	if err != nil {
		c.t.Error(err)
	}
	c.made = append(c.made, at)
}

// copyDir copies what is there; a file may go away meanwhile, as it may under a crash.
func copyDir(to, from string) error {
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		rel, relErr := filepath.Rel(from, path)
		if err = errors.Join(err, relErr); err != nil {
			return err
		}
		if d.IsDir() {
			return os.MkdirAll(filepath.Join(to, rel), 0o700)
		}
		b, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, rel), b, 0o600)
	})
}

func hashes(t testing.TB, s *Server, sessions []string) (out [][32]byte) {
	for _, id := range sessions {
		h, err := s.WeightsHash(id)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, h)
	}
	return out
}

// counting has the server keep one more number beside a gradient.
var counting = Choices{GradNormalization: perValidToken}

// tellCrashing tells the story on the folder and keeps a crash at every record.
func tellCrashing(t *testing.T, from crash, seed uint64) (weights [][32]byte, drawn []string, made []crash) {
	s, c := open(t, Options{Dir: from.dir, Choices: counting})
	s.workers.Wait() // what went on at once uses the store as it is
	s.every = 5
	st := newStory(c)
	if from.bodies != nil {
		st.bodies = maps.Clone(from.bodies)
	}
	for _, path := range from.acked {
		c.ok("GET", path, "", nil)
	}
	hook := &crashing{disk: s.store.(*disk), t: t, root: t.TempDir(), rand: rand.New(rand.NewPCG(seed, 0)), story: st}
	s.mu.Lock()
	s.store = hook
	hook.synced.Store(hook.durable.Load())
	s.mu.Unlock()
	sessions := st.tell(t)
	weights = hashes(t, s, sessions)
	s.workers.Wait()
	s.mu.Lock()
	s.store = hook.disk
	s.mu.Unlock()
	return weights, st.drawn, hook.made
}

func TestACrashAtAnyRecordEndsInTheSameWeights(t *testing.T) {
	const seed = 1
	want, drawn, made := tellCrashing(t, crash{dir: t.TempDir()}, seed)
	if len(made) < 60 {
		t.Fatalf("%d crashes: the story is shorter than it was", len(made))
	}
	for _, at := range made {
		t.Run(strings.ReplaceAll(at.name, " ", "_"), func(t *testing.T) {
			t.Parallel()
			s, c := open(t, Options{Dir: at.dir, Choices: counting})
			for _, path := range at.acked {
				c.ok("GET", path, "", nil)
			}
			st := newStory(c)
			st.bodies = at.bodies
			sessions := st.tell(t)
			if got := hashes(t, s, sessions); !slices.Equal(got, want) {
				t.Errorf("seed %d: other weights than the unbroken run's", seed)
			}
			if !slices.Equal(st.drawn, drawn) {
				t.Errorf("seed %d: other samples than the unbroken run's", seed)
			}
			if got := len(c.getSession(sessions[0]).TrainingCheckpoints); got != 1 {
				t.Errorf("%d training checkpoints, want 1", got)
			}
			if got := c.getSession(sessions[1]).Step; got != 5 {
				t.Errorf("step %d, want 5", got)
			}
		})
	}
}

func TestThreeCrashesInARow(t *testing.T) {
	const seed = 7
	draw := rand.New(rand.NewPCG(seed, 1))
	want, drawn, made := tellCrashing(t, crash{dir: t.TempDir()}, seed)
	for range 3 {
		at := made[draw.IntN(len(made))]
		next := crash{at.name, t.TempDir(), at.bodies, at.acked}
		if err := copyDir(next.dir, at.dir); err != nil {
			t.Fatal(err)
		}
		got, again, more := tellCrashing(t, next, draw.Uint64())
		if !slices.Equal(got, want) || !slices.Equal(again, drawn) {
			t.Fatalf("seed %d: other weights or samples than the unbroken run's after a crash %s", seed, at.name)
		}
		if len(more) > 0 {
			made = more
		}
	}
}

func TestARestartContinuesEverything(t *testing.T) {
	clock := newHandClock()
	dir := t.TempDir()
	s, c := open(t, Options{Dir: dir, Clock: clock})
	st := newStory(c)
	sessions := st.tell(t)
	want := hashes(t, s, sessions)
	clock.at = clock.at.Add(time.Second) // the last publish is over
	var before []string
	for _, path := range append([]string{wire.PathSessions, wire.PathResources, wire.PathCheckpoints}, st.acked...) {
		_, b := c.do("GET", path, nil)
		before = append(before, string(b))
	}
	clock.at = clock.at.Add(time.Minute)
	date := s.date()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	clock.at = clock.at.Add(time.Hour) // down for an hour, which nobody notices
	s, c = open(t, Options{Dir: dir, Clock: clock})
	if got := s.date(); got != date {
		t.Errorf("the clock: got %s, want it to have stood still at %s", got, date)
	}
	for i, path := range append([]string{wire.PathSessions, wire.PathResources, wire.PathCheckpoints}, st.acked...) {
		if _, b := c.do("GET", path, nil); string(b) != before[i] {
			t.Errorf("%s: got %s, want what it was before the restart, %s", path, b, before[i])
		}
	}
	if got := hashes(t, s, sessions); !slices.Equal(got, want) {
		t.Error("other weights than before the restart")
	}
	st.c = c
	st.tell(t) // every key answers its operation
	if got := hashes(t, s, sessions); !slices.Equal(got, want) {
		t.Error("a key was worked a second time")
	}
}

func TestAKilledServerNeverGoesBackInTime(t *testing.T) {
	clock := newHandClock()
	dir := t.TempDir()
	s, c := open(t, Options{Dir: dir, Clock: clock})
	r := c.resource(`{"base_model":"sandbox/bytes-tiny"}`)
	var seen time.Time
	for range 10 {
		clock.at = clock.at.Add(170 * time.Millisecond)
		c.getResource(r.ID)
		s.mu.Lock()
		seen = s.clock.now()
		s.mu.Unlock()
	}
	killed := t.TempDir()
	if err := copyDir(killed, dir); err != nil {
		t.Fatal(err)
	}
	s, _ = open(t, Options{Dir: killed, Clock: clock})
	s.mu.Lock()
	defer s.mu.Unlock()
	if got := s.clock.now(); got.Before(seen) || got.After(seen.Add(tick)) {
		t.Errorf("got %v after a kill at %v, want at most %v more", got, seen, tick)
	}
}

func TestAFolderHasOneServer(t *testing.T) {
	dir := t.TempDir()
	open(t, Options{Dir: dir})
	if _, err := Open(Options{Dir: dir}); err == nil || !strings.Contains(err.Error(), dir) {
		t.Errorf("a second server: got %v, want an error that names %s", err, dir)
	}
}

func TestADamagedLogIsRefused(t *testing.T) {
	dir := t.TempDir()
	s, c := open(t, Options{Dir: dir})
	c.resource(`{"base_model":"sandbox/bytes-tiny"}`)
	c.resource(`{"base_model":"sandbox/bytes-tiny"}`)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "server.log")
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	b[20] ^= 1
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(Options{Dir: dir}); err == nil || !strings.Contains(err.Error(), "damaged") {
		t.Errorf("got %v, want an error that says that the log is damaged", err)
	}
}

// sickStore fails from some record on.
type sickStore struct {
	store
	sick bool
}

func (f *sickStore) append(head, body []byte) (span, int64, error) {
	if f.sick {
		return span{}, 0, syscall.EIO
	}
	return f.store.append(head, body)
}

func TestWhenTheLogCannotBeWrittenNothingIsAccepted(t *testing.T) {
	s, c := open(t, Options{})
	sick := &sickStore{store: s.store}
	s.store = sick
	id := c.tiny()
	sick.sick = true
	e := c.refused(http.StatusInsufficientStorage, "POST", opsPath(id, wire.KindOptimStep), `{}`, wire.KeyHeader, "k")
	if !strings.Contains(e.Message, "input/output error") {
		t.Errorf("got %q, want the reason", e.Message)
	}
	c.refused(http.StatusInsufficientStorage, "GET", wire.PathSessions, "")
}

// brokenStore fails one file.
type brokenStore struct{ store }

func (brokenStore) put(name string, _ func(io.Writer) error) error {
	return fmt.Errorf("writing %s: no space left on device", name)
}

func TestACheckpointThatCannotBeWrittenFailsAndTheSessionGoesOn(t *testing.T) {
	s, c := open(t, Options{})
	id := c.tiny()
	c.loss(id, "", row("hello"))
	whole := s.store
	s.store = brokenStore{whole}
	op := c.wait(id, wire.KindTrainingCheckpoint, c.post(id, wire.KindTrainingCheckpoint, "").ID)
	if op.Status != wire.OperationFailed || op.Error.Code != wire.CodeInternalError {
		t.Errorf("got %+v, want FAILED with INTERNAL_ERROR", op)
	}
	c.run(id, wire.KindOptimStep, `{}`, nil)
	if got := c.getSession(id); got.Status != wire.SessionRunning || got.Step != 1 || len(got.TrainingCheckpoints) != 0 {
		t.Errorf("session: got %+v, want it RUNNING at step 1", got)
	}
}

func TestASnapshotThatCannotBeReadIsReplaced(t *testing.T) {
	dir := t.TempDir()
	s, c := open(t, Options{Dir: dir})
	sessions := newStory(c).tell(t)
	want := hashes(t, s, sessions)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for i, id := range sessions {
		path := filepath.Join(dir, filepath.FromSlash(snapshotFile(id)))
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, b[:len(b)/(2+9*i)], 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s, _ = open(t, Options{Dir: dir})
	if got := hashes(t, s, sessions); !slices.Equal(got, want) {
		t.Error("other weights than the snapshot had")
	}
}

func TestAReplayThatGivesAnotherResultFailsTheSession(t *testing.T) {
	dir := t.TempDir()
	s, c := open(t, Options{Dir: dir})
	id := c.tiny()
	// A result that this engine cannot have given, as another version of it would.
	c.loss(id, "", row("hello"))
	s.mu.Lock()
	op := s.state.sessions.byID[id].ops[0]
	output := op.output
	s.mu.Unlock()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	rewriteOutput(t, dir, output)
	s, c = open(t, Options{Dir: dir})
	c.keys = 1
	c.post(id, wire.KindOptimStep, `{}`)
	for c.getSession(id).Status == wire.SessionRunning {
		time.Sleep(time.Millisecond)
	}
	got := c.getSession(id)
	if got.Status != wire.SessionError || got.Error == nil || !strings.Contains(got.Error.Message, "another result") {
		t.Errorf("session: got %s %+v, want ERROR with the reason", got.Status, got.Error)
	}
	if _, err := s.WeightsHash(id); err == nil {
		t.Error("the weights have a hash, want an error")
	}
}

// rewriteOutput changes a digit of a result and seals the log anew.
func rewriteOutput(t *testing.T, dir string, output span) {
	if err := os.RemoveAll(filepath.Join(dir, "sessions")); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "server.log")
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	b[output.at+output.size-4] ^= 1
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	var chain uint32
	for off := 0; off < len(b); {
		size := func(i int) int { return int(b[i]) | int(b[i+1])<<8 | int(b[i+2])<<16 }
		head, body := size(off), size(off+4)
		from := off + frameLengths
		front, back, crc := seal(chain, b[from:from+head], b[from+head:from+head+body])
		if _, err := f.Write(slices.Concat(front, b[from+head:from+head+body], back)); err != nil {
			t.Fatal(err)
		}
		chain, off = crc, from+head+body+frameCRC
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestAPanicOfTheEngineEndsTheSessionAndNotTheServer(t *testing.T) {
	s, c := open(t, Options{})
	id, other := c.tiny(), c.tiny()
	sess := s.state.sessions.byID[id]
	sess.training.Lock()
	sess.trained = &trained{} // without a model, which no request can bring about
	sess.training.Unlock()
	op := c.wait(id, wire.KindOptimStep, c.post(id, wire.KindOptimStep, `{}`).ID)
	if op.Status != wire.OperationFailed || op.Error.Code != wire.CodeInternalError {
		t.Errorf("got %+v, want FAILED with INTERNAL_ERROR", op)
	}
	for c.getSession(id).Status == wire.SessionRunning {
		time.Sleep(time.Millisecond)
	}
	if got := c.getSession(id); got.Status != wire.SessionError || got.Error.Code != wire.SessionFailed {
		t.Errorf("session: got %s %+v, want ERROR", got.Status, got.Error)
	}
	c.refused(400, "POST", opsPath(id, wire.KindOptimStep), `{}`, wire.KeyHeader, "after")
	c.run(other, wire.KindOptimStep, `{}`, nil)
}
