package hub

import (
	"net/url"
	"os"
	"path/filepath"
	"strings"
)

// public is the hub that names mean where HF_ENDPOINT says nothing else.
const public = "https://huggingface.co"

// New is the hub of the environment: HF_ENDPOINT, HF_TOKEN or the token file that the hub's own tools keep (HF_TOKEN_PATH,
// HF_HOME), HF_HUB_OFFLINE, and the cache, in TRAINER_CACHE, $XDG_CACHE_HOME/trainer or ~/.cache/trainer.
func New(getenv func(string) string) *Hub {
	first := func(keys ...string) string {
		for _, k := range keys {
			if v := strings.TrimSpace(getenv(k)); v != "" {
				return v
			}
		}
		return ""
	}
	caches := first("XDG_CACHE_HOME")
	if caches == "" && first("HOME", "USERPROFILE") != "" {
		caches = filepath.Join(first("HOME", "USERPROFILE"), ".cache")
	}
	h := &Hub{Cache: first("TRAINER_CACHE"), Endpoint: strings.TrimRight(first("HF_ENDPOINT"), "/"), Token: first("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN")}
	if h.Cache == "" && caches != "" {
		h.Cache = filepath.Join(caches, "trainer")
	}
	if h.Endpoint == "" {
		h.Endpoint = public
	}
	if h.Token == "" && !isTrue(first("HF_HUB_DISABLE_IMPLICIT_TOKEN")) {
		h.Token = savedToken(first("HF_TOKEN_PATH"), first("HF_HOME"), caches)
	}
	for _, k := range []string{"HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"} {
		if h.Offline == "" && isTrue(first(k)) {
			h.Offline = k + " is set, so nothing is fetched"
		}
	}
	return h
}

// savedToken is what a login with the hub's own tools has left; empty where nobody has.
func savedToken(path, home, caches string) string {
	switch {
	case path != "":
	case home != "":
		path = filepath.Join(home, "token")
	case caches != "":
		path = filepath.Join(caches, "huggingface", "token")
	default:
		return ""
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}

// isTrue reads a switch as the hub's own tools do.
func isTrue(v string) bool {
	switch strings.ToUpper(v) {
	case "1", "ON", "YES", "TRUE":
		return true
	}
	return false
}

// isAddress says whether requests can be sent to base at all.
func isAddress(base string) bool {
	u, err := url.Parse(base)
	return err == nil && u.Hostname() != "" && (u.Scheme == "https" || u.Scheme == "http")
}
