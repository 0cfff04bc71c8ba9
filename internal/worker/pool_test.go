package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// command is a stranger's program of the given kind.
func command(how, arg string) Command {
	return Command{Args: []string{os.Args[0]}, Env: []string{"STRANGER=" + how, "STRANGER_ARG=" + arg}, Kind: "reward", Run: "r1",
		Timeout: time.Minute, StartTimeout: time.Minute, Workers: 1, Retries: 2}
}

func opened(t *testing.T, c Command) *Pool {
	p := Start(t.Context(), c)
	t.Cleanup(p.Close)
	return p
}

// score asks for a sample and returns what the reply says.
func score(t *testing.T, p *Pool, sample string) (any, error) {
	t.Helper()
	body, err := json.Marshal(map[string]string{"sample": sample})
	if err != nil {
		t.Fatal(err)
	}
	raw, err := p.Ask(t.Context(), "score", body)
	if err != nil {
		return nil, err
	}
	var r struct{ Score any }
	if err := json.Unmarshal(raw, &r); err != nil {
		t.Fatal(err)
	}
	return r.Score, nil
}

func TestManyRequestsOfManyAskers(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"plain", "backwards", "talkative"} {
		t.Run(how, func(t *testing.T) {
			c := command(how, "")
			if how != "backwards" { // which waits for three requests before it answers the first
				c.Workers = 2
			}
			p := opened(t, c)
			var group sync.WaitGroup
			for i := range 60 {
				group.Go(func() {
					sample := strings.Repeat("s", i)
					if got, err := score(t, p, sample); err != nil || got != float64(i) {
						t.Errorf("sample of %d letters: %v, %v", i, got, err)
					}
				})
			}
			group.Wait()
		})
	}
}

// A program that leaves after each answer is started again, and no answer is lost.
func TestAProgramThatDiesIsStartedAgain(t *testing.T) {
	t.Parallel()
	p := opened(t, command("one reply a life", ""))
	for range 2 {
		if got, err := score(t, p, "s"); err != nil || got != 1.0 {
			t.Fatalf("%v, %v", got, err)
		}
	}
	if got, err := score(t, opened(t, command("second attempt", "")), "s"); err != nil || got != 1.0 {
		t.Errorf("second attempt: %v, %v", got, err)
	}
	hangs := command("hangs at first", "")
	hangs.Timeout, hangs.Retries = 2*time.Second, maxDeaths-1
	if got, err := score(t, opened(t, hangs), "s"); err != nil || got == 0.0 { // a slow machine may cut off more attempts than the first
		t.Errorf("hangs at first: %v, %v", got, err)
	}
}

func TestFiveDeathsWithoutAReplyEndTheRun(t *testing.T) {
	t.Parallel()
	c := command("dies", "hunter2")
	c.Retries, c.Secrets = 10, []string{"hunter2"}
	_, err := score(t, opened(t, c), "s")
	var fatal *Fatal
	if !errors.As(err, &fatal) || !strings.Contains(fatal.Msg, "segmentation fault of …") || !strings.Contains(fatal.Msg, "5 times") {
		t.Error(err)
	}
}

func TestAProgramThatIsNeverReadyEndsTheRun(t *testing.T) {
	t.Parallel()
	missing := command("plain", "")
	missing.Args = []string{filepath.Join(t.TempDir(), "no-such-program")}
	secret := command("not ready", "hunter2")
	secret.Secrets = []string{"hunter2"}
	for want, c := range map[string]Command{"no module named grade; the key is …": secret, "no-such-program": missing} {
		_, err := score(t, opened(t, c), "s")
		var fatal *Fatal
		if !errors.As(err, &fatal) || !strings.Contains(fatal.Msg, want) || strings.Contains(fatal.Msg, "hunter2") {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

func TestRepliesOfTheGoldenVectors(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile(filepath.Join("testdata", "protocol.json"))
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Cases []struct {
			Name    string
			Request struct{ Type string }
			Reply   *string
			Outcome map[string]any
		}
	}
	if err := json.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	for _, c := range file.Cases {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			cmd := command("dies", "")
			if c.Reply != nil {
				cmd = command("says", strings.NewReplacer(`"id":7`, `"id":1`, `"id":9`, `"id":1`, `"id":"7"`, `"id":"1"`).Replace(*c.Reply))
			}
			cmd.Retries, cmd.Timeout = 0, 2*time.Second
			if c.Outcome["restart"] != "timeout" {
				cmd.Timeout = time.Minute
			}
			_, err := opened(t, cmd).Ask(t.Context(), c.Request.Type, []byte(`{"sample":"s"}`))
			if got, want := outcomeOf(err), outcomeWanted(c.Outcome); got != want {
				t.Errorf("%v gives %s (%v), want %s", c.Reply, got, err, want)
			}
		})
	}
}

func outcomeOf(err error) string {
	var lost *Lost
	var fatal *Fatal
	switch {
	case errors.As(err, &lost):
		return lost.Reason
	case errors.As(err, &fatal):
		return "stop"
	case err != nil:
		return err.Error()
	}
	return "reply"
}

// outcomeWanted is what the vector's outcome is for the frame; what the reply says is the grader's.
func outcomeWanted(o map[string]any) string {
	switch {
	case o["restart"] == "died" || o["restart"] == "timeout":
		return o["restart"].(string)
	case o["restart"] != nil:
		return Protocol
	case o["retry"] != nil:
		return Failed
	case o["stop"] != nil:
		return "stop"
	}
	return "reply"
}

func TestAProgramKnowsWhatItWasPromisedAndNoMore(t *testing.T) {
	t.Parallel()
	all := map[string]string{"PATH": "/bin", "HOME": "/h", "TOGETHER_API_KEY": "tgp", "HF_TOKEN": "hf", "GRADER_TOKEN": "g", "STRANGER": "environment"}
	env, secrets, missing := Environment(func(name string) string { return all[name] }, []string{"GRADER_TOKEN", "STRANGER", "NOT_SET"})
	if !slices.Equal(missing, []string{"NOT_SET"}) || !slices.Equal(secrets, []string{"g", "environment"}) {
		t.Errorf("missing %q, secrets %q", missing, secrets)
	}
	c := command("", "")
	c.Env = env
	got, err := score(t, opened(t, c), "s")
	if want := []any{"PATH=/bin", "HOME=/h", "GRADER_TOKEN=g", "STRANGER=environment"}; err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%v, %v; want %v", got, err, want)
	}
}

func TestALineWithoutEndIsNoReply(t *testing.T) {
	t.Parallel()
	c := command("line without end", "")
	c.Retries = 0
	_, err := score(t, opened(t, c), "s")
	if outcomeOf(err) != Protocol {
		t.Error(err)
	}
}

func TestStderrGoesToTheLog(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var lines []string
	c := command("dies", "hunter2\x1b[2J")
	c.Retries, c.Secrets = 0, []string{"hunter2"}
	c.Log = func(line string) {
		mu.Lock()
		defer mu.Unlock()
		lines = append(lines, line)
	}
	_, err := score(t, opened(t, c), "s")
	mu.Lock()
	defer mu.Unlock()
	if outcomeOf(err) != Died || !slices.Contains(lines, "segmentation fault of …[2J") {
		t.Errorf("%v, %q", err, lines)
	}
}

func TestAskingEndsWithItsContext(t *testing.T) {
	t.Parallel()
	p := opened(t, command("says", "timeout"))
	ctx, cancel := context.WithCancelCause(t.Context())
	stop := errors.New("the person said stop")
	go cancel(stop)
	if _, err := p.Ask(ctx, "score", []byte(`{}`)); !errors.Is(err, stop) {
		t.Error(err)
	}
}

func TestBodiesThatAreNoObjectsAreRefused(t *testing.T) {
	t.Parallel()
	p := opened(t, command("plain", ""))
	for _, body := range []string{``, `[1]`, `{`, `{"a":1}}`, `nul`} {
		if _, err := p.Ask(t.Context(), "score", []byte(body)); outcomeOf(err) != Protocol {
			t.Errorf("%s: %v", body, err)
		}
	}
}

func TestTheBoundOfAFrameIsTheCommands(t *testing.T) {
	t.Parallel()
	small := command("plain", "")
	small.MaxFrame, small.Retries = 1000, 0
	if got, err := score(t, opened(t, small), strings.Repeat("s", 900)); err != nil || got != 900.0 {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := score(t, opened(t, small), strings.Repeat("s", 1000)); outcomeOf(err) != Protocol || !strings.Contains(err.Error(), "at most 1000 are sent") {
		t.Error(err)
	}
	long := command("says", strings.Repeat("x", 1500))
	long.MaxFrame, long.Retries = 1000, 0
	if _, err := score(t, opened(t, long), "s"); outcomeOf(err) != Protocol || !strings.Contains(err.Error(), "a line of more than 1000 bytes") {
		t.Error(err)
	}
	large := command("plain", "")
	large.MaxFrame = 32 << 20
	if got, err := score(t, opened(t, large), strings.Repeat("s", 17<<20)); err != nil || got != float64(17<<20) {
		t.Errorf("%v, %v", got, err)
	}
}

// What a program means by numbers that are none is said, since it is its commonest fault.
func TestNumbersThatAreNone(t *testing.T) {
	for line, want := range map[string]error{
		`{"v": 1, "id": 1, "loss": NaN}`:                    ErrNotANumber,
		`{"v": 1, "id": 1, "grads": [[0.5, -Infinity]]}`:    ErrNotANumber,
		`{"v":1,"id":1,"grads":[[Infinity,0]]}`:             ErrNotANumber,
		`{"v":1,"id":1,"reason":"was NaN"`:                  errNotJSON,
		`loss: NaN`:                                         errNotJSON,
		`{"v": 1, "id": 1, "reason": "it was NaN, or so"}`:  nil,
		`{"v": 1, "id": 1, "reason": "it was [NaN] or so"}`: nil,
	} {
		if _, err := parse([]byte(line)); err != want {
			t.Errorf("%s: got %v, want %v", line, err, want)
		}
	}
}

// Who wants to know of a number that is none is told at once, and the program works on; else it is a breach, told with what
// the program has printed.
func TestANumberThatIsNoneIsPassedOn(t *testing.T) {
	t.Parallel()
	c := command("nan at times", "")
	c.PassNaN = true
	p := opened(t, c)
	before, err := score(t, p, "s")
	if err != nil {
		t.Fatal(err)
	}
	for range maxDeaths + 1 {
		if _, err := score(t, p, ""); !errors.Is(err, ErrNotANumber) {
			t.Fatalf("got %v", err)
		}
	}
	if after, err := score(t, p, "s"); err != nil || after != before {
		t.Errorf("process %v answers, %v; before it was %v", after, err, before)
	}
	c.PassNaN, c.Retries = false, 0
	var lost *Lost
	if _, err := score(t, opened(t, c), ""); !errors.As(err, &lost) || lost.Reason != Protocol || !strings.Contains(lost.Said, "divided by zero") {
		t.Errorf("got %v, %+v", err, lost)
	}
}

func TestReadyStartsAProgramOrSaysWhyNot(t *testing.T) {
	p := opened(t, command("plain", ""))
	for range 2 { // the second is a process that is there
		if err := p.Ready(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := score(t, p, "abc"); err != nil || got != 3.0 {
		t.Errorf("scored %v, %v after it was ready", got, err)
	}
	c := command("plain", "")
	c.Args = []string{filepath.Join(t.TempDir(), "nothing")}
	var fatal *Fatal
	if err := opened(t, c).Ready(t.Context()); !errors.As(err, &fatal) || !strings.Contains(fatal.Msg, "nothing") {
		t.Errorf("a program that is not there is ready: %v", err)
	}
}

func TestEachAttemptWithoutAResultIsTold(t *testing.T) {
	told := make(chan string, 9)
	c := command("second attempt", "")
	c.Trouble = func(reason, msg string) { told <- reason + ": " + msg }
	if got, err := score(t, opened(t, c), "abc"); err != nil || got != 1.0 {
		t.Fatalf("scored %v, %v", got, err)
	}
	c = command("says", `{"v":1,"id":1,"error":"no token hunter2"}`)
	c.Trouble, c.Secrets = func(reason, msg string) { told <- reason + ": " + msg }, []string{"hunter2"}
	if _, err := score(t, opened(t, c), "abc"); err != nil {
		t.Fatal(err)
	}
	close(told)
	var got []string
	for line := range told {
		got = append(got, line)
	}
	if want := []string{"died: it ended", "error: no token …"}; !slices.Equal(got, want) {
		t.Errorf("told %q, want %q", got, want)
	}
}
