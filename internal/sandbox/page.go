package sandbox

import (
	"net/url"
	"slices"
	"strconv"
	"strings"

	"trainer/internal/wire"
)

// page returns the part of order, newest first, that the query asks for, of those that keep lets through. id names a
// thing for the cursor. The lock is held.
func page[T, W any](q url.Values, t *table[T], id func(T) string, keep func(T) bool, show func(T) W) (*wire.Page[W], error) {
	limit := 20
	if text := q.Get("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > 100 {
			return nil, invalid("limit", "limit: %q is not a number from 1 to 100", text)
		}
		limit = n
	}
	end := len(t.order)
	if after := q.Get("after"); after != "" {
		end = slices.IndexFunc(t.order, func(v T) bool { return id(v) == after })
		if end < 0 {
			return nil, invalid("after", "after: %q is not the id of an item of this list", after)
		}
	}
	p := &wire.Page[W]{Data: []W{}, Meta: wire.PageMeta{Limit: limit}}
	last := ""
	for i := end - 1; i >= 0; i-- {
		v := t.order[i]
		if !keep(v) {
			continue
		}
		if len(p.Data) == limit {
			p.Meta.HasMore, p.Meta.NextCursor = true, last
			break
		}
		p.Data, last = append(p.Data, show(v)), id(v)
	}
	return p, nil
}

// wanted reads a filter of comma-joined enum values; an empty one lets everything through.
func wanted(q url.Values, name string, known ...string) (map[string]bool, error) {
	set := map[string]bool{}
	for _, joined := range q[name] {
		for v := range strings.SplitSeq(joined, ",") {
			if !slices.Contains(known, v) {
				return nil, invalid(name, "%s: %q is not one of %s", name, v, strings.Join(known, ", "))
			}
			set[v] = true
		}
	}
	return set, nil
}

// user is who everything here belongs to.
const user = "user_sandbox"

// byCaller tells whether created_by lets the caller's things through.
func byCaller(q url.Values) bool {
	who := q.Get("created_by")
	return who == "" || who == "me" || who == user
}
