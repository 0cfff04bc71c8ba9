package sandbox

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"trainer/internal/wire"
)

// problem is a refusal, as the error envelope has it. Param is a path into the body, a query parameter or a header.
type problem struct {
	status         int
	kind, code     string
	param, message string
}

func (p *problem) Error() string { return p.message }

const invalidRequest = "invalid_request_error"

// invalid refuses a value: 400.
func invalid(param, format string, a ...any) *problem {
	return &problem{http.StatusBadRequest, invalidRequest, "invalid_argument", param, fmt.Sprintf(format, a...)}
}

// wrongState refuses what the request asks for in the state that things are in: 400 with a code that tells which.
func wrongState(code, format string, a ...any) *problem {
	return &problem{http.StatusBadRequest, invalidRequest, code, "", fmt.Sprintf(format, a...)}
}

func notFound(param, what, id string) *problem {
	return &problem{http.StatusNotFound, invalidRequest, "not_found", param, fmt.Sprintf("%s %q does not exist", what, id)}
}

func tooLarge(param, format string, a ...any) *problem {
	return &problem{http.StatusRequestEntityTooLarge, invalidRequest, "request_too_large", param, fmt.Sprintf(format, a...)}
}

// internal is a fault of this server: 500.
func internal(err error) *problem {
	return &problem{http.StatusInternalServerError, "server_error", "internal", "", err.Error()}
}

// unstored refuses what this server's disk does not take: 507, which does not pass before somebody has seen to the disk.
func unstored(err error) *problem {
	if p, ok := errors.AsType[*problem](err); ok {
		return p
	}
	do := "see to its disk"
	if noRoom(err) {
		do = "free some room on its disk"
	}
	return &problem{http.StatusInsufficientStorage, "server_error", "insufficient_storage", "", fmt.Sprintf("%v: %s, and start the sandbox again", err, do)}
}

func (p *problem) body() wire.ErrorBody {
	d := wire.ErrorDetail{Type: p.kind, Message: p.message}
	if p.code != "" {
		d.Code = &p.code
	}
	if p.param != "" {
		d.Param = &p.param
	}
	return wire.ErrorBody{Error: d}
}

// asProblem turns whatever a handler returned into an envelope.
func asProblem(err error) *problem {
	if p, ok := errors.AsType[*problem](err); ok {
		return p
	}
	return internal(err)
}

// readBody reads at most limit bytes of a request.
func readBody(r *http.Request, limit int64) ([]byte, error) {
	if r.Body == nil {
		return nil, nil
	}
	if r.ContentLength > limit {
		return nil, tooLarge("", "the body has %d bytes; at most %d are accepted", r.ContentLength, limit)
	}
	var b bytes.Buffer
	b.Grow(int(max(r.ContentLength, 0)) + bytes.MinRead)
	if _, err := b.ReadFrom(io.LimitReader(r.Body, limit+1)); err != nil {
		return nil, invalid("", "reading the body: %v", err)
	}
	if int64(b.Len()) > limit {
		return nil, tooLarge("", "the body has more than %d bytes, which is what is accepted", limit)
	}
	return b.Bytes(), nil
}

// decode reads a small body, an object. A wrong type is refused by the name of the member that has it.
func decode(b []byte, into any) error {
	if string(bytes.TrimSpace(b)) == "null" {
		return invalid("", "the body must be an object, not null")
	}
	err := json.Unmarshal(b, into)
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		if e.Field == "" {
			return invalid("", "the body must be an object, not a JSON %s", e.Value)
		}
		return invalid(e.Field, "%s: a JSON %s is not a value of type %s", e.Field, e.Value, e.Type)
	}
	return invalid("", "the body is not valid JSON: %v", err)
}
