package worker

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// inside carries requests to a handler without a network, so that pauses cost nothing in a bubble.
type inside struct{ h http.Handler }

func (i inside) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	i.h.ServeHTTP(w, r)
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	return w.Result(), nil
}

// grading answers with what answer says of the n-th request, from 0.
func grading(answer func(n int, w http.ResponseWriter, r *http.Request)) (Address, *[]http.Request) {
	var mu sync.Mutex
	var seen []http.Request
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		n := len(seen)
		seen = append(seen, *r)
		mu.Unlock()
		answer(n, w, r)
	})
	env := map[string]string{"GRADER_TOKEN": "hunter2"}
	return Address{URL: "https://grader.example/score?k=1", Headers: map[string]string{"Authorization": "Bearer ${env:GRADER_TOKEN}"},
		Getenv: func(name string) string { return env[name] }, Run: "r1", Params: map[string]any{"a": 1}, Timeout: 10 * time.Second, Retries: 2,
		Concurrency: 2, Transport: inside{h}}, &seen
}

func answers(w io.Writer, text string) { _, _ = io.WriteString(w, text) }

const half = `{"v":1,"score":0.5}`

func TestAnAddressIsAskedInOneObject(t *testing.T) {
	var body map[string]any
	a, seen := grading(func(_ int, w http.ResponseWriter, r *http.Request) {
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			t.Error(err)
		}
		answers(w, half)
	})
	got, err := Dial(a).Ask(t.Context(), "score", "b0.p1.m2", []byte(`{"sample":"b0.p1.m2"}`))
	if err != nil || string(got) != half {
		t.Fatalf("%s, %v", got, err)
	}
	if r := (*seen)[0]; r.Method != "POST" || r.Header.Get("Authorization") != "Bearer hunter2" || r.Header.Get("Idempotency-Key") == "" {
		t.Errorf("%s %v", r.Method, r.Header)
	}
	if body["v"] != 1.0 || body["type"] != "score" || body["sample"] != "b0.p1.m2" || body["run"] != "r1" || body["attempt"] != 0.0 {
		t.Error(body)
	}
}

func TestFaultsThatMayPassAreTriedAgain(t *testing.T) {
	for name, first := range map[string]func(w http.ResponseWriter){
		"408": func(w http.ResponseWriter) { w.WriteHeader(408) }, "425": func(w http.ResponseWriter) { w.WriteHeader(425) },
		"429": func(w http.ResponseWriter) { w.Header().Set("Retry-After", "7"); w.WriteHeader(429) },
		"503": func(w http.ResponseWriter) { w.WriteHeader(503) }, "no JSON": func(w http.ResponseWriter) { answers(w, "<html>") },
		"busy":    func(w http.ResponseWriter) { answers(w, `{"v":1,"error":"busy","retry":true}`) },
		"version": func(w http.ResponseWriter) { answers(w, `{"v":2,"score":1}`) },
	} {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			a, seen := grading(func(n int, w http.ResponseWriter, _ *http.Request) {
				if n == 0 {
					first(w)
				} else {
					answers(w, half)
				}
			})
			if got, err := Dial(a).Ask(t.Context(), "score", "s", []byte(`{}`)); err != nil || string(got) != half || len(*seen) != 2 {
				t.Errorf("%s: %s, %v after %d requests", name, got, err, len(*seen))
			}
			if waited := time.Since(began); name == "429" && waited != 7*time.Second || waited < 500*time.Millisecond {
				t.Errorf("%s: waited %s", name, waited)
			}
			if keys := *seen; keys[0].Header.Get("Idempotency-Key") != keys[1].Header.Get("Idempotency-Key") {
				t.Errorf("%s: the second attempt has another key", name)
			}
		})
	}
}

func TestWhatStaysWithoutAReplyIsLost(t *testing.T) {
	for want, answer := range map[string]func(w http.ResponseWriter, r *http.Request){
		Failed:   func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) },
		Protocol: func(w http.ResponseWriter, _ *http.Request) { answers(w, "[1]") },
		TimedOut: func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
	} {
		synctest.Test(t, func(t *testing.T) {
			a, seen := grading(func(_ int, w http.ResponseWriter, r *http.Request) { answer(w, r) })
			_, err := Dial(a).Ask(t.Context(), "score", "s", []byte(`{}`))
			if outcomeOf(err) != want || len(*seen) != 3 || strings.Contains(err.Error(), "k=1") {
				t.Errorf("%v after %d requests, want %s", err, len(*seen), want)
			}
		})
	}
}

func TestARefusalEndsTheRun(t *testing.T) {
	for want, answer := range map[string]func(w http.ResponseWriter){
		"401 Unauthorized: no such token …": func(w http.ResponseWriter) { w.WriteHeader(401); answers(w, "no such token hunter2\nmore") },
		"redirects are not followed":        func(w http.ResponseWriter) { w.Header().Set("Location", "https://elsewhere/"); w.WriteHeader(307) },
		"no licence for …":                  func(w http.ResponseWriter) { answers(w, `{"v":1,"error":"no licence for hunter2","fatal":true}`) },
	} {
		a, seen := grading(func(_ int, w http.ResponseWriter, _ *http.Request) { answer(w) })
		_, err := Dial(a).Ask(t.Context(), "score", "s", []byte(`{}`))
		var fatal *Fatal
		if !errors.As(err, &fatal) || !strings.Contains(fatal.Msg, want) || len(*seen) != 1 || strings.Contains(fatal.Msg, "hunter2") || strings.Contains(fatal.Msg, "k=1") {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

func TestAHeaderWithoutItsVariableIsNotSent(t *testing.T) {
	a, seen := grading(func(int, http.ResponseWriter, *http.Request) {})
	a.Headers = map[string]string{"X-Key": "${env:NOT_SET}"}
	_, err := Dial(a).Ask(t.Context(), "score", "s", []byte(`{}`))
	if err == nil || !strings.Contains(err.Error(), "NOT_SET") || len(*seen) != 0 {
		t.Error(err)
	}
}

func TestAModelIsAskedAtTemperatureZero(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var body map[string]any
		a, seen := grading(func(n int, w http.ResponseWriter, r *http.Request) {
			if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
				t.Error(err)
			}
			if n == 0 {
				answers(w, `{"choices":[]}`)
			} else {
				answers(w, `{"choices":[{"message":{"role":"assistant","content":"{\"score\": 7}"}}]}`)
			}
		})
		a.URL = "https://judge.example/v1/"
		got, err := DialChat(a, "some/judge", 99).Reply(t.Context(), "judge this")
		if err != nil || got != `{"score": 7}` || len(*seen) != 2 || (*seen)[1].URL.Path != "/v1/chat/completions" {
			t.Errorf("%q, %v, %d requests", got, err, len(*seen))
		}
		if body["model"] != "some/judge" || body["temperature"] != 0.0 || body["max_tokens"] != 99.0 {
			t.Error(body)
		}
	})
}
