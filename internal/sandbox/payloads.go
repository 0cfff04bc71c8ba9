package sandbox

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/google/uuid"

	"trainer/internal/wire"
)

// maxPayload bounds an upload; the service allows more.
const maxPayload = 512 << 20

// signature makes an address unguessable: it is good for one method and one payload or file.
func (s *Server) signature(method, id string) string {
	m := hmac.New(sha256.New, s.secret())
	_, _ = m.Write([]byte(method + "\n" + id))
	return hex.EncodeToString(m.Sum(nil)[:16])
}

func (s *Server) secret() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state.secret
}

// presigned is an address at the host that the request was sent to.
func (s *Server) presigned(r *request, method, folder, id string) string {
	u := url.URL{Scheme: "http", Host: r.Host, Path: folder + id, RawQuery: "sig=" + s.signature(method, id)}
	if r.TLS != nil || r.URL.Scheme == "https" {
		u.Scheme = "https"
	}
	return u.String()
}

// signed checks the signature of a presigned address, which takes the place of Authorization.
func (s *Server) signed(r *http.Request, id string) error {
	if hmac.Equal([]byte(r.URL.Query().Get("sig")), []byte(s.signature(r.Method, id))) {
		return nil
	}
	return &problem{http.StatusForbidden, "permission_error", "invalid_signature", "sig",
		"this address was not handed out for " + r.Method}
}

func (s *Server) uploadURL(r *request) (any, error) {
	id := uuid.NewString()
	if err := s.reservePayload(r.ids[0], id); err != nil {
		return nil, err
	}
	return wire.UploadURL{PayloadID: id, UploadURL: s.presigned(r, http.MethodPut, "/payloads/", id)}, nil
}

func (s *Server) reservePayload(session, id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	sess, err := s.session(session)
	if err != nil {
		return err
	}
	if err := s.running(sess); err != nil {
		return err
	}
	return s.commit(&record{Kind: kindPayload, ID: id, Payload: &payloadSpec{Session: session}}, nil)
}

func (s *Server) downloadURL(r *request) (any, error) {
	s.mu.Lock()
	_, err := s.session(r.ids[0])
	p, ok := s.state.payloads[r.ids[1]]
	s.mu.Unlock()
	if err != nil {
		return nil, err
	}
	if !ok || p.session != r.ids[0] {
		return nil, notFound("payload_id", "payload", r.ids[1])
	}
	return wire.DownloadURL{DownloadURL: s.presigned(r, http.MethodGet, "/payloads/", p.id)}, nil
}

// errPayloadSize ends an upload that is too long.
var errPayloadSize = errors.New("the payload is too large")

// putPayload stores the bytes, then logs that they are there. An accepted operation's payload keeps its bytes: only the
// same ones are taken again.
func (s *Server) putPayload(r *request) (any, error) {
	id := r.ids[0]
	if r.ContentLength > maxPayload {
		return nil, tooLarge("", "the payload has %d bytes; at most %d are accepted", r.ContentLength, maxPayload)
	}
	before, err := s.beginUpload(id)
	if err != nil {
		return nil, err
	}
	if before.used {
		return struct{}{}, sameBytes(r.Body, before.sha256)
	}
	defer s.endUpload(id)
	sum, size := sha256.New(), int64(0)
	err = s.store.put(payloadFile(id), func(w io.Writer) error {
		size, err = io.Copy(io.MultiWriter(w, sum), io.LimitReader(r.Body, maxPayload+1))
		if err == nil && size > maxPayload {
			err = errPayloadSize
		}
		return err
	})
	if errors.Is(err, errPayloadSize) {
		return nil, tooLarge("", "the payload has more than %d bytes, which is what is accepted", maxPayload)
	}
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	up := &payloadSpec{Session: before.session, Size: size, SHA256: hex.EncodeToString(sum.Sum(nil))}
	return struct{}{}, s.commit(&record{Kind: kindUploaded, ID: id, Payload: up}, nil)
}

// beginUpload holds the payload against being used before it is whole, and against a second upload.
func (s *Server) beginUpload(id string) (payload, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, ok := s.state.payloads[id]
	if !ok {
		return payload{}, notFound("payload_id", "payload", id)
	}
	if p.writing {
		return payload{}, &problem{http.StatusConflict, invalidRequest, "upload_in_progress", "", "this payload is being uploaded"}
	}
	p.writing = !p.used
	return *p, nil
}

func (s *Server) endUpload(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state.payloads[id].writing = false
}

func sameBytes(r io.Reader, want string) error {
	sum := sha256.New()
	if _, err := io.Copy(sum, io.LimitReader(r, maxPayload+1)); err != nil {
		return invalid("", "reading the body: %v", err)
	}
	if hex.EncodeToString(sum.Sum(nil)) == want {
		return nil
	}
	return wrongState("payload_in_use", "an operation uses this payload; its bytes can't change")
}

// payload returns a copy, so that it can be read without the lock.
func (s *Server) payload(id string) (payload, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p, ok := s.state.payloads[id]; ok {
		return *p, nil
	}
	return payload{}, notFound("payload_id", "payload", id)
}

func (s *Server) getPayload(r *request) (any, error) {
	p, err := s.payload(r.ids[0])
	if err != nil {
		return nil, err
	}
	if p.sha256 == "" {
		return nil, notFound("payload_id", "the upload of payload", p.id)
	}
	f, err := s.store.open(payloadFile(p.id))
	if err != nil {
		return nil, fmt.Errorf("reading payload %s: %w", p.id, err)
	}
	b, err := io.ReadAll(f)
	return raw(b), errors.Join(err, f.Close())
}
