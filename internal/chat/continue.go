package chat

import (
	"slices"
	"strings"

	"trainer/internal/chat/jinja"
)

// Continue is what follows a turn that was sampled, up to where the assistant's next turn starts: the end of the turn, the
// messages of reply and the next header, as the template writes them behind c, whose last message is that turn. last is the
// token that the turn ended with, which is not in the ids again where it is the model's own end; -1 where it was stopped
// otherwise. Nothing before is rendered for its tokens, as they are those that were sampled. The error is a *Fault: among
// others a template that writes the turn otherwise once more follows, so that no next turn would see what was sampled.
func (t *Template) Continue(c Conversation, reply []Message, last int32) ([]int32, error) {
	c.Messages = append(slices.Clone(c.Messages), reply...)
	if err := t.check(c); err != nil {
		return nil, err
	}
	c, _ = t.open(c)
	if l := t.layout; l != nil {
		var b builder
		if last != l.end {
			b.add(0, l.end)
		}
		for _, m := range reply {
			l.turn(t, &b, m, 0)
		}
		b.add(0, l.roles["assistant"])
		return b.ids, nil
	}
	var ids []int32
	err := t.own.guarded(t, c, nil, func(j *job) (err error) {
		ids, err = j.continuation(len(c.Messages)-len(reply), last)
		return err
	})
	if err != nil {
		return nil, t.moved(c, err)
	}
	return ids, nil
}

// thoughtOfNone is the reasoning that a turn without any has while its template is looked at: that of other turns must stay.
const thoughtOfNone = "(let me see)"

// reasoned gives message i, the turn, reasoning where the template has a place for it, and returns what must be seen of it; ""
// for nothing. What follows the turn is the same with it and without.
func (j *job) reasoned(i int) string {
	thought, _ := reasoningOf(j.c.Messages[i])
	if thought != "" {
		return strings.TrimSpace(thought)
	}
	if j.p.noThink != "" {
		return ""
	}
	for _, name := range reasoningKeys {
		if j.p.reads(name) {
			j.set(i, name, thoughtOfNone)
			return thoughtOfNone
		}
	}
	if content, ok := j.given[i].Get(keyContent); ok && j.p.reads("</think>") {
		text, _ := content.(string)
		j.set(i, keyContent, "<think>\n"+thoughtOfNone+"\n</think>\n\n"+text)
		return thoughtOfNone
	}
	return ""
}

// continuation is what stands behind the first n messages, of which the last is the turn.
func (j *job) continuation(n int, last int32) ([]int32, error) {
	thought := j.reasoned(n - 1)
	was, err := j.render(n, false)
	if err != nil {
		return nil, refused(n-1, err)
	}
	now, err := j.render(len(j.given), true)
	if err != nil {
		return nil, refused(n, err)
	}
	for i := n; i < len(j.given); i++ {
		if err := j.lost(i, now.text, false); err != nil {
			return nil, err
		}
	}
	before, _, ok := j.closing(was, n-1)
	from, own, written := j.closing(now, n-1)
	if !ok || !written || was.text[:before] != now.text[:from] || !strings.Contains(now.text[:from], thought) {
		return nil, faultf(n-1, "", "the template writes the turn otherwise once a message of role %s follows, so the next turn would not see what was sampled; "+
			"let the environment reply with another role (tool, user), or give a template that keeps what is there (chat.template)", j.c.Messages[n].Role)
	}
	ids, _ := j.tokens(now, from, len(now.text))
	if len(ids) > 0 && (ids[0] == last || own && last >= 0 && j.t.tok.IsControl(last)) {
		ids = ids[1:]
	}
	return ids, nil
}

// closing is where the end token of message i begins; own is false where the next header ends it.
func (j *job) closing(r *rendering, i int) (at int, own, ok bool) {
	s, ok := r.span(i)
	if !ok {
		return 0, false, false
	}
	end := j.end(r, s.Start, s.End)
	if end < 0 {
		return s.End, false, true
	}
	_, ends := j.tokens(r, s.Start, end)
	if len(ends) < 2 {
		return s.Start, true, true
	}
	return s.Start + ends[len(ends)-2], true, true
}

// Rewrites says why no conversation can be continued with a message of role, nil where it can. The error is a *Fault.
func (t *Template) Rewrites(c Conversation, role string) error {
	turn := Message{Role: "assistant", Content: "So be it."}
	reply := Message{Role: role, Content: "Go on."}
	if role == "tool" && t.own != nil && t.own.reads("<tool_call>") { // else Answer reads no call
		call := jinja.NewDict("id", "call00000", "type", "function", "function", jinja.NewDict("name", "act", "arguments", jinja.NewDict("a", "b")))
		turn.Fields = jinja.NewDict("role", turn.Role, keyContent, turn.Content, keyToolCalls, &jinja.List{Items: []jinja.Value{call}})
		reply.Fields = jinja.NewDict("role", role, keyContent, reply.Content, "tool_call_id", "call00000", "name", "act")
	}
	c.Messages = append(slices.Clone(c.Messages), turn)
	_, err := t.Continue(c, []Message{reply}, -1)
	return err
}
