package dataset

import (
	"encoding/json"
	"strings"

	"trainer/internal/chat"
	"trainer/internal/chat/jinja"
)

// examines makes of a row that trains what its last trained answer is an answer to.
func (s *source) examines(given value, t *chat.Template, p *Prompt) (f *fault) {
	row, f := s.canonical(given)
	if f != nil {
		return s.restore(given, f)
	}
	conv, text, f := s.spoken(row, t)
	if f != nil {
		return s.restore(given, f)
	}
	if len(conv.Messages) == 0 {
		ids, err := t.PromptText(text)
		if err != nil {
			return bad("", "its prompt: %v", err)
		}
		p.IDs, p.Asked = ids, encoded(text)
		return nil
	}
	n := t.LastTrained(conv)
	if n < 0 {
		return bad("", "no message of the assistant trains, so there is none that could be sampled in its place")
	}
	if conv.Messages = conv.Messages[:n]; n == 0 {
		return bad("", "begins with the answer that trains: there is nothing to sample it from")
	}
	ids, err := t.Prompt(conv)
	if err != nil {
		return bad("", "what stands before its last answer: %v", err)
	}
	p.IDs, p.Asked, p.Conversation = ids, said(conv.Messages), conv
	return nil
}

// spoken is the conversation of a row that trains, its answer in it: of a pair, that of the chosen side. Where there are no roles, text
// is its prompt.
func (s *source) spoken(row value, t *chat.Template) (conv chat.Conversation, text string, f *fault) {
	var ms []chat.Message
	switch {
	case s.columns["messages"] != nil:
		ms, f = turns(s, s.columns["messages"], row, "assistant")
	case s.columns["chosen"] != nil:
		ms, text, f = s.spokenPair(row, t)
	case s.columns["completion"] != nil:
		ms, text, f = s.spokenAnswer(row, t)
	default:
		f = bad("", "rows of %s have no prompt, and an evaluation samples completions of one; use eval.sampling_params: null", s.format.name)
	}
	if f != nil || ms == nil {
		return conv, text, f
	}
	conv, f = s.conversation(row, ms)
	return conv, "", f
}

func (s *source) spokenAnswer(row value, t *chat.Template) (ms []chat.Message, text string, f *fault) {
	p, c := s.columns["prompt"], s.columns["completion"]
	if p.holdsList(row) || c.holdsList(row) {
		given, f := side(p, row, "user")
		if f != nil {
			return nil, "", f
		}
		rest, f := side(c, row, "assistant")
		return append(given, rest...), "", f
	}
	if text, f = p.text(row); f != nil || !t.HasRoles() {
		return nil, text, f
	}
	return []chat.Message{{Role: "user", Content: text, Given: true}, {Role: "assistant"}}, "", nil
}

func (s *source) spokenPair(row value, t *chat.Template) (ms []chat.Message, text string, f *fault) {
	p, c, r := s.columns["prompt"], s.columns["chosen"], s.columns["rejected"]
	if p.talks(row) || c.talks(row) || r.talks(row) {
		given, chosen, _, _, f := s.talks(row)
		return append(given, chosen...), "", f
	}
	if p.present(row) {
		text, f = p.text(row)
	} else if text, f = c.text(row); f == nil {
		var other string
		other, f = r.text(row)
		text = alike(text, other)
	}
	if f != nil || !t.HasRoles() {
		return nil, text, f
	}
	return []chat.Message{{Role: "user", Content: text, Given: true}, {Role: "assistant"}}, "", nil
}

// said is messages as a JSON list of them.
func said(ms []chat.Message) json.RawMessage {
	var b strings.Builder
	for i, m := range ms {
		fields := m.Fields
		if fields == nil {
			fields = jinja.NewDict("role", m.Role, "content", m.Content)
		}
		b.WriteString([]string{"[", ", "}[min(i, 1)])
		b.WriteString(jinja.JSON(fields))
	}
	return json.RawMessage(b.String() + "]")
}
