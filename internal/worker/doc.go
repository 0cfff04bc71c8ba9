// Package worker asks a stranger's process or address in JSON, by version 1 of the protocol of graders and environments. It
// knows frames, processes, retries and limits, and nothing of what is asked: bodies and replies are JSON objects as they are.
//
// What a stranger does wrong never costs more than its own requests: a process that hangs, dies or talks out of turn is killed
// with all of its children and started again, its requests are sent to another, and what stays without a reply is a Lost, never a
// made-up answer. A Fatal ends the run. A process has the environment that it was promised and no more, so it can't read the keys
// of the program; it ends when the program does, however that ends.
package worker

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
)

// version of the protocol, in every object both ways.
const version = 1

// maxFrame bounds an object both ways, unless a Command says otherwise.
const maxFrame = 16 << 20

// Why a request has no reply.
const (
	TimedOut = "timeout"
	Died     = "died"
	Protocol = "protocol"
	Failed   = "error"
)

// Lost is a request without a reply, after all retries.
type Lost struct {
	Reason string // one of the words above
	Msg    string
	Said   string // the end of what its program has printed to stderr; empty: nothing, or there is none
}

func (l *Lost) Error() string { return l.Reason + ": " + l.Msg }

// Gone is a request of an episode whose process is gone, and the episode with it: it begins anew, or is given up.
type Gone struct {
	Reason string // one of the words above
	Msg    string
}

func (g *Gone) Error() string { return g.Reason + ": " + g.Msg }

// Fatal means that asking on is of no use: the run stops.
type Fatal struct{ Msg string }

func (f *Fatal) Error() string { return f.Msg }

// ErrNotANumber is of an answer with NaN or Infinity, which JSON does not have.
var ErrNotANumber = errors.New("NaN or Infinity, which JSON does not have")

// reply is what the frame of a reply says; raw is the whole object.
type reply struct {
	V     json.RawMessage `json:"v"`
	ID    json.RawMessage `json:"id"`
	Type  string          `json:"type"`
	Error json.RawMessage `json:"error"`
	Retry bool            `json:"retry"`
	Fatal bool            `json:"fatal"`
	raw   json.RawMessage
}

var (
	errNotJSON   = errors.New("not a line of JSON; stdout is for replies, print to stderr")
	errNotObject = errors.New("not a JSON object")
	errVersion   = errors.New(`"v" is not 1`)
	errUnknownID = errors.New("its id is of no open request")
)

// unlikeJSON is what some languages write for numbers that are none.
var unlikeJSON = regexp.MustCompile(`^\{.*[:\[, ]-?(NaN|Infinity)[\]}, ]`)

// parse reads the frame of a reply.
func parse(line []byte) (reply, error) {
	line = bytes.TrimSpace(line)
	if !json.Valid(line) {
		if unlikeJSON.Match(line) {
			return reply{}, ErrNotANumber
		}
		return reply{}, errNotJSON
	}
	if line[0] != '{' {
		return reply{}, errNotObject
	}
	var r reply
	if err := json.Unmarshal(line, &r); err != nil {
		return reply{}, fmt.Errorf("%w: %v", errNotObject, err)
	}
	if string(r.V) != "1" {
		return reply{}, errVersion
	}
	r.raw = bytes.Clone(line)
	return r, nil
}

// failed is the error that a reply reports, "" for none.
func (r reply) failed() string {
	if len(r.Error) == 0 || string(r.Error) == "null" {
		return ""
	}
	var text string
	if json.Unmarshal(r.Error, &text) != nil || text == "" {
		return string(r.Error)
	}
	return text
}

// frame puts the members of head in front of those of body, a JSON object; the whole has less than most bytes.
func frame(head map[string]any, order []string, body []byte, most int) ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, name := range order {
		value, err := json.Marshal(head[name])
		if err != nil {
			return nil, fmt.Errorf("writing %s: %w", name, err)
		}
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, "%q:", name)
		b.Write(value)
	}
	body = bytes.TrimSpace(body)
	if len(body) < 2 || body[0] != '{' {
		return nil, errNotObject
	}
	if rest := bytes.TrimSpace(body[1:]); rest[0] != '}' {
		b.WriteByte(',')
	}
	var members bytes.Buffer
	if err := json.Compact(&members, body); err != nil {
		return nil, errNotObject
	}
	b.Write(members.Bytes()[1:])
	if b.Len() >= most {
		return nil, fmt.Errorf("a request of %d bytes; at most %d are sent", b.Len(), most)
	}
	return b.Bytes(), nil
}
