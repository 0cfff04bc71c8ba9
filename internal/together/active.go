package together

import (
	"context"
	"net/url"

	"trainer/internal/wire"
	"trainer/runner"
)

// Active implements runner.Collector.
func (c *Client) Active(ctx context.Context, resource string) ([]runner.SessionState, error) {
	query := url.Values{"model_resources_id": {resource}}
	list, at, err := all(ctx, c, wire.PathSessions, query, func(s wire.Session) string { return s.ID })
	if err != nil {
		return nil, err
	}
	out := []runner.SessionState{}
	for i := range list {
		if s := sessionState(&list[i], at); s.Resource == resource && !final(s) {
			out = append(out, s)
		}
	}
	return out, nil
}
