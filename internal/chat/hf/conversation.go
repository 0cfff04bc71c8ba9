package hf

import (
	"errors"
	"fmt"

	"trainer/internal/chat/jinja"
)

// Conversation is what is rendered, as jinja.Decode gives it: the order of keys counts, as templates write them out.
type Conversation struct {
	Messages []*jinja.Dict
	// Prepared says that the messages come from Prepare: for callers that render them more than once.
	Prepared bool
	// Tools and Documents are None where they are nil, which templates tell from empty.
	Tools, Documents []*jinja.Dict
}

// Objects reads a JSON list of objects, which messages, tools and documents are; null gives nil. The error of a list says
// which element is none.
func Objects(data []byte) ([]*jinja.Dict, error) {
	v, err := jinja.Decode(data)
	if err != nil || v == nil {
		return nil, err
	}
	l, ok := v.(*jinja.List)
	if !ok {
		return nil, errors.New("not a list")
	}
	out := make([]*jinja.Dict, len(l.Items))
	for i, item := range l.Items {
		if out[i], ok = item.(*jinja.Dict); !ok {
			return nil, fmt.Errorf("%d: not an object", i)
		}
	}
	return out, nil
}

// reasoningKeys are the names under which data has the reasoning of a message, the preferred first.
var reasoningKeys = []string{"reasoning_content", "thinking", "reasoning"}

// Prepare copies messages as templates expect them.
func Prepare(messages []*jinja.Dict) []*jinja.Dict {
	out := make([]*jinja.Dict, len(messages))
	for i, m := range messages {
		out[i] = prepare(m)
	}
	return out
}

// prepare copies a message as templates expect it: without the keys whose value is None, and with its reasoning under the
// two names that templates read.
func prepare(m *jinja.Dict) *jinja.Dict {
	reasoning := reasoningOf(m)
	if reasoning == nil && !holdsNone(m) {
		return m.Clone()
	}
	out := jinja.NewDict()
	if reasoning != nil {
		out.Set("thinking", reasoning)
	}
	for k, v := range m.All() {
		if v != nil {
			out.Set(k, v)
		}
	}
	if reasoning != nil {
		out.Set("reasoning_content", reasoning)
	}
	return out
}

func holdsNone(m *jinja.Dict) bool {
	for _, v := range m.All() {
		if v == nil {
			return true
		}
	}
	return false
}

func reasoningOf(m *jinja.Dict) jinja.Value {
	for _, name := range reasoningKeys {
		if v, _ := m.Get(name); v != nil {
			return v
		}
	}
	return nil
}

// list is None for nil.
func list(objects []*jinja.Dict) jinja.Value {
	if objects == nil {
		return nil
	}
	out := &jinja.List{Items: make([]jinja.Value, len(objects))}
	for i, o := range objects {
		out.Items[i] = o
	}
	return out
}
