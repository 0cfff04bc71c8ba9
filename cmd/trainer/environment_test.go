package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"trainer/internal/rollout"
	"trainer/recipe"
	"trainer/runner"
)

// opening is an episode that asks for a sum.
func opening(name string) rollout.Opening {
	return rollout.Opening{Episode: name, Seed: 7, Row: json.RawMessage(`{}`), Target: json.RawMessage(`"408"`), Prompt: json.RawMessage(`[{"role":"user","content":"12*34?"}]`)}
}

// TestAnEnvironmentBehindAnAddress is asked with leave alone, step by step, under a key a request, and told of the end.
func TestAnEnvironmentBehindAnAddress(t *testing.T) {
	var mu sync.Mutex
	var types []string
	keys := map[string]bool{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var q struct {
			Type, Episode, Run string
			Turn               int
			Params             map[string]any
		}
		if err := json.NewDecoder(r.Body).Decode(&q); err != nil || q.Episode != "b0.p0.m0" || q.Params["max"] != 9.0 || q.Run == "" {
			t.Errorf("%+v, %v", q, err)
		}
		mu.Lock()
		defer mu.Unlock()
		types = append(types, q.Type)
		if key := r.Header.Get("Idempotency-Key"); key != "" {
			keys[key] = true
		}
		switch {
		case q.Type == "reset":
			_, _ = io.WriteString(w, `{"v":1,"messages":[{"role":"user","content":"other"}]}`)
		case q.Type == "step" && q.Turn == 2:
			_, _ = io.WriteString(w, `{"v":1,"reward":null,"done":true}`)
		case q.Type == "step":
			_, _ = io.WriteString(w, `{"v":1,"reward":0.5,"done":false,"messages":[{"role":"user","content":"go on"}]}`)
		}
	}))
	defer server.Close()
	e := &recipe.Env{Type: "http", URL: server.URL, Params: map[string]any{"max": 9}, Timeout: 3600e9, Concurrency: 1}
	if _, err := leave(t, nil, "env.example").Environment(e, "rollout.env", "."); !errors.Is(err, runner.ErrNotAllowed) {
		t.Errorf("without leave: %v", err)
	}
	env, err := leave(t, nil, "127.0.0.1").Environment(e, "rollout.env", ".")
	if err != nil {
		t.Fatal(err)
	}
	scene, episode, err := env.Reset(t.Context(), opening("b0.p0.m0"), 0)
	if err != nil || !strings.Contains(string(scene.Messages), "other") {
		t.Fatal(scene, err)
	}
	for turn := range 2 {
		r, err := episode.Step(t.Context(), rollout.Turn{Episode: "b0.p0.m0", Turn: turn})
		if err != nil || r.Done || r.Reward == nil || *r.Reward != 0.5 {
			t.Errorf("turn %d: %+v, %v", turn, r, err)
		}
	}
	var lost *rollout.Unplayed
	if _, err := episode.Step(t.Context(), rollout.Turn{Episode: "b0.p0.m0", Turn: 2}); !errors.As(err, &lost) || lost.Why != "null" || lost.Again {
		t.Errorf("a reward of null: %v", err)
	}
	episode.Close()
	if got := strings.Join(types, " "); got != "reset step step step close" || len(keys) != 4 {
		t.Errorf("asked %s under %d keys", got, len(keys))
	}
}

// TestTheCalculatorTakesToolCalls plays the environment that ships as a model with tool calls would.
func TestTheCalculatorTakesToolCalls(t *testing.T) {
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("python3 is not here")
	}
	o := leave(t, map[string]string{"PATH": "/usr/local/bin:/usr/bin:/bin"})
	python, _ := exec.LookPath("python3")
	e := &recipe.Env{Type: "command", Command: []string{python, "calculator.py"}, Workers: 1, Timeout: 3600e9, StartTimeout: 3600e9, Params: map[string]any{"tools": true}}
	dir := filepath.Join("..", "..", "recipes", "calculator")
	if _, err := o.Environment(e, "rollout.env", dir); !errors.Is(err, runner.ErrNotAllowed) {
		t.Errorf("without leave: %v", err)
	}
	o.exec = true
	env, err := o.Environment(e, "rollout.env", dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ arguments, result, answer, rewards string }{
		{`{"expression":"12*34"}`, "408", "408", "0.1 0.9"},
		{`{"expression":"12*34"}`, "408", "407", "0.1 0"},
		{`{"expression":"12*30"}`, "360", "408", "0 0.9"},
		{`{"expression":"__import__('os')"}`, "not an expression", "", "0 0"},
		{`{"expression":"9**9**9"}`, "not an expression", "", "0 0"},
		{`[]`, "not an expression", "", "0 0"},
	} {
		scene, episode, err := env.Reset(t.Context(), opening("e"), 0)
		if err != nil || !strings.Contains(string(scene.Tools), `"calculate"`) {
			t.Fatal(scene, err)
		}
		call := rollout.ToolCall{ID: "call_0_0", Type: "function", Function: rollout.Function{Name: "calculate", Arguments: c.arguments}}
		first, err := episode.Step(t.Context(), rollout.Turn{Episode: "e", Message: rollout.Assistant{Role: "assistant", ToolCalls: []rollout.ToolCall{call}}})
		if err != nil || first.Done || !strings.Contains(string(first.Messages), `"tool_call_id": "call_0_0"`) || !strings.Contains(string(first.Messages), `"`+c.result+`"`) {
			t.Errorf("%s: %+v %s, %v", c.arguments, first, first.Messages, err)
			continue
		}
		second, err := episode.Step(t.Context(), rollout.Turn{Episode: "e", Turn: 1, Message: rollout.Assistant{Role: "assistant", Content: c.answer, ToolCalls: []rollout.ToolCall{}}})
		if err != nil || !second.Done {
			t.Errorf("%s: %+v, %v", c.answer, second, err)
			continue
		}
		if pays := fmt.Sprint(*first.Reward, *second.Reward); pays != c.rewards {
			t.Errorf("%s, then %s: pays %s, want %s", c.arguments, c.answer, pays, c.rewards)
		}
		episode.Close()
	}
}
