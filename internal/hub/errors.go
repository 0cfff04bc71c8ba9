package hub

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"unicode"
)

// Uncached is a name whose content is not on this machine, and that nothing was fetched for.
type Uncached struct {
	Name string
	Why  string // nothing is fetched, and what would change that
}

func (u *Uncached) Error() string { return u.Name + ": not in the cache; " + u.Why }

// refusal is an answer that is not a 2xx.
type refusal struct {
	status int
	code   string // X-Error-Code, the hub's own word for it
	text   string // X-Error-Message
	header http.Header
	host   string
}

func (r *refusal) Error() string {
	msg := fmt.Sprintf("%s answers %d %s", r.host, r.status, http.StatusText(r.status))
	if r.text != "" {
		msg += ": " + r.text
	}
	return msg
}

// printable is a server's words, short, in one line, and without the token, should it repeat that.
func (h *Hub) printable(text string) string {
	if h.Token != "" {
		text = strings.ReplaceAll(text, h.Token, "…")
	}
	text = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, text)
	if r := []rune(text); len(r) > 200 {
		text = string(r[:200]) + "…"
	}
	return text
}

// explain says what an answer means for the name, and the way out.
func (h *Hub) explain(n name, err error) error {
	var r *refusal
	if !errors.As(err, &r) {
		return fmt.Errorf("%s: %w", n.given, err)
	}
	what := strings.TrimSuffix(n.kind, "s")
	switch {
	case r.code == "GatedRepo":
		way := "accept its terms at " + h.page(n) + ", then set HF_TOKEN to a token of that account"
		if h.Token != "" {
			way = "accept its terms at " + h.page(n) + " with the account of your HF_TOKEN"
		}
		return fmt.Errorf("%s: the %s is gated: %s", n.given, what, way)
	case r.status == http.StatusUnauthorized && strings.Contains(r.text, "Invalid credentials"):
		return fmt.Errorf("%s: the hub does not know the token: renew HF_TOKEN, or unset it for what is public", n.given)
	case r.code == "RevisionNotFound":
		return fmt.Errorf("%s: has no revision %q", n.given, n.rev)
	case r.code == "EntryNotFound":
		return fmt.Errorf("%s: the file is not there", n.given)
	case r.code == "RepoNotFound", r.status == http.StatusUnauthorized, r.status == http.StatusNotFound:
		way := "check the name; one that is private needs HF_TOKEN"
		if h.Token != "" {
			way = "check the name, and whether the account of your HF_TOKEN may read it"
		}
		return fmt.Errorf("%s: the hub has no such %s: %s", n.given, what, way)
	case r.status == http.StatusForbidden:
		return fmt.Errorf("%s: %w: your HF_TOKEN has no right to read it", n.given, err)
	}
	return fmt.Errorf("%s: %w", n.given, err)
}
