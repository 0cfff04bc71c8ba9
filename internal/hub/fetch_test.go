package hub

import (
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"trainer/internal/hub/hubtest"
)

// long is the text of a file that the hub keeps on another host.
var long = strings.Repeat("0123456789abcdef", 4096)

// world is a hub on the loopback with a client of it.
func world(t *testing.T) (*hubtest.Hub, *Hub) {
	t.Helper()
	server := hubtest.New()
	t.Cleanup(server.Close)
	return server, client(t, server)
}

func client(t *testing.T, server *hubtest.Hub) *Hub {
	env := map[string]string{"HF_ENDPOINT": server.URL, "TRAINER_CACHE": t.TempDir()}
	return New(func(k string) string { return env[k] })
}

func rows(t *testing.T, h *Hub, name string) ([]File, error) {
	t.Helper()
	return h.Rows(context.Background(), Source{Name: name})
}

func TestRowsOfTheHub(t *testing.T) {
	server, h := world(t)
	commit := server.Add("datasets/a/b", map[string]string{"train.jsonl": "{}\n", "data.md": "x", "big/train.jsonl": long}, nil)
	server.Page = 1
	files, err := rows(t, h, "hf://datasets/a/b")
	if err != nil {
		t.Fatal(err)
	}
	// The folder tells before the file does, but big names no split: so both are told by their names.
	if len(files) != 2 || files[0].Name != "hf://datasets/a/b/big/train.jsonl" || files[0].Size != int64(len(long)) || filepath.Base(files[1].Path) != "train.jsonl" {
		t.Errorf("got %+v", files)
	}
	for _, f := range files {
		if raw, err := os.ReadFile(f.Path); err != nil || int64(len(raw)) != f.Size {
			t.Errorf("%s: %d bytes, %v", f.Path, len(raw), err)
		}
	}
	if got := h.Commits()["hf://datasets/a/b@main"]; got != commit {
		t.Errorf("Commits has %s, want %s", got, commit)
	}
	before := len(server.Asked())
	if _, err := rows(t, h, "hf://datasets/a/b"); err != nil || len(server.Asked()) != before {
		t.Errorf("the second time asks %v (%v)", server.Asked()[before:], err)
	}
}

func TestABranchThatMovesKeepsToTheCommitOfTheProcess(t *testing.T) {
	server, h := world(t)
	old := server.Add("datasets/a/b", map[string]string{"train.jsonl": "1"}, nil)
	if _, err := rows(t, h, "hf://datasets/a/b"); err != nil {
		t.Fatal(err)
	}
	server.Add("datasets/a/b", map[string]string{"train.jsonl": "2"}, nil)
	for _, c := range []struct {
		name, want string
		h          *Hub
	}{
		{"this process", "1", h},
		{"offline, as it was known", "1", &Hub{Offline: "it is tested"}},
		{"the next process", "2", &Hub{}},
		{"a pin", "1", &Hub{Pins: map[string]string{"hf://datasets/a/b@main": old}}},
		{"offline, as the next process saw it", "2", &Hub{Offline: "it is tested"}},
	} {
		c.h.Cache, c.h.Endpoint = h.Cache, h.Endpoint
		if got := read(t, c.h); got != c.want {
			t.Errorf("%s reads %q, want %q", c.name, got, c.want)
		}
	}
}

func read(t *testing.T, h *Hub) string {
	t.Helper()
	files, err := rows(t, h, "hf://datasets/a/b")
	if err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(files[0].Path)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func TestOfflineNeedsTheCache(t *testing.T) {
	server, h := world(t)
	commit := server.Add("datasets/a/b", map[string]string{"train.jsonl": "1"}, nil)
	h.Offline = "--online fetches it"
	for _, name := range []string{"hf://datasets/a/b", "hf://datasets/a/b@" + commit} {
		_, err := rows(t, h, name)
		var un *Uncached
		if !errors.As(err, &un) || err.Error() != name+": not in the cache; --online fetches it" {
			t.Errorf("got %v", err)
		}
	}
	if len(server.Asked()) != 0 {
		t.Errorf("offline asked %v", server.Asked())
	}
}

// cut answers with the first n bytes and breaks off.
func cut(w http.ResponseWriter, n int) {
	w.Header().Set("Content-Length", fmt.Sprint(len(long)))
	_, _ = w.Write([]byte(long[:n]))
	w.(http.Flusher).Flush()
	panic(http.ErrAbortHandler)
}

func TestWhatIsCutGoesOn(t *testing.T) {
	server, h := world(t)
	server.Add("datasets/a/b", map[string]string{"train.jsonl": long}, nil)
	var n atomic.Int32
	server.Fault = func(w http.ResponseWriter, r *http.Request) bool {
		if isLarge(r) && n.Add(1) == 1 {
			cut(w, 40_000)
		}
		return false
	}
	var retried, moved atomic.Int32
	h.Retried = func(string) { retried.Add(1) }
	h.Progress = func(_ string, done, size int64) {
		if size == int64(len(long)) && done <= size {
			moved.Add(1)
		}
	}
	if _, err := rows(t, h, "hf://datasets/a/b"); err != nil {
		t.Fatal(err)
	}
	asked := server.Asked()
	if last := asked[len(asked)-1]; !strings.HasSuffix(last, " bytes=40000-") || retried.Load() != 1 || moved.Load() == 0 {
		t.Errorf("asked %v, retried %d times, told of %d moves", asked, retried.Load(), moved.Load())
	}
}

func isLarge(r *http.Request) bool { return r.URL.Query().Has("Signature") }

func TestAPartOfAnEarlierProcessIsGoneOnFromOrThrownAway(t *testing.T) {
	for name, c := range map[string]struct {
		part string
		want int // bytes that are fetched
	}{
		"of the same bytes": {long[:1000], len(long) - 1000},
		"of other bytes":    {strings.Repeat("x", 1000), 2*len(long) - 1000},
		"longer than due":   {long + "x", len(long)},
		"whole":             {long, 0},
	} {
		t.Run(name, func(t *testing.T) {
			server, h := world(t)
			server.Add("datasets/a/b", map[string]string{"train.jsonl": long}, nil)
			key := content{sha256: sum(long)}.key()
			if err := os.MkdirAll(filepath.Dir(h.blob(key)), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(h.blob(key)+".part", []byte(c.part), 0o600); err != nil {
				t.Fatal(err)
			}
			var mu sync.Mutex
			got, last := 0, int64(min(len(c.part), len(long)))
			h.Progress = func(_ string, done, _ int64) {
				mu.Lock()
				defer mu.Unlock()
				if done <= last { // begun anew
					last = 0
				}
				got += int(done - last)
				last = done
			}
			if name == "longer than due" {
				last = 0
			}
			files, err := rows(t, h, "hf://datasets/a/b")
			if err != nil || files[0].SHA256 != sum(long) || got != c.want {
				t.Errorf("got %+v, %v; fetched %d bytes, want %d", files, err, got, c.want)
			}
		})
	}
}

func sum(text string) string {
	s := sha256.Sum256([]byte(text))
	return hex.EncodeToString(s[:])
}

// TestFaults is what comes when the network or the hub do not do as they should.
func TestFaults(t *testing.T) {
	once := func(f func(w http.ResponseWriter)) func(http.ResponseWriter, *http.Request) bool {
		var n atomic.Int32
		return func(w http.ResponseWriter, r *http.Request) bool {
			if isLarge(r) && n.Add(1) == 1 {
				f(w)
				return true
			}
			return false
		}
	}
	always := func(f func(w http.ResponseWriter, r *http.Request)) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, r *http.Request) bool {
			if isLarge(r) {
				f(w, r)
			}
			return isLarge(r)
		}
	}
	other := strings.Repeat("x", len(long))
	for _, c := range []struct {
		name  string
		fault func(http.ResponseWriter, *http.Request) bool
		want  string // a part of the error; empty: it succeeds
	}{
		{"429, then 200", once(func(w http.ResponseWriter) { w.Header().Set("Retry-After", "0"); w.WriteHeader(429) }), ""},
		{"429 with the hub's own header", once(func(w http.ResponseWriter) { w.Header().Set("RateLimit", `"resolvers";r=0;t=0`); w.WriteHeader(429) }), ""},
		{"503, then 200", once(func(w http.ResponseWriter) { w.WriteHeader(503) }), ""},
		{"other bytes once", once(func(w http.ResponseWriter) { _, _ = w.Write([]byte(other)) }), ""},
		{"other bytes always", always(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(other)) }), "it was changed on its way, or is not what was named"},
		{"more bytes than are due", always(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(long + "x")) }), "more came than the 65536 bytes that are due"},
		{"a gzip that nobody asked for", always(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			_, _ = z.Write([]byte(long))
			_ = z.Close()
		}), ""},
		{"a coding that is not known", always(func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Encoding", "br") }), `the coding "br", which was not asked for`},
		{"a redirect that leads to itself", always(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Location", r.URL.String())
			w.WriteHeader(302)
		}), "leads on and on, 10 times"},
		{"a redirect to another scheme", always(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", "ftp://127.0.0.1/x")
			w.WriteHeader(302)
		}), "leads to an address that is not followed"},
		{"gone", always(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(410) }), "answers 410 Gone"},
		{"a wait without measure", always(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "86400")
			w.WriteHeader(429)
		}), "429 Too Many Requests"},
	} {
		t.Run(c.name, func(t *testing.T) {
			server, h := world(t)
			server.Add("datasets/a/b", map[string]string{"train.jsonl": long}, nil)
			server.Fault = c.fault
			files, err := rows(t, h, "hf://datasets/a/b")
			switch {
			case c.want == "" && (err != nil || files[0].SHA256 != sum(long)):
				t.Errorf("got %+v, %v", files, err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "Signature")):
				t.Errorf("got %v, want %s", err, c.want)
			case c.want != "" && !strings.HasPrefix(err.Error(), "hf://datasets/a/b/train.jsonl: "):
				t.Errorf("%v: does not begin with the file", err)
			}
		})
	}
}

func TestAFileOfAnotherCommitThanWasListedIsRefused(t *testing.T) {
	server, h := world(t)
	server.Add("datasets/a/b", map[string]string{"train.jsonl": "1"}, nil)
	server.Fault = func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.Contains(r.URL.Path, "/resolve/") {
			return false
		}
		w.Header().Set("X-Repo-Commit", strings.Repeat("0", 40))
		_, _ = w.Write([]byte("2"))
		return true
	}
	if _, err := rows(t, h, "hf://datasets/a/b"); err == nil || !strings.Contains(err.Error(), "answers with the commit 0000") {
		t.Errorf("got %v", err)
	}
}

func TestASmallFileThatChangesBehindItsListIsRefused(t *testing.T) {
	server, h := world(t)
	server.Add("datasets/a/b", map[string]string{"train.jsonl": "1"}, nil)
	server.Fault = func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.Contains(r.URL.Path, "/resolve/") {
			return false
		}
		_, _ = w.Write([]byte("2"))
		return true
	}
	if _, err := rows(t, h, "hf://datasets/a/b"); err == nil || !strings.Contains(err.Error(), "has the git hash") {
		t.Errorf("got %v", err)
	}
}

func TestTheTokenStaysAtTheHub(t *testing.T) {
	server, h := world(t)
	server.Add("models/a/b", map[string]string{"tokenizer.json": long}, nil)
	server.Gate("models/a/b")
	server.Token = "hf_secret"
	_, err := h.Folder(context.Background(), "hf://a/b", "", "tokenizer.json")
	if err == nil || !strings.Contains(err.Error(), "is gated: accept its terms at "+server.URL+"/a/b, then set HF_TOKEN") {
		t.Errorf("without a token: %v", err)
	}
	h.Token = "hf_other"
	if _, err = h.Folder(context.Background(), "hf://a/b", "", "tokenizer.json"); err == nil || !strings.Contains(err.Error(), "with the account of your HF_TOKEN") || strings.Contains(err.Error(), h.Token) {
		t.Errorf("with another token: %v", err)
	}
	h.Token = server.Token
	f, err := h.Folder(context.Background(), "hf://a/b", "", "tokenizer.json", "*.model")
	if err != nil || server.Leaked() != 0 {
		t.Fatalf("%v; the token came to the other host %d times", err, server.Leaked())
	}
	if raw, err := os.ReadFile(filepath.Join(f.Path, "tokenizer.json")); err != nil || string(raw) != long {
		t.Errorf("got %d bytes, %v", len(raw), err)
	}
}

func TestDamageOfTheCacheIsMended(t *testing.T) {
	server, h := world(t)
	server.Add("datasets/a/b", map[string]string{"train.jsonl": long}, nil)
	files, err := rows(t, h, "hf://datasets/a/b")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(files[0].Path, []byte(strings.Repeat("x", len(long))), 0o600); err != nil {
		t.Fatal(err)
	}
	h.Offline = "HF_HUB_OFFLINE is set"
	if _, err := rows(t, h, "hf://datasets/a/b"); err == nil || !strings.Contains(err.Error(), "the cache is damaged") {
		t.Errorf("offline: %v", err)
	}
	h.Offline = ""
	if files, err = rows(t, h, "hf://datasets/a/b"); err != nil || files[0].SHA256 != sum(long) {
		t.Errorf("got %+v, %v", files, err)
	}
}

func TestTwoFetchTheSameOnce(t *testing.T) {
	server, h := world(t)
	server.Add("datasets/a/b", map[string]string{"train.jsonl": long}, nil)
	var all sync.WaitGroup
	for range 4 {
		one := &Hub{Cache: h.Cache, Endpoint: h.Endpoint}
		all.Go(func() {
			if _, err := rows(t, one, "hf://datasets/a/b"); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	n := len(slices.DeleteFunc(server.Asked(), func(line string) bool { return !strings.HasPrefix(line, "CDN") }))
	if n != 1 {
		t.Errorf("the content was fetched %d times", n)
	}
}

func TestAnAddressIsHeldToItsHash(t *testing.T) {
	server := hubtest.New()
	t.Cleanup(server.Close)
	server.Fault = func(w http.ResponseWriter, r *http.Request) bool {
		if r.Header.Get("Authorization") != "" {
			t.Error("the token came to an address that is not the hub's")
		}
		_, _ = w.Write([]byte(long))
		return true
	}
	h := client(t, server)
	h.Endpoint, h.Token = public, "hf_secret"
	h.Transport = plainly{}
	at := strings.Replace(server.URL, "http://", "https://", 1) + "/data/rows.jsonl"
	f, err := h.Rows(context.Background(), Source{Name: at, SHA256: strings.ToUpper(sum(long))})
	if err != nil || filepath.Base(f[0].Path) != "rows.jsonl" || f[0].Size != int64(len(long)) {
		t.Errorf("got %+v, %v", f, err)
	}
	if _, err := h.Rows(context.Background(), Source{Name: at, SHA256: sum("other")}); err == nil || !strings.Contains(err.Error(), "and "+sum("other")+" is due") {
		t.Errorf("another hash: %v", err)
	}
	for want, s := range map[string]Source{
		"needs the sha256 of its bytes": {Name: at},
		"leave subset out":              {Name: at, SHA256: sum(long), Subset: "x"},
		"carries a password":            {Name: "https://u:secret@example.org/x", SHA256: sum(long)},
		"is no address":                 {Name: "https://", SHA256: sum(long)},
	} {
		if _, err := h.Rows(context.Background(), s); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%+v: got %v, want %s", s, err, want)
		}
	}
}

// plainly sends https requests of a test to a server without a certificate.
type plainly struct{}

func (plainly) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.URL.Scheme = "http"
	return http.DefaultTransport.RoundTrip(r)
}

func TestNothingIsFetchedOnceTheContextEnds(t *testing.T) {
	server, h := world(t)
	server.Add("datasets/a/b", map[string]string{"train.jsonl": long}, nil)
	ctx, cancel := context.WithCancelCause(context.Background())
	cause := errors.New("enough")
	server.Fault = func(w http.ResponseWriter, r *http.Request) bool {
		if isLarge(r) {
			cancel(cause)
		}
		return false
	}
	if _, err := h.Rows(ctx, Source{Name: "hf://datasets/a/b"}); !errors.Is(err, cause) {
		t.Errorf("got %v", err)
	}
}

func TestATokenThatTheHubDoesNotKnow(t *testing.T) {
	server, h := world(t)
	server.Add("models/a/b", map[string]string{"tokenizer.json": "{}"}, nil)
	server.Fault = func(w http.ResponseWriter, r *http.Request) bool {
		if r.Header.Get("Authorization") == "" {
			return false
		}
		w.Header().Set("X-Error-Message", "Invalid credentials in Authorization header: "+r.Header.Get("Authorization"))
		w.WriteHeader(http.StatusUnauthorized)
		return true
	}
	h.Token = "hf_secret"
	_, err := h.Folder(context.Background(), "hf://a/b", "", "*.json")
	if want := "hf://a/b: the hub does not know the token: renew HF_TOKEN, or unset it for what is public"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	h.Token = ""
	if _, err := h.Folder(context.Background(), "hf://a/b", "", "*.model", "vocab.*"); err == nil || err.Error() != "hf://a/b: has none of *.model, vocab.*" {
		t.Errorf("got %v", err)
	}
	if _, err := h.Folder(context.Background(), "hf://a/b", "", "*.json"); err != nil {
		t.Error(err)
	}
}
