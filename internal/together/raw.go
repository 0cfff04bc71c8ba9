package together

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"trainer/internal/wire"
)

// RawOperation is an operation with its output as it came; Output is nil until it is COMPLETED.
type RawOperation = wire.Operation[json.RawMessage]

// asking is of a request that may be sent again, since its key makes it the same one.
var asking = policy{keyed: true}

// Describe reads a model resource in the words of the wire. Errors: *runner.Refused for a clear 4xx.
func (c *Client) Describe(ctx context.Context, id string) (wire.Resource, error) {
	var r wire.Resource
	err := c.do(ctx, &call{method: http.MethodGet, path: resourcePath(id), read: into(&r)}, reading)
	return r, err
}

// Post sends an operation in bytes of the caller's own, for those that ask how the service takes something. It is sent again
// under its key until the answer is clear. Errors: *runner.Refused for a 4xx, a 409 too; anything else is no answer.
func (c *Client) Post(ctx context.Context, session string, kind wire.Kind, key string, body []byte) (RawOperation, error) {
	return c.raw(ctx, &call{method: http.MethodPost, path: rawPath(session, kind), body: body, key: key}, asking)
}

// Settled looks at an operation until it is final, at first often, then twice a second. It is an error when it still runs
// after most; the operation goes on.
func (c *Client) Settled(ctx context.Context, session string, kind wire.Kind, id string, most time.Duration) (RawOperation, error) {
	path, start := rawPath(session, kind)+"/"+url.PathEscape(id), time.Now()
	for wait := shortest; ; wait = min(wait*2, near) {
		op, err := c.raw(ctx, &call{method: http.MethodGet, path: path}, reading)
		if err != nil || op.Status.Final() {
			return op, err
		}
		if time.Since(start) > most {
			return op, fmt.Errorf("%s %s: still running after %v", kind, id, most)
		}
		if err := sleep(ctx, wait); err != nil {
			return op, fmt.Errorf("waiting for %s %s: %w", kind, id, err)
		}
	}
}

func rawPath(session string, kind wire.Kind) string {
	return wire.PathSessions + "/" + url.PathEscape(session) + "/operations/" + string(kind)
}

// raw sends k, which answers an operation.
func (c *Client) raw(ctx context.Context, k *call, p policy) (op RawOperation, err error) {
	k.read = func(_ http.Header, body io.Reader) error {
		op = RawOperation{}
		if err := json.NewDecoder(body).Decode(&op); err != nil {
			return err
		}
		if op.ID == "" || op.Status == "" {
			return errors.New("an operation without an id or a status")
		}
		return nil
	}
	if err = c.do(ctx, k, p); err == nil && op.Error != nil {
		op.Error.Message = c.redact(op.Error.Message)
	}
	return op, err
}
