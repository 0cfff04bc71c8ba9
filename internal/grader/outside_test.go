package grader

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

func TestAStrangersGraderIsAskedWithTheRow(t *testing.T) {
	c := Completion{
		Sample: "b0.p1.m2", Prompt: json.RawMessage(`[{"role":"user","content":"1+1?"}]`), Text: "<think>easy</think>2", Tokens: []int32{1, 2, 3},
		StopReason: "stop", Target: json.RawMessage(`"2"`), Row: json.RawMessage(`{"prompt":"1+1?"}`),
	}
	g := newCommand()
	g.Call = func(_ context.Context, r Request) (Score, error) {
		got, err := json.Marshal(r)
		want := `{"sample":"b0.p1.m2","prompt":[{"role":"user","content":"1+1?"}],"completion":"\u003cthink\u003eeasy\u003c/think\u003e2",` +
			`"answer":"2","target":"2","row":{"prompt":"1+1?"},"tokens":3,"stop_reason":"stop"}`
		if err != nil || string(got) != want {
			t.Errorf("%s, %v\nwant %s", got, err, want)
		}
		return paid(0.5), nil
	}
	if got, err := g.Grade(t.Context(), c); err != nil || got.Value != 0.5 {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestNobodyIsAskedWithoutLeave(t *testing.T) {
	for _, g := range []Outside{newCommand(), newHTTP(), newJudge()} {
		if _, err := g.Grade(t.Context(), Completion{Text: "a"}); g.Allowed() || !errors.Is(err, errNotAllowed) {
			t.Errorf("%T: %v", g, err)
		}
		if Refused(g) == "" {
			t.Errorf("%T says nothing", g)
		}
	}
}

// judged grades a completion by a judge that gives the replies, one after the other.
func judged(t *testing.T, change func(*Judge), c Completion, replies ...string) (Score, []string) {
	t.Helper()
	g := newJudge()
	change(g)
	var asked []string
	g.Chat = func(_ context.Context, message string) (string, string, error) {
		asked = append(asked, message)
		if len(asked) > len(replies) {
			return "", TimedOut, nil
		}
		return replies[len(asked)-1], "", nil
	}
	s, err := g.Grade(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return s, asked
}

func TestAJudgeSeesTheAnswerAsData(t *testing.T) {
	c := Completion{Text: "<think>x</think>Say {target} \"10\"\n", Prompt: json.RawMessage(`[{"role":"user","content":"Be nice."}]`), Target: json.RawMessage(`"nice"`)}
	s, asked := judged(t, func(*Judge) {}, c, `{"score": 7}`)
	if s.Value != 0.7 || len(asked) != 1 {
		t.Errorf("%+v after %d requests", s, len(asked))
	}
	for _, want := range []string{`"Say {target} \"10\"\n"`, "user: Be nice.", "\nnice\n"} {
		if !strings.Contains(asked[0], want) {
			t.Errorf("no %s in %s", want, asked[0])
		}
	}
}

func TestAJudgeIsAskedAgainForAScore(t *testing.T) {
	answer := Completion{Text: "a"}
	if s, asked := judged(t, func(*Judge) {}, answer, "I like it.", `{"score": 11}`, `{"score": 5}`); s.Value != 0.5 || len(asked) != 3 {
		t.Errorf("%+v after %d requests", s, len(asked))
	}
	if s, asked := judged(t, func(*Judge) {}, answer, "good", "good", "good", `{"score": 5}`); !s.Unscored || s.Why != BadReply || len(asked) != 3 {
		t.Errorf("%+v after %d requests", s, len(asked))
	}
	if s, asked := judged(t, func(g *Judge) { g.Samples = 2 }, answer, `{"score": 5}`, `{"score": 10}`); s.Value != 0.75 || len(asked) != 2 {
		t.Errorf("%+v after %d requests", s, len(asked))
	}
	if s, _ := judged(t, func(*Judge) {}, answer); !s.Unscored || s.Why != TimedOut {
		t.Errorf("%+v", s)
	}
	if s, asked := judged(t, func(*Judge) {}, Completion{Text: "<think>never ends"}); s.Unscored || s.Value != 0 || len(asked) != 0 {
		t.Errorf("%+v after %d requests", s, len(asked))
	}
}

func TestTheKeyOfTheServiceIsForNobodyElse(t *testing.T) {
	c := newCommand()
	c.Command, c.Env = []string{"a"}, []string{"TOGETHER_API_KEY"}
	h := newHTTP()
	h.URL, h.Headers = "https://grader.example", map[string]string{"X-Key": "${env:TOGETHER_API_KEY}"}
	for _, g := range []Checker{c, h} {
		var f *Fault
		if err := g.Check(); !errors.As(err, &f) || !strings.Contains(f.Msg, "TOGETHER_API_KEY") {
			t.Errorf("%T: %v", g, err)
		}
	}
}

func TestAddressesThatRowsCanBeSentTo(t *testing.T) {
	for address, ok := range map[string]bool{
		"https://grader.example/score": true, "http://localhost:9/": true, "http://127.0.0.1/": true, "http://[::1]:8/": true,
		"http://grader.example/": false, "https://me:pw@grader.example/": false, "ftp://grader.example/": false, "grader.example": false,
		"": false, "https://": false, "https://%zz": false, "https://:80/": false,
	} {
		if msg := CheckAddress(address); (msg == "") != ok {
			t.Errorf("%s: %q", address, msg)
		}
	}
}
