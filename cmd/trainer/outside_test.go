package main

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"trainer/internal/grader"
	"trainer/runner"
)

// kindOf is a fresh reward of a kind.
func kindOf(t *testing.T, name string) grader.Grader {
	t.Helper()
	for _, k := range grader.Kinds() {
		if k.Name == name {
			return k.New()
		}
	}
	t.Fatalf("no reward %s", name)
	return nil
}

// leave is an outside with the given hosts and environment.
func leave(t *testing.T, env map[string]string, hosts ...string) *outside {
	o := &outside{getenv: func(name string) string { return env[name] }, hosts: hosts}
	o.ctx, o.cancel = context.WithCancel(t.Context())
	t.Cleanup(o.Close)
	return o
}

func TestAnAddressIsAskedWithLeaveAlone(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/score":
			_, _ = io.WriteString(w, `{"v":1,"score":0.25}`)
		case "/v1/chat/completions":
			if r.Header.Get("Authorization") != "Bearer hunter2" {
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
			_, _ = io.WriteString(w, `{"choices":[{"message":{"content":"{\"score\": 5}"}}]}`)
		}
	}))
	defer server.Close()
	env := map[string]string{judgeURL: server.URL + "/v1", judgeKey: "hunter2"}
	for name, want := range map[string]float64{"http": 0.25, "judge": 0.5} {
		g := kindOf(t, name).(grader.Outside)
		if h, ok := g.(*grader.HTTP); ok {
			h.URL = server.URL + "/score"
		}
		if err := leave(t, env, "grader.example").Connect(g, "reward.0", "."); !errors.Is(err, runner.ErrNotAllowed) || g.Allowed() {
			t.Errorf("%s without leave: %v", name, err)
		}
		if err := leave(t, env, "127.0.0.1").Connect(g, "reward.0", "."); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got, err := g.Grade(t.Context(), grader.Completion{Sample: "s", Text: "a"}); err != nil || got.Value != want {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

func TestWhatARewardLacksIsNamed(t *testing.T) {
	c := kindOf(t, "command").(*grader.Command)
	c.Command, c.Env = []string{"sh"}, []string{"NOT_SET"}
	o := leave(t, nil)
	o.exec = true
	if err := o.Connect(c, "reward.0", "."); err == nil || !strings.Contains(err.Error(), "NOT_SET") {
		t.Error(err)
	}
	for want, env := range map[string]map[string]string{judgeURL: nil, "must be https": {judgeURL: "http://judge.example"}} {
		if err := leave(t, env, "judge.example").Connect(kindOf(t, "judge").(*grader.Judge), "reward.0", "."); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
