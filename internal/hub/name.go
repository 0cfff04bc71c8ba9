package hub

import (
	"fmt"
	"net/url"
	"regexp"
	"strings"
)

// Scheme begins the names of what is on the hub.
const Scheme = "hf://"

const (
	models   = "models"
	datasets = "datasets"
)

// name is a name on the hub, taken apart.
type name struct {
	given string // as the recipe has it
	kind  string // models or datasets
	id    string // org/name
	rev   string // main where none is given
	path  string // a file or a pattern inside; empty: the whole
}

var (
	namePart = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)
	revision = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._/+-]*$`)
	commitID = regexp.MustCompile(`^[0-9a-f]{40}$`)
)

// parse reads hf://[datasets/]org/name[@revision][/path]. A / inside a revision is written %2F, but for the hub's own
// refs/convert/… and refs/pr/….
func parse(given string) (name, error) {
	n := name{given: given, kind: models, rev: "main"}
	rest := strings.TrimPrefix(given, Scheme)
	example := "hf://org/name or hf://org/name@revision"
	if r, ok := strings.CutPrefix(rest, "datasets/"); ok {
		n.kind, rest, example = datasets, r, "hf://datasets/org/name or hf://datasets/org/name@revision"
	} else if strings.HasPrefix(rest, "spaces/") || strings.HasPrefix(rest, "buckets/") {
		return n, fmt.Errorf("%s: only models and datasets of the hub can be named, as %s", given, example)
	}
	rest = strings.TrimPrefix(rest, "models/")
	org, rest, _ := strings.Cut(rest, "/")
	repo, path, _ := strings.Cut(rest, "/")
	repo, rev, pinned := strings.Cut(repo, "@")
	if !namePart.MatchString(org) || !namePart.MatchString(repo) || strings.Contains(org+"/"+repo, "..") {
		return n, fmt.Errorf("%s: is no name on the hub; it is %s", given, example)
	}
	n.id, n.path = org+"/"+repo, path
	if !pinned {
		return n, nil
	}
	if parts := strings.SplitN(path, "/", 3); rev == "refs" && len(parts) >= 2 {
		rev, n.path = "refs/"+parts[0]+"/"+parts[1], strings.Join(parts[2:], "/")
	}
	rev, err := url.PathUnescape(rev)
	if err != nil || !revision.MatchString(rev) || strings.Contains(rev, "..") {
		return n, fmt.Errorf("%s: what follows @ is no revision: a branch, a tag or a commit is due, a / in it written %%2F", given)
	}
	n.rev = rev
	return n, nil
}

// ref names the revision: with what a branch's name leaves out, and without a path inside.
func (n name) ref() string {
	kind := ""
	if n.kind == datasets {
		kind = "datasets/"
	}
	return Scheme + kind + n.id + "@" + strings.ReplaceAll(n.rev, "/", "%2F")
}

// Ref is the name under which Pins and Commits know the revision of given, as hf://org/name@main; empty where given is not
// on the hub.
func Ref(given string) string {
	if !strings.HasPrefix(given, Scheme) {
		return ""
	}
	n, err := parse(given)
	if err != nil {
		return ""
	}
	return n.ref()
}

// page is where a person sees it.
func (h *Hub) page(n name) string {
	if n.kind == datasets {
		return h.Endpoint + "/datasets/" + n.id
	}
	return h.Endpoint + "/" + n.id
}

// api is the address of a call about it.
func (h *Hub) api(n name, call, rev string) string {
	return h.Endpoint + "/api/" + n.kind + "/" + n.id + "/" + call + "/" + url.PathEscape(rev)
}
