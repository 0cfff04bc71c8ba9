package hub

import (
	"path/filepath"
	"strings"
)

// New is the hub of the environment: its cache is in TRAINER_CACHE, $XDG_CACHE_HOME/trainer or ~/.cache/trainer.
func New(getenv func(string) string) *Hub {
	first := func(keys ...string) string {
		for _, k := range keys {
			if v := strings.TrimSpace(getenv(k)); v != "" {
				return v
			}
		}
		return ""
	}
	h := &Hub{Cache: first("TRAINER_CACHE")}
	if h.Cache != "" {
		return h
	}
	if caches := first("XDG_CACHE_HOME"); caches != "" {
		h.Cache = filepath.Join(caches, "trainer")
	} else if home := first("HOME", "USERPROFILE"); home != "" {
		h.Cache = filepath.Join(home, ".cache", "trainer")
	}
	return h
}
