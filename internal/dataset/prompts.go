package dataset

import (
	"encoding/json"
	"fmt"
	"hash/crc32"
	"io"
	"os"

	"trainer/internal/chat"
	"trainer/internal/chat/jinja"
	"trainer/internal/diag"
)

// Prompt is a row that completions are sampled for.
type Prompt struct {
	At diag.Pos
	// IDs is what sampling is given, [P], P >= 1: the rendered prompt up to where the completion starts.
	IDs []int32
	// Taught is what a teacher is given in place of IDs, [P'], P' >= 1; nil: the same.
	Taught []int32
	// Asked is the prompt as graders are given it: a JSON list of messages, or a JSON string where the template has no roles.
	Asked json.RawMessage
	// Target is what graders compare with, JSON: text, a number, a truth value, or a list of these; nil where the row has none.
	Target json.RawMessage
	// Row is the whole row as it stands in the file, one JSON object.
	Row json.RawMessage
	// Conversation is what IDs are rendered from; empty where the template has no roles.
	Conversation chat.Conversation
}

// Prompt reads row i, in [0, Len). Of a set of prompts it is that; of rows that train, what stands before the last answer of the
// assistant that trains: of a pair, before the chosen side. The error is a diag.List where the row has none.
// It is another when the file has changed.
func (s *Set) Prompt(i int) (Prompt, error) {
	e := s.entries[i]
	p := Prompt{At: s.At(i)}
	raw, err := s.x.raw(e)
	if err != nil {
		return p, err
	}
	src := s.x.owner[e.file]
	made, f := s.x.encode(src, raw)
	if f == nil {
		row := trimmed(raw)
		p.Row = json.RawMessage(row)
		if src.format.untrained {
			p.IDs, p.Taught = made.sides[0].IDs, made.taught
			f = src.asks(row, s.x.template, &p)
		} else {
			f = src.examines(row, s.x.template, &p)
		}
		if f == nil {
			p.Target, f = target(src, row)
		}
	}
	if f != nil {
		return Prompt{}, diag.List{f.at(p.At)}
	}
	return p, nil
}

// asks fills in what is asked of a prompt that is rendered.
func (s *source) asks(row value, t *chat.Template, p *Prompt) (f *fault) {
	if p.Asked, f = asked(s, row, t); f == nil {
		p.Conversation, f = promptConversation(s, row, t)
	}
	return f
}

// encodePrompt reads {"prompt": …, "target": …}: the prompt is text, which becomes a user message where the template has
// roles, or a list of messages. Nothing of it is trained.
func encodePrompt(s *source, row value, t *chat.Template) (chat.Example, *fault) {
	if _, f := target(s, row); f != nil {
		return chat.Example{}, f
	}
	ids, f := s.promptIDs(row, "prompt", nil, t)
	if f != nil {
		return chat.Example{}, f
	}
	return chat.Example{IDs: ids, Weights: make([]float64, len(ids))}, nil
}

// promptConversation is the prompt of a row with what it has beside it for the template.
func promptConversation(s *source, row value, t *chat.Template) (chat.Conversation, *fault) {
	_, ms, f := prompt(s, row, "prompt", t)
	if f != nil || ms == nil {
		return chat.Conversation{}, f
	}
	return s.conversation(row, ms)
}

// Messages reads a JSON list of messages that does not come from a row, as rows are read. The error says which key is at fault.
func Messages(raw json.RawMessage) ([]chat.Message, error) {
	v, err := outside(raw)
	if err != nil {
		return nil, err
	}
	ms, f := messages(v, "messages")
	if f != nil {
		return nil, fmt.Errorf("%s: %s", f.key, f.msg)
	}
	return ms, nil
}

// Objects reads a JSON list of objects that does not come from a row, such as tools, which key names.
func Objects(raw json.RawMessage, key string) ([]*jinja.Dict, error) {
	v, err := outside(raw)
	if err != nil {
		return nil, err
	}
	out, f := objects(v, key)
	if f != nil {
		return nil, fmt.Errorf("%s: %s", f.key, f.msg)
	}
	return out, nil
}

func outside(raw []byte) (value, error) {
	if err := check(raw); err != nil {
		return nil, err
	}
	return trimmed(raw), nil
}

// prompt is the prompt that stands under a field of a row: its messages, or its text where there are no roles; under roles
// text is one message, and is returned too.
func prompt(s *source, row value, field string, t *chat.Template) (text string, ms []chat.Message, f *fault) {
	c := s.columns[field]
	if c.holdsList(row) {
		if ms, f = messages(c.raw(row), c.String()); f != nil {
			f.msg += c.noMessages(row)
		} else if len(ms) == 0 {
			f = bad(c.String(), "empty; a prompt needs a message")
		}
		return "", ms, f
	}
	if text, f = c.text(row); f != nil {
		return "", nil, f
	}
	if text == "" {
		return "", nil, bad(c.String(), "empty; a prompt needs text")
	}
	if t.HasRoles() {
		ms = []chat.Message{{Role: "user", Content: text}}
	}
	return text, ms, nil
}

// asked is the prompt of a sound row, as graders are given it.
func asked(s *source, row value, t *chat.Template) (json.RawMessage, *fault) {
	c := s.columns["prompt"]
	if c.holdsList(row) {
		return json.RawMessage(c.raw(row)), nil
	}
	text, f := c.text(row)
	if f != nil {
		return nil, f
	}
	if t.HasRoles() {
		return json.RawMessage(`[{"role":"user","content":` + string(encoded(text)) + `}]`), nil
	}
	return encoded(text), nil
}

// encoded is text as JSON.
func encoded(text string) json.RawMessage {
	b, _ := json.Marshal(text) // text always can be
	return b
}

// target is what stands in the row, or the text that a regex or several columns make; nil where the row has none and the
// recipe maps none.
func target(s *source, row value) (json.RawMessage, *fault) {
	c := s.columns["target"]
	if c == nil {
		c = s.compared
	}
	if !c.whole() {
		text, f := c.text(row)
		if f != nil {
			return nil, f
		}
		return encoded(text), nil
	}
	v := c.raw(row)
	_, mapped := s.section.Fields["target"]
	switch {
	case v == nil && mapped:
		return nil, missing(row, c.String())
	case v == nil || v.isNull():
		return nil, nil
	case v.isObject():
		return nil, bad(c.String(), "%s where text or a number is due; fields: {target: …} takes a path into it", v.kind())
	case v.isList():
		for i, item := range v.items() {
			if item.isObject() || item.isList() || item.isNull() {
				return nil, bad(element(c.String(), i, ""), "%s where text or a number is due", item.kind())
			}
		}
	}
	return json.RawMessage(v), nil
}

// raw returns the bytes of an entry's row, which are those that were checked.
func (x *index) raw(e entry) ([]byte, error) {
	raw := make([]byte, e.length)
	f, err := os.Open(x.files[e.file].Path)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", x.place(e), err)
	}
	defer f.Close()
	if _, err := f.ReadAt(raw, e.offset); err != nil && err != io.EOF {
		return nil, fmt.Errorf("read %s: %w", x.place(e), err)
	}
	if crc32.ChecksumIEEE(raw) != e.sum {
		return nil, fmt.Errorf("%s: %w", x.place(e), ErrChanged)
	}
	return raw, nil
}
