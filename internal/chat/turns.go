package chat

import (
	"maps"
	"slices"
	"strings"

	"trainer/internal/chat/jinja"
)

// turn is a message that trains, in a rendering that has it as it would be sampled.
type turn struct {
	message    int
	in         *rendering
	begin, end int // bytes of in.text that are sampled: from behind the prompt to behind the end token
}

// A conversation with more trained turns than this is not rendered twice a turn: some of them are, and the others are
// found in the rendering of the last.
const exactTurns = 4

// turns finds the trained turns of the assistant, in order.
func (j *job) turns() ([]turn, error) {
	var trained []int
	for i, m := range j.c.Messages {
		if m.Role == "assistant" && j.weights[i] > 0 {
			trained = append(trained, i)
		}
	}
	if len(trained) > exactTurns {
		if ts, err := j.inOne(trained); ts != nil || err != nil {
			return ts, err
		}
	}
	return j.exact(trained)
}

// exact renders each turn for itself.
func (j *job) exact(trained []int) ([]turn, error) {
	ts := make([]turn, 0, len(trained))
	for _, i := range trained {
		u, err := j.turn(i)
		if err != nil {
			return nil, err
		}
		ts = append(ts, u)
	}
	return ts, nil
}

// turn renders message i as it would be sampled: what stands before it is what sampling is given.
func (j *job) turn(i int) (turn, error) {
	if err := j.unthought(i); err != nil {
		return turn{}, err
	}
	if i == 0 {
		return turn{}, faultf(0, "", "the conversation starts with the assistant, so sampling would have nothing to start from; put a user or system message before it (chat.system is one), or leave it out of training with train: false")
	}
	prompt, err := j.render(i, true)
	if err != nil {
		return turn{}, refused(i, err)
	}
	r, err := j.render(i+1, false)
	if err != nil {
		return turn{}, refused(i, err)
	}
	if !strings.HasPrefix(r.text, prompt.text) {
		full := r.text
		if r = j.answered(i, r, prompt); r == nil {
			return turn{}, j.otherwise(i, full, prompt.text)
		}
	}
	u := turn{message: i, in: r, begin: len(prompt.text)}
	if u.end = j.end(r, u.begin, len(r.text)); u.end < 0 {
		err = j.endByNext(&u)
	}
	return u, err
}

// otherwise says where the template does not start a message as sampling would.
func (j *job) otherwise(i int, text, prompt string) error {
	n := tagStart(prompt, common(prompt, text))
	hint := ""
	if strings.Contains(prompt[n:], "<think>") {
		hint = "give the message its reasoning (reasoning_content, \"\" where it has none), choose a mode without reasoning where the template has one (chat.args), or "
	}
	return faultf(i, "", "sampling would start behind %q, but the template writes %q there: the model would learn what it is never asked; %sgive a template that agrees with itself (chat.template)",
		tail(prompt[n:]), head(text[n:]), hint)
}

func head(s string) string {
	if r := []rune(s[:min(len(s), 200)]); len(r) > 40 {
		return string(r[:40]) + "…"
	}
	return s
}

func tail(s string) string {
	if r := []rune(s[max(0, len(s)-200):]); len(r) > 40 {
		return "…" + string(r[len(r)-40:])
	}
	return s
}

// endWindow bounds the bytes behind a turn's text in which the token of the next role is looked for.
const endWindow = 256

// end is where the turn that is the bytes [from, to) ends: behind the control token that its model stops with. A turn ends in
// control tokens and space; of several the one that ends an answer, else the last. -1 where there is none.
func (j *job) end(r *rendering, from, to int) int {
	ids, ends := j.allTokens(r)
	eos := j.p.options.SpecialTokens["eos_token"]
	last, eosBehind := -1, -1 // eosBehind: directly behind token i, with nothing but control tokens between
	for i := tokenBehind(ends, jinja.Span{End: to}) - 1; i >= 0 && ends[i] > from; i-- {
		start := 0
		if i > 0 {
			start = ends[i-1]
		}
		a, behind := max(start, from), min(ends[i], to)
		switch piece := r.text[a:behind]; {
		case j.t.tok.IsControl(ids[i]) && start >= from && ends[i] <= to:
			if piece == eos {
				eosBehind = behind
			}
			if piece == j.p.answerEnd {
				last = max(behind, eosBehind)
			} else if last < 0 || piece == eos && !strings.Contains(r.text[a:to], j.p.answerEnd) {
				last = behind
			}
		case strings.TrimSpace(piece) != "":
			return last
		default:
			eosBehind = -1
		}
	}
	return last
}

// endByNext ends a turn by the token of the role that follows, where the template writes no other.
func (j *job) endByNext(u *turn) error {
	none := faultf(u.message, "", "the template writes no token behind the message with which a model would stop: one that is a single token of %s; give a template that ends it with one (chat.template), such as eos_token", j.t.tok.Name())
	if !j.p.nextEnds {
		return none
	}
	next := jinja.NewDict("role", "user", keyContent, "next")
	if m := j.given[u.message]; m != nil {
		if calls, ok := m.Get(keyToolCalls); ok && !blank(calls) {
			next = jinja.NewDict("role", "tool", keyContent, "next")
		}
	}
	r, err := j.render(u.message+1, false, next)
	if err != nil {
		return refused(u.message, err)
	}
	s, ok := r.span(u.message + 1) // the template may write the message otherwise, now that it is history
	if !ok {
		return none
	}
	end := j.controlAt(r, s.Start)
	if end < 0 {
		return none
	}
	u.in = &rendering{text: u.in.text + r.text[s.Start:end], messages: u.in.messages, generation: u.in.generation, literal: u.in.literal}
	u.end = len(u.in.text)
	return nil
}

// controlAt is the byte behind the control token that stands at byte at, -1 for none.
func (j *job) controlAt(r *rendering, at int) int {
	ids, ends := j.tokens(r, at, min(len(r.text), at+endWindow))
	if len(ids) == 0 || !j.t.tok.IsControl(ids[0]) {
		return -1
	}
	return at + ends[0]
}

// inOne finds all turns in the rendering up to the last. Some are rendered for themselves, as they would be sampled: the
// last, and the first and the last of each shape. Where these are in it as they are, and every other one starts and ends in
// it alike and loses nothing, the conversation is one example. Else the answer is nil: each is to be rendered for itself.
func (j *job) inOne(trained []int) ([]turn, error) {
	n := len(trained)
	last, err := j.turn(trained[n-1])
	if err != nil {
		return nil, err
	}
	ts := make([]turn, n)
	ts[n-1] = last
	header, first := "", true
	for _, at := range j.ofEachShape(trained[:n-1]) {
		u, err := j.turn(trained[at])
		if err != nil {
			return nil, err
		}
		s, ok := last.in.span(u.message)
		if !ok || s.Start > u.begin || !strings.HasPrefix(last.in.text, u.in.text[:u.end]) {
			return nil, nil
		}
		h := u.in.text[s.Start:u.begin]
		if !first && h != header {
			return nil, nil
		}
		header, first, u.in = h, false, last.in
		ts[at] = u
	}
	for k, i := range trained {
		if ts[k].in != nil {
			continue
		}
		if err := j.unthought(i); err != nil {
			return nil, err
		}
		u, ok := j.derived(last.in, i, header)
		if !ok {
			return nil, nil
		}
		ts[k] = u
	}
	return ts, nil
}

// shape is what templates look at to write a turn in one way or another, once it is history.
type shape struct {
	text, calls, thought bool
	before, behind       string // roles of its neighbours; behind is not "" where a turn is history
	past                 bool   // a user's message follows, if not at once
}

// ofEachShape are the indices in trained of the first and the last turn of each shape, in order.
func (j *job) ofEachShape(trained []int) []int {
	user := -1 // the last of the user's messages
	for i, m := range j.c.Messages {
		if m.Role == "user" {
			user = i
		}
	}
	first, last := map[shape]int{}, map[shape]int{}
	for k, i := range trained {
		m := j.c.Messages[i]
		thought, _ := reasoningOf(m)
		s := shape{text: m.Content != "", calls: m.calls(), thought: thought != "", past: i < user}
		if i > 0 {
			s.before = j.c.Messages[i-1].Role
		}
		if i+1 < len(j.c.Messages) {
			s.behind = j.c.Messages[i+1].Role
		}
		if _, ok := first[s]; !ok {
			first[s] = k
		}
		last[s] = k
	}
	all := slices.AppendSeq(slices.Collect(maps.Values(first)), maps.Values(last))
	slices.Sort(all)
	return slices.Compact(all)
}

// calls tells whether the message calls tools.
func (m Message) calls() bool {
	if m.Fields == nil {
		return false
	}
	calls, _ := m.Fields.Get(keyToolCalls)
	return !blank(calls)
}

// derived is message i in a rendering of more than it, where it starts with header and loses nothing.
func (j *job) derived(r *rendering, i int, header string) (u turn, ok bool) {
	s, ok := r.span(i)
	if !ok || !strings.HasPrefix(r.text[s.Start:], header) || s.Start+len(header) > s.End {
		return u, false
	}
	u = turn{message: i, in: r, begin: s.Start + len(header)}
	if j.p.nextEnds {
		u.end = j.controlAt(r, s.End)
	} else {
		u.end = j.end(r, u.begin, s.End)
	}
	return u, u.end > u.begin && j.lost(i, r.text[u.begin:u.end], true) == nil
}

// merged groups turns of which the later ones have the earlier ones in their past as they were sampled; in order.
func merged(ts []turn) [][]turn {
	var groups [][]turn
	for k := len(ts) - 1; k >= 0; k-- {
		u := ts[k]
		if n := len(groups); n > 0 {
			if shown := groups[n-1][len(groups[n-1])-1]; u.end <= shown.begin && strings.HasPrefix(shown.in.text, u.in.text[:u.end]) {
				groups[n-1] = append([]turn{u}, groups[n-1]...)
				continue
			}
		}
		groups = append(groups, []turn{u})
	}
	slices.Reverse(groups)
	return groups
}
