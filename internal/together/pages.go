package together

import (
	"context"
	"fmt"
	"net/http"
	"net/url"

	"trainer/internal/wire"
)

const pageSize = "100" // the most that the service gives

// all reads every page of a list. A cursor that comes twice is an error: it would go on for ever.
func all[T any](ctx context.Context, c *Client, path string, query url.Values, id func(T) string) ([]T, error) {
	query.Set("limit", pageSize)
	seen := map[string]bool{}
	list := []T{}
	for {
		var page wire.Page[T]
		err := c.do(ctx, &call{method: http.MethodGet, path: path + "?" + query.Encode(), read: into(&page)}, reading)
		if err != nil {
			return nil, err
		}
		list = append(list, page.Data...)
		if !page.Meta.HasMore {
			return list, nil
		}
		cursor := page.Meta.NextCursor
		if cursor == "" && len(page.Data) > 0 {
			cursor = id(page.Data[len(page.Data)-1])
		}
		if cursor == "" || seen[cursor] {
			return nil, fmt.Errorf("GET %s: the list says that it goes on, but its cursor %q leads nowhere new", path, cursor)
		}
		seen[cursor] = true
		query.Set("after", cursor)
	}
}
