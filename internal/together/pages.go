package together

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"trainer/internal/wire"
)

const pageSize = "100" // the most that the service gives

// all reads every page of a list, which is as of at, the service's clock when it answered the first. A cursor that comes twice is an error: it would go on for ever.
func all[T any](ctx context.Context, c *Client, path string, query url.Values, id func(T) string) (list []T, at time.Time, err error) {
	query.Set("limit", pageSize)
	seen := map[string]bool{}
	list = []T{}
	for {
		var page wire.Page[T]
		read := func(h http.Header, body io.Reader) error {
			if at.IsZero() {
				at = date(h)
			}
			return into(&page)(h, body)
		}
		if err := c.do(ctx, &call{method: http.MethodGet, path: path + "?" + query.Encode(), read: read}, reading); err != nil {
			return nil, at, err
		}
		list = append(list, page.Data...)
		if !page.Meta.HasMore {
			return list, at, nil
		}
		cursor := page.Meta.NextCursor
		if cursor == "" && len(page.Data) > 0 {
			cursor = id(page.Data[len(page.Data)-1])
		}
		if cursor == "" || seen[cursor] {
			return nil, at, fmt.Errorf("GET %s: the list says that it goes on, but its cursor %q leads nowhere new", path, cursor)
		}
		seen[cursor] = true
		query.Set("after", cursor)
	}
}
