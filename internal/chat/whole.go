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
	ids, ends := j.tokens(r, 0, len(r.text))
	weights := make([]float64, len(ids))
	if j.t.mode.headers {
		j.fillAll(weights, ends, r)
	} else if err := j.fillMessages(weights, ends, r); err != nil {
		return Example{}, err
	}
	weights[0] = 0
	return Example{ids, weights}, nil
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
		s, ok := r.span(i)
		if !ok {
			return faultf(i, "", "the template writes it in no one place, so it cannot be trained apart; train_on: all_tokens trains the whole text")
		}
		if s, err := j.body(r, i, s); err != nil {
			return err
		} else {
			fill(weights, ends, s, w)
		}
	}
	return nil
}

// body is the part of a message's span that is its text and end token: of an answer what sampling would not be given, of
// another message what follows the header that the template writes before its content.
func (j *job) body(r *rendering, i int, s jinja.Span) (jinja.Span, error) {
	end := j.end(r, s.Start, s.End)
	if end < 0 {
		end = s.End
	}
	if j.c.Messages[i].Role == "assistant" && i > 0 {
		prompt, err := j.render(i, true)
		if err != nil {
			return s, refused(i, err)
		}
		return jinja.Span{Start: max(s.Start, common(r.text[:s.End], prompt.text)), End: end}, nil
	}
	if at := j.contentAt(r, i, s); at >= 0 {
		s.Start = at
	}
	return jinja.Span{Start: s.Start, End: end}, nil
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

// contentAt is where the content of message i starts in its span. It is found by rendering the conversation once more with
// a mark before it; -1 where the template does something else with the mark than to write it.
func (j *job) contentAt(r *rendering, i int, s jinja.Span) int {
	content, ok := j.given[i].Get(keyContent)
	text, isText := content.(string)
	if !ok || !isText {
		return -1
	}
	const mark = "\uF8FE"
	if strings.Contains(r.text, mark) {
		return -1
	}
	given := j.given[i]
	marked := given.Clone()
	marked.Set(keyContent, mark+strings.TrimLeftFunc(text, unicode.IsSpace))
	out, err := j.tpl.Render(hf.Conversation{Messages: replaced(j.given, i, marked), Tools: j.tools, Documents: j.c.Documents}, j.p.options)
	if err != nil {
		return -1
	}
	m := &rendering{text: out.Text, messages: out.Messages}
	if j.guard != nil {
		j.guard.restore(m)
	}
	at := strings.Index(m.text, mark)
	if at < s.Start || at > s.End || m.text[:at] != r.text[:at] {
		return -1
	}
	return at
}

func replaced(all []*jinja.Dict, i int, by *jinja.Dict) []*jinja.Dict {
	out := append([]*jinja.Dict(nil), all...)
	out[i] = by
	return out
}
