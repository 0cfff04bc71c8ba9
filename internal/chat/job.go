package chat

import (
	"slices"
	"strings"

	"trainer/internal/chat/hf"
	"trainer/internal/chat/jinja"
	"trainer/internal/tokenizer"
)

// job is one conversation on its way through a template. It is used once, by one goroutine.
type job struct {
	t       *Template
	p       *published
	tpl     *hf.Template
	c       Conversation
	weights []float64 // [messages]
	given   []*jinja.Dict
	ready   []*jinja.Dict // given, prepared for templates
	tools   []*jinja.Dict
	guard   *guard            // nil while no text of the row is known to spell a control token
	met     []string          // control tokens that the renderings have, looked up in the row
	spelt   []string          // those of them that text of the row spells
	last    tokenizer.Encoded // the rendering that was encoded last, for the next to start from
}

// rendering is a conversation as text.
type rendering struct {
	text       string
	messages   []hf.MessageSpan
	generation []jinja.Span
	literal    []jinja.Span      // what spells a control token and is text of the row; in order
	encoded    tokenizer.Encoded // of text, once it is asked for
}

func (p *published) encode(t *Template, c Conversation, weights []float64) ([]Example, error) {
	var examples []Example
	err := p.guarded(t, c, weights, func(j *job) (err error) {
		examples, err = j.examples()
		return err
	})
	return examples, err
}

func (p *published) prompt(t *Template, c Conversation) ([]int32, error) {
	var ids []int32
	err := p.guarded(t, c, nil, func(j *job) error {
		r, err := j.render(len(c.Messages), true)
		if err != nil {
			return refused(-1, err)
		}
		ids, _ = j.allTokens(r)
		return j.written(r)
	})
	return ids, err
}

// guarded does the work; where a rendering shows that text of the row spells a control token, once more with that text
// guarded. Few rows do, so most pay nothing for it.
func (p *published) guarded(t *Template, c Conversation, weights []float64, work func(*job) error) error {
	var spelt []string
	for {
		j := &job{t: t, p: p, c: c, weights: weights, tpl: p.template(len(c.Tools) > 0)}
		j.prepare(spelt)
		err := work(j)
		if len(j.spelt) == 0 {
			return err
		}
		spelt = append(spelt, j.spelt...)
	}
}

// prepare makes the messages and tools that the template is given.
func (j *job) prepare(spelt []string) {
	j.given = make([]*jinja.Dict, len(j.c.Messages))
	for i, m := range j.c.Messages {
		j.given[i] = j.p.given(m)
	}
	j.tools = j.c.Tools
	if len(spelt) > 0 {
		j.guardGiven(spelt)
	}
	j.ready = hf.Prepare(j.given)
}

// set changes what the template is given of message i.
func (j *job) set(i int, key string, v jinja.Value) {
	m := j.given[i].Clone()
	m.Set(key, v)
	j.given[i], j.ready[i] = m, hf.Prepare([]*jinja.Dict{m})[0]
}

func (j *job) guardGiven(spelt []string) {
	j.guard = newGuard(spelt, j.given, j.tools)
	j.met = slices.Clone(spelt)
	j.given, j.tools = j.guard.objects(j.given), j.guard.objects(j.tools)
}

// render renders the first n messages, and more behind them.
func (j *job) render(n int, prompt bool, more ...*jinja.Dict) (*rendering, error) {
	o := j.p.options
	o.AddGenerationPrompt = prompt
	messages := j.ready[:n:n]
	out, err := j.tpl.Render(hf.Conversation{Messages: append(messages, hf.Prepare(more)...), Prepared: true, Tools: j.tools, Documents: j.c.Documents}, o)
	if err != nil {
		return nil, err
	}
	r := &rendering{text: out.Text, messages: out.Messages, generation: out.Generation}
	if j.guard != nil {
		j.guard.restore(r)
	}
	return r, nil
}

// tokens encodes bytes [from, to) of a rendering, which are cut where a control token or the text ends; ends count from from.
func (j *job) tokens(r *rendering, from, to int) (ids []int32, ends []int) {
	return j.t.tok.EncodeWhere(r.text[from:to], j.counts(r, from))
}

// allTokens encodes a rendering, and only once; the result is not to be changed. What it starts with like the one before has the tokens of that.
func (j *job) allTokens(r *rendering) (ids []int32, ends []int) {
	if r.encoded.Text != r.text {
		if j.guard != nil { // where text of the row stands differs between the two
			j.last = tokenizer.Encoded{}
		}
		r.encoded = j.t.tok.EncodeLike(j.last, r.text, j.counts(r, 0))
		j.last = r.encoded
	}
	return r.encoded.IDs, r.encoded.Ends
}

// counts says of bytes of r.text[from:] whether a control token there is the template's.
func (j *job) counts(r *rendering, from int) func(a, b int) bool {
	return func(a, b int) bool {
		if r.isLiteral(from+a, from+b) {
			return false
		}
		j.meet(r.text[from+a : from+b])
		return true
	}
}

// meet notes a control token, and looks at its first time whether the row spells it.
func (j *job) meet(token string) {
	if j.t.section.AllowControlTokens || slices.Contains(j.met, token) {
		return
	}
	j.met = append(j.met, token)
	spells := func(d *jinja.Dict) bool { return holds(d, token) }
	if slices.ContainsFunc(j.given, spells) || slices.ContainsFunc(j.tools, spells) {
		j.spelt = append(j.spelt, token)
	}
}

// holds tells whether a text in v holds s.
func holds(v jinja.Value, s string) bool {
	switch v := v.(type) {
	case string:
		return strings.Contains(v, s)
	case *jinja.List:
		return slices.ContainsFunc(v.Items, func(item jinja.Value) bool { return holds(item, s) })
	case *jinja.Dict:
		for k, item := range v.All() {
			if holds(k, s) || holds(item, s) {
				return true
			}
		}
	}
	return false
}

func (r *rendering) isLiteral(from, to int) bool {
	i, _ := slices.BinarySearchFunc(r.literal, from, func(s jinja.Span, at int) int { return s.End - at - 1 })
	return i < len(r.literal) && r.literal[i].Start < to
}

// span is where the template wrote while it stood at message i; ok is false where it wrote nothing, or in several places.
func (r *rendering) span(i int) (s jinja.Span, ok bool) {
	at := slices.IndexFunc(r.messages, func(m hf.MessageSpan) bool { return m.Message == i })
	if at < 0 {
		return s, false
	}
	s = r.messages[at].Span
	for _, m := range r.messages[at+1:] {
		if m.Message == i {
			return s, false
		}
	}
	return s, true
}
