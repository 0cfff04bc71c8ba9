package sandbox

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// inParts says whether a path gives bytes that can be had in parts: the files of a checkpoint, and payloads.
func inParts(method, path string) bool {
	return method == http.MethodGet && (strings.HasPrefix(path, "/files/") || strings.HasPrefix(path, "/payloads/"))
}

// inPart makes of a whole answer what the request's Range, If-Range and If-None-Match ask for (RFC 9110): 206 with the
// bytes, 304, 416, or the whole. The validator is a hash of the bytes, which do not change.
func inPart(r *http.Request, a reply) reply {
	if asked := r.Header.Get("Range"); asked != "" && !strings.HasPrefix(asked, "bytes=") {
		r = r.Clone(r.Context())
		r.Header.Del("Range") // a unit that is not known is to be ignored
	}
	sum := sha256.Sum256(a.body)
	part := &collector{head: http.Header{"Etag": {`"` + hex.EncodeToString(sum[:16]) + `"`}, "Content-Type": {a.kind}}}
	http.ServeContent(part, r, "", time.Time{}, bytes.NewReader(a.body))
	whole := len(a.body)
	a.status, a.body, a.kind = part.status, part.body.Bytes(), part.head.Get("Content-Type")
	if a.status == http.StatusRequestedRangeNotSatisfiable {
		a.status, a.body = envelope(&problem{a.status, invalidRequest, "range_not_satisfiable", "Range",
			fmt.Sprintf("Range: %q is not within the file, which has %d bytes", r.Header.Get("Range"), whole)})
		a.kind = ""
		part.head.Set("Content-Range", fmt.Sprintf("bytes */%d", whole))
	}
	a.more = http.Header{}
	for _, name := range []string{"Accept-Ranges", "Content-Range", "Etag"} {
		if v := part.head.Get(name); v != "" {
			a.more.Set(name, v)
		}
	}
	return a
}

// collector is a http.ResponseWriter that keeps what is written.
type collector struct {
	head   http.Header
	status int
	body   bytes.Buffer
}

func (c *collector) Header() http.Header { return c.head }

func (c *collector) WriteHeader(status int) { c.status = status }

func (c *collector) Write(p []byte) (int, error) {
	if c.status == 0 {
		c.status = http.StatusOK
	}
	return c.body.Write(p)
}
