package chat

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"trainer/internal/chat/hf"
	"trainer/internal/chat/jinja"
)

// whole renders the conversation once, for modes that train more than the assistant's answers: the text is trained as it
// stands, history included.
func (j *job) whole() (Example, error) {
	r, err := j.render(len(j.given), false)
	if err != nil {
		return Example{}, refused(-1, err)
	}
	if err := j.written(r); err != nil {
		return Example{}, err
	}
	ids, ends := j.allTokens(r)
	if len(ids) == 0 {
		return Example{}, faultf(-1, "", "the template writes nothing for it")
	}
	weights := make([]float64, len(ids))
	if j.t.mode.headers {
		j.fillAll(weights, ends, r)
	} else if err := j.fillMessages(weights, ends, r); err != nil {
		return Example{}, err
	}
	weights[0] = 0
	return Example{IDs: ids, Weights: weights, Parts: j.parts(r, ends)}, nil
}

// fillAll trains every token, but for those of messages that are left out; what the template writes at no message trains.
func (j *job) fillAll(weights []float64, ends []int, r *rendering) {
	fill(weights, ends, jinja.Span{Start: 0, End: len(r.text)}, 1)
	for _, s := range r.messages {
		if w := j.weights[s.Message]; w != 1 {
			fill(weights, ends, s.Span, w)
		}
	}
}

// fillMessages trains the text of every message with the end token behind it, not its header.
func (j *job) fillMessages(weights []float64, ends []int, r *rendering) error {
	for i, w := range j.weights {
		if w == 0 {
			continue
		}
		if err := j.lost(i, r.text, true); err != nil {
			return err
		}
		s, ok := j.body(r, i)
		if !ok {
			return faultf(i, "", "the template does not write its content in one piece, so it cannot be trained apart; train_on: all_tokens trains the whole text")
		}
		fill(weights, ends, s, w)
	}
	return nil
}

// body is what a message trains: of an answer what sampling would not be given, to the end token; of another message its
// content and the end token directly behind it. ok is false where the template does not write it in one piece.
func (j *job) body(r *rendering, i int) (body jinja.Span, ok bool) {
	if s, written := r.span(i); written && i > 0 && j.c.Messages[i].Role == "assistant" {
		prompt, err := j.render(i, true)
		if err != nil {
			return s, false
		}
		s.Start = max(s.Start, common(r.text[:s.End], prompt.text))
		if end := j.end(r, s.Start, s.End); end >= 0 {
			s.End = end
		}
		return s, true
	}
	s, ok := j.contentOf(r, i)
	if !ok {
		return s, false
	}
	behind := s.End + len(r.text[s.End:]) - len(strings.TrimLeftFunc(r.text[s.End:], unicode.IsSpace))
	if end := j.controlAt(r, behind); end >= 0 {
		s.End = end
	}
	return s, true
}

// common is the length of what a and b start with alike, in whole characters.
func common(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	for n > 0 && n < len(a) && !utf8.RuneStart(a[n]) {
		n--
	}
	return n
}

// contentOf is where the content of message i stands. It is found by rendering the conversation once more with marks around
// the content; ok is false where the template does something else with the marks than to write them.
func (j *job) contentOf(r *rendering, i int) (s jinja.Span, ok bool) {
	content, _ := j.given[i].Get(keyContent)
	text, isText := content.(string)
	const before, behind = "\uF8FD", "\uF8FE"
	if !isText || strings.Contains(r.text, before) || strings.Contains(r.text, behind) {
		return s, false
	}
	for _, text := range []string{text, strings.TrimFunc(text, unicode.IsSpace)} {
		marked := j.given[i].Clone()
		marked.Set(keyContent, before+text+behind)
		out, err := j.tpl.Render(hf.Conversation{Messages: replaced(j.given, i, marked), Tools: j.tools, Documents: j.c.Documents}, j.p.options)
		if err != nil {
			return s, false
		}
		m := &rendering{text: out.Text}
		if j.guard != nil {
			j.guard.restore(m)
		}
		head, rest, found := strings.Cut(m.text, before)
		inner, rest, closed := strings.Cut(rest, behind)
		if found && closed && head+inner+rest == r.text {
			return jinja.Span{Start: len(head), End: len(head) + len(inner)}, true
		}
	}
	return s, false
}

func replaced(all []*jinja.Dict, i int, by *jinja.Dict) []*jinja.Dict {
	out := append([]*jinja.Dict(nil), all...)
	out[i] = by
	return out
}
