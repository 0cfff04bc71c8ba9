package hub

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"trainer/internal/diag"
)

// snapshot is a commit of a repository: what the hub lists of it, which does not change.
type snapshot struct {
	name    name `json:"-"`
	Commit  string
	Configs []config // of a dataset's card
	Files   []entry  // in order of their paths
}

// entry is a file of a commit. Exactly one of the hashes is there.
type entry struct {
	Path   string
	Size   int64
	SHA256 string `json:",omitempty"` // of its bytes, where the repository holds a pointer to them
	Git    string `json:",omitempty"` // the blob's name in git: SHA-1 of a header and its bytes
}

// Bounds of what a hub may answer.
const (
	maxInfo  = 64 << 20
	maxPage  = 64 << 20
	maxFiles = 1_000_000
)

// Commits are the commits that this hub has resolved, by Ref.
func (h *Hub) Commits() map[string]string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return maps.Clone(h.commits)
}

// snapshot resolves the name to a commit and lists it: from the cache where the commit is known and was listed before, else
// from the hub. The error is an *Uncached where nothing may be fetched.
func (h *Hub) snapshot(ctx context.Context, n name) (*snapshot, error) {
	if err := h.usable(n); err != nil {
		return nil, err
	}
	commit := h.known(n)
	if commit == "" && h.Offline != "" {
		text, err := os.ReadFile(h.refFile(n))
		if err != nil || !commitID.Match(text) {
			return nil, &Uncached{n.given, h.Offline}
		}
		commit = string(text)
	}
	s, err := h.listed(ctx, n, commit)
	if err != nil {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.commits == nil {
		h.commits = map[string]string{}
	}
	h.commits[n.ref()] = s.Commit
	return s, nil
}

func (h *Hub) usable(n name) error {
	switch {
	case h.Cache == "" && h.Endpoint == "":
		return &Uncached{n.given, "there is no cache to look in"}
	case h.Cache == "":
		return fmt.Errorf("%s: there is no folder for what is fetched: set TRAINER_CACHE to one", n.given)
	case !isAddress(h.Endpoint):
		return errors.New("HF_ENDPOINT: is not an address; it begins with https:// or http://")
	}
	return nil
}

// known is the commit that needs no asking: pinned, given as one, or resolved before by this process.
func (h *Hub) known(n name) string {
	if c := h.Pins[n.ref()]; commitID.MatchString(c) {
		return c
	}
	if commitID.MatchString(n.rev) {
		return n.rev
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.commits[n.ref()]
}

// listed is the listing of the commit; empty: of the one that the revision is now.
func (h *Hub) listed(ctx context.Context, n name, commit string) (*snapshot, error) {
	if s := h.cached(n, commit); s != nil {
		return s, nil
	}
	if h.Offline != "" {
		return nil, &Uncached{n.given, h.Offline}
	}
	s, err := h.info(ctx, n, commit)
	if err != nil {
		return nil, err
	}
	if commit == "" {
		if err := write(h.refFile(n), []byte(s.Commit)); err != nil {
			return nil, err
		}
		if old := h.cached(n, s.Commit); old != nil {
			return old, nil
		}
	}
	if s.Files, err = h.tree(ctx, n, s.Commit); err != nil {
		return nil, err
	}
	text, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	return s, write(h.listFile(n, s.Commit), text)
}

func (h *Hub) cached(n name, commit string) *snapshot {
	if commit == "" {
		return nil
	}
	text, err := os.ReadFile(h.listFile(n, commit))
	if err != nil {
		return nil
	}
	s := &snapshot{name: n}
	if json.Unmarshal(text, s) != nil || s.Commit != commit || len(s.Files) == 0 {
		return nil // it is asked for again
	}
	return s
}

// info asks what the revision is: its commit, and what a dataset's card says of its files.
func (h *Hub) info(ctx context.Context, n name, commit string) (*snapshot, error) {
	rev := n.rev
	if commit != "" {
		rev = commit
	}
	body, _, err := h.text(ctx, n.given, h.api(n, "revision", rev), maxInfo)
	if err != nil {
		return nil, h.nearest(ctx, n, err)
	}
	var answer struct {
		SHA      string `json:"sha"`
		CardData struct {
			Configs json.RawMessage `json:"configs"`
		} `json:"cardData"`
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return nil, fmt.Errorf("%s: the hub's answer is not what its API says: %v", n.given, err)
	}
	if !commitID.MatchString(answer.SHA) || commit != "" && answer.SHA != commit {
		return nil, fmt.Errorf("%s: the hub's answer names no commit, or another one: %q", n.given, h.printable(answer.SHA))
	}
	s := &snapshot{name: n, Commit: answer.SHA}
	if n.kind == datasets {
		if s.Configs, err = readConfigs(answer.CardData.Configs); err != nil {
			return nil, fmt.Errorf("%s: its card: %w", n.given, err)
		}
	}
	return s, nil
}

// tree lists every file of the commit, page by page.
func (h *Hub) tree(ctx context.Context, n name, commit string) (files []entry, err error) {
	for at := h.api(n, "tree", commit) + "?recursive=true"; at != ""; {
		body, header, err := h.text(ctx, n.given, at, maxPage)
		if err != nil {
			return nil, h.explain(n, err)
		}
		page, err := readTree(body)
		if err != nil {
			return nil, fmt.Errorf("%s: the hub's list of files: %w", n.given, err)
		}
		if files = append(files, page...); len(files) > maxFiles {
			return nil, fmt.Errorf("%s: has more than %d files", n.given, maxFiles)
		}
		next := nextPage(header, at)
		if next != "" && len(page) == 0 {
			return nil, fmt.Errorf("%s: the hub's list of files does not end", n.given)
		}
		at = next
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%s: has no files", n.given)
	}
	slices.SortFunc(files, func(a, b entry) int { return strings.Compare(a.Path, b.Path) })
	return files, nil
}

func readTree(body []byte) (files []entry, err error) {
	var page []struct {
		Type, OID, Path string
		Size            int64
		LFS             *struct {
			OID  string
			Size int64
		}
	}
	if err := json.Unmarshal(body, &page); err != nil {
		return nil, err
	}
	for _, p := range page {
		if p.Type != "file" {
			continue
		}
		e := entry{Path: p.Path, Size: p.Size, Git: p.OID}
		if p.LFS != nil {
			e = entry{Path: p.Path, Size: p.LFS.Size, SHA256: p.LFS.OID}
		}
		if !safe(e.Path) {
			return nil, fmt.Errorf("%q is no safe name for a file", e.Path)
		}
		if e.Size < 0 || !hexDigits(e.SHA256, 64) && !hexDigits(e.Git, 40) {
			return nil, fmt.Errorf("%s has no size or no hash", e.Path)
		}
		files = append(files, e)
	}
	return files, nil
}

// safe says whether a path of the hub may become one below a folder of ours, on any system.
func safe(path string) bool {
	if !filepath.IsLocal(path) || strings.ContainsAny(path, "\\:") || strings.ContainsFunc(path, func(r rune) bool { return r < 0x20 || r == 0x7f }) {
		return false
	}
	for part := range strings.SplitSeq(path, "/") {
		if part == "" || part == "." || part == ".." || strings.HasSuffix(part, ".") {
			return false
		}
	}
	return true
}

func hexDigits(s string, n int) bool {
	return len(s) == n && strings.Trim(s, "0123456789abcdef") == ""
}

var nextLink = regexp.MustCompile(`<([^>]*)>\s*;[^,]*rel="?next"?`)

// nextPage is the address of the next page, which is at the same hub; empty behind the last one.
func nextPage(header http.Header, at string) string {
	m := nextLink.FindStringSubmatch(header.Get("Link"))
	if m == nil {
		return ""
	}
	now, err := url.Parse(at)
	if err != nil {
		return ""
	}
	next, err := now.Parse(m[1])
	if err != nil || next.Host != now.Host || next.Scheme != now.Scheme || next.String() == at {
		return ""
	}
	return next.String()
}

// nearest explains why a name could not be resolved: by the revisions that there are, or by the other kind of name.
func (h *Hub) nearest(ctx context.Context, n name, err error) error {
	told := h.explain(n, err)
	var r *refusal
	if !errors.As(err, &r) {
		return told
	}
	if r.code == "RevisionNotFound" {
		if names := h.revisions(ctx, n); len(names) > 0 {
			return fmt.Errorf("%w; it has %s%s", told, strings.Join(names[:min(10, len(names))], ", "), diag.DidYouMean(n.rev, names))
		}
		return told
	}
	missing := r.status == http.StatusNotFound || r.status == http.StatusUnauthorized // which is said of what is not there, too
	if !missing || r.code == "GatedRepo" || strings.Contains(r.text, "Invalid credentials") {
		return told
	}
	other := name{kind: datasets, id: n.id, rev: "main"}
	if n.kind == datasets {
		other.kind = models
	}
	if _, _, err := h.text(ctx, n.given, h.api(other, "revision", "main"), maxInfo); err == nil {
		return fmt.Errorf("%w; there is a %s of that name, %s", told, strings.TrimSuffix(other.kind, "s"), strings.TrimSuffix(other.ref(), "@main"))
	}
	return told
}

// revisions are the branches and tags, nil where they cannot be had.
func (h *Hub) revisions(ctx context.Context, n name) (names []string) {
	var refs struct{ Branches, Tags []struct{ Name string } }
	body, _, err := h.text(ctx, n.given, h.Endpoint+"/api/"+n.kind+"/"+n.id+"/refs", maxInfo)
	if err != nil || json.Unmarshal(body, &refs) != nil {
		return nil
	}
	for _, r := range append(refs.Branches, refs.Tags...) {
		names = append(names, h.printable(r.Name))
	}
	return names
}
