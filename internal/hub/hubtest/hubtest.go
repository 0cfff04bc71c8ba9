// Package hubtest is a small hub on the loopback, for tests: repositories in memory behind the part of the hub's HTTP interface
// that downloads use. It behaves as the public one does where a client can go wrong: revisions resolve to commits, listings come in
// pages, large files are pointers whose bytes another host has, what is gated or not there says so in X-Error-Code.
package hubtest

import (
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
)

// Hub is a server and its content host. Its fields are set before the first request.
type Hub struct {
	URL string // of the hub
	CDN string // of the host that has the large files

	// Token is the one that opens what is gated.
	Token string
	// Page is how many entries a page of a listing has; 0: 1000.
	Page int
	// Fault, where it is not nil, sees every request first, those to the CDN too, and answers those that it returns true for.
	Fault func(w http.ResponseWriter, r *http.Request) bool

	web, cdn *httptest.Server
	mu       sync.Mutex
	repos    map[string]*repo // by kind/org/name
	large    map[string][]byte
	asked    []string
	leaked   int
}

type repo struct {
	gated   bool
	refs    map[string]string
	commits map[string]commit
}

type commit struct {
	files map[string]string
	card  any
}

// largeFrom is the size in bytes from which a file is a pointer, and .parquet always is.
const largeFrom = 256

// New starts a hub without repositories. Close ends it.
func New() *Hub {
	h := &Hub{repos: map[string]*repo{}, large: map[string][]byte{}}
	h.web = httptest.NewServer(http.HandlerFunc(h.serve))
	h.cdn = httptest.NewServer(http.HandlerFunc(h.serveLarge))
	h.URL, h.CDN = h.web.URL, h.cdn.URL
	return h
}

// Close ends both servers.
func (h *Hub) Close() { h.web.Close(); h.cdn.Close() }

// Add commits files, by path, to main of a repository, whose name is models/org/name or datasets/org/name; card is what its README says
// above the text, as JSON has it. It returns the commit.
func (h *Hub) Add(name string, files map[string]string, card any) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	r := h.repos[name]
	if r == nil {
		r = &repo{refs: map[string]string{}, commits: map[string]commit{}}
		h.repos[name] = r
	}
	sum := sha1.New()
	fmt.Fprintf(sum, "%s %s %v", name, r.refs["main"], card)
	for _, path := range slices.Sorted(maps.Keys(files)) {
		fmt.Fprintf(sum, "%s %q\n", path, files[path])
		if isLarge(path, files[path]) {
			h.large[sha(files[path])] = []byte(files[path])
		}
	}
	id := hex.EncodeToString(sum.Sum(nil))
	r.commits[id], r.refs["main"] = commit{maps.Clone(files), card}, id
	return id
}

// Tag names a commit of a repository.
func (h *Hub) Tag(name, tag, commit string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.repos[name].refs[tag] = commit
}

// Gate asks for Token, and terms that were accepted, before a file of a repository is given; what it has, everybody may know.
func (h *Hub) Gate(name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.repos[name].gated = true
}

// Asked are the requests so far, as "GET /path" or "CDN /path", with the range where one was asked for.
func (h *Hub) Asked() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.asked)
}

// Leaked counts the requests that brought a token to the CDN.
func (h *Hub) Leaked() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.leaked
}

func (h *Hub) note(host string, r *http.Request) {
	h.mu.Lock()
	defer h.mu.Unlock()
	line := host + " " + r.URL.EscapedPath()
	if g := r.Header.Get("Range"); g != "" {
		line += " " + g
	}
	h.asked = append(h.asked, line)
}

func (h *Hub) serveLarge(w http.ResponseWriter, r *http.Request) {
	h.note("CDN", r)
	if r.Header.Get("Authorization") != "" {
		h.mu.Lock()
		h.leaked++
		h.mu.Unlock()
		http.Error(w, "an authorization beside a signature", http.StatusBadRequest)
		return
	}
	if h.Fault != nil && h.Fault(w, r) {
		return
	}
	h.mu.Lock()
	data, ok := h.large[strings.TrimPrefix(r.URL.Path, "/")]
	h.mu.Unlock()
	if !ok || r.URL.Query().Get("Signature") == "" {
		http.Error(w, "", http.StatusForbidden)
		return
	}
	w.Header().Set("ETag", `"cdn-`+sha(string(data))[:16]+`"`)
	http.ServeContent(w, r, "", time.Time{}, strings.NewReader(string(data)))
}

func (h *Hub) serve(w http.ResponseWriter, r *http.Request) {
	h.note("GET", r)
	if h.Fault != nil && h.Fault(w, r) {
		return
	}
	path, api := strings.CutPrefix(r.URL.EscapedPath(), "/api/")
	path = strings.TrimPrefix(path, "/")
	if !api && !strings.HasPrefix(path, "datasets/") {
		path = "models/" + path
	}
	parts := strings.SplitN(path, "/", 6)
	if len(parts) < 4 {
		refuse(w, http.StatusNotFound, "", "Not Found")
		return
	}
	for i := range parts {
		parts[i], _ = url.PathUnescape(parts[i])
	}
	name, call := strings.Join(parts[:3], "/"), parts[3]
	h.mu.Lock()
	repo := h.repos[name]
	h.mu.Unlock()
	given := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	switch {
	case repo == nil && given == "":
		refuse(w, http.StatusUnauthorized, "", "Invalid username or password.")
		return
	case repo == nil:
		refuse(w, http.StatusNotFound, "RepoNotFound", "Repository not found")
		return
	case repo.gated && !api && given == "":
		refuse(w, http.StatusUnauthorized, "GatedRepo", "Access to model "+name+" is restricted.")
		return
	case repo.gated && !api && given != h.Token:
		refuse(w, http.StatusForbidden, "GatedRepo", "Access to model "+name+" is restricted and you are not in the authorized list.")
		return
	}
	h.answer(w, r, repo, name, api, call, parts[4:])
}

// answer serves a call about a repository; rest is its revision and what follows.
func (h *Hub) answer(w http.ResponseWriter, r *http.Request, repo *repo, name string, api bool, call string, rest []string) {
	h.mu.Lock()
	refs := maps.Clone(repo.refs)
	h.mu.Unlock()
	if api && call == "refs" {
		list := []map[string]string{}
		for _, ref := range slices.Sorted(maps.Keys(refs)) {
			list = append(list, map[string]string{"name": ref, "targetCommit": refs[ref]})
		}
		reply(w, map[string]any{"branches": list, "tags": []any{}})
		return
	}
	rev := ""
	if len(rest) > 0 {
		rev = rest[0]
	}
	id := rev
	if c, ok := refs[rev]; ok {
		id = c
	}
	h.mu.Lock()
	c, ok := repo.commits[id]
	h.mu.Unlock()
	switch {
	case !ok:
		refuse(w, http.StatusNotFound, "RevisionNotFound", "Invalid rev id: "+rev)
	case api && call == "revision":
		reply(w, map[string]any{"id": strings.SplitN(name, "/", 2)[1], "sha": id, "cardData": c.card, "gated": repo.gated})
	case api && call == "tree":
		h.tree(w, r, c)
	case !api && call == "resolve" && len(rest) == 2:
		h.resolve(w, r, id, c, rest[1])
	default:
		refuse(w, http.StatusNotFound, "", "Not Found")
	}
}

func (h *Hub) tree(w http.ResponseWriter, r *http.Request, c commit) {
	size := h.Page
	if size == 0 {
		size = 1000
	}
	paths := slices.Sorted(maps.Keys(c.files))
	from, _ := slices.BinarySearch(paths, r.URL.Query().Get("cursor"))
	to := min(from+size, len(paths))
	list := []map[string]any{{"type": "directory", "oid": blob("folder"), "size": 0, "path": "a-folder"}}
	for _, p := range paths[from:to] {
		text := c.files[p]
		e := map[string]any{"type": "file", "oid": blob(text), "size": len(text), "path": p}
		if isLarge(p, text) {
			pointer := "version https://git-lfs.github.com/spec/v1\noid sha256:" + sha(text) + "\n"
			e["oid"], e["lfs"] = blob(pointer), map[string]any{"oid": sha(text), "size": len(text), "pointerSize": len(pointer)}
		}
		list = append(list, e)
	}
	if to < len(paths) {
		w.Header().Set("Link", fmt.Sprintf(`<%s%s?recursive=true&cursor=%s>; rel="next"`, h.URL, r.URL.EscapedPath(), url.QueryEscape(paths[to])))
	}
	reply(w, list)
}

func (h *Hub) resolve(w http.ResponseWriter, r *http.Request, id string, c commit, escaped string) {
	path, err := url.PathUnescape(escaped)
	text, ok := c.files[path]
	w.Header().Set("X-Repo-Commit", id)
	switch {
	case err != nil || !ok:
		refuse(w, http.StatusNotFound, "EntryNotFound", "Entry not found")
	case isLarge(path, text):
		w.Header().Set("X-Linked-Etag", `"`+sha(text)+`"`)
		w.Header().Set("X-Linked-Size", fmt.Sprint(len(text)))
		w.Header().Set("Location", h.CDN+"/"+sha(text)+"?Signature=secret&Expires=1")
		w.WriteHeader(http.StatusFound)
	default:
		w.Header().Set("ETag", `"`+blob(text)+`"`)
		http.ServeContent(w, r, "", time.Time{}, strings.NewReader(text))
	}
}

func refuse(w http.ResponseWriter, status int, code, text string) {
	if code != "" {
		w.Header().Set("X-Error-Code", code)
	}
	w.Header().Set("X-Error-Message", text)
	w.WriteHeader(status)
}

func reply(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v) // to a client that may have gone
}

func isLarge(path, text string) bool {
	return len(text) >= largeFrom || strings.HasSuffix(path, ".parquet")
}

func sha(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

func blob(text string) string {
	sum := sha1.Sum(fmt.Appendf(nil, "blob %d\x00%s", len(text), text))
	return hex.EncodeToString(sum[:])
}
