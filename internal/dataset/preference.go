package dataset

import (
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"trainer/internal/chat"
)

// encodePreference reads {"prompt": …, "chosen": …, "rejected": …}. Each is text, a message, or a list of messages; chosen
// and rejected may also be whole conversations, with the prompt in them: what both begin with is the prompt then.
func encodePreference(s *source, row value, t *chat.Template) (rendered, *fault) {
	p, c, r := s.columns["prompt"], s.columns["chosen"], s.columns["rejected"]
	if !p.talks(row) && !c.talks(row) && !r.talks(row) {
		return s.encodeTexts(p, c, r, row, t)
	}
	given, chosen, rejected, before, f := s.talks(row)
	if f != nil {
		return rendered{}, f
	}
	out := rendered{desirable: true}
	for i, side := range [][]chat.Message{chosen, rejected} {
		key := [2]*column{c, r}[i].String()
		ex, f := s.encodeBehind(row, given, side, before, p.String(), key, t)
		if f != nil {
			return rendered{}, f
		}
		out.sides = append(out.sides, ex)
	}
	return out, nil
}

// talks reads a pair of messages: those of its prompt, marked as given, of which the first ones, before in number, stand in the
// prompt's column, and those of each side.
func (s *source) talks(row value) (given, chosen, rejected []chat.Message, before int, f *fault) {
	p, c, r := s.columns["prompt"], s.columns["chosen"], s.columns["rejected"]
	if p.present(row) {
		if given, f = turns(s, p, row, "user"); f != nil {
			return nil, nil, nil, 0, f
		}
	}
	if chosen, f = turns(s, c, row, "assistant"); f == nil {
		rejected, f = turns(s, r, row, "assistant")
	}
	if f != nil {
		return nil, nil, nil, 0, f
	}
	before = len(given)
	n := 0 // that both sides begin with
	for n < min(len(chosen), len(rejected))-1 && reflect.DeepEqual(chosen[n], rejected[n]) {
		n++
	}
	if before == 0 || begins(chosen, given) && begins(rejected, given) || ends(chosen[:n], given) {
		before, given = 0, slices.Clone(chosen[:n])
		chosen, rejected = chosen[n:], rejected[n:]
	}
	for i := range given {
		given[i].Given = true
	}
	return given, chosen, rejected, before, nil
}

// begins tells whether a conversation starts with the messages of its prompt.
func begins(whole, prompt []chat.Message) bool {
	return len(whole) > len(prompt) && reflect.DeepEqual(whole[:len(prompt)], prompt)
}

// ends tells whether what both sides begin with has their prompt at its end, such as behind a system message.
func ends(common, prompt []chat.Message) bool {
	return len(common) >= len(prompt) && reflect.DeepEqual(common[len(common)-len(prompt):], prompt)
}

// encodeBehind renders one side behind its prompt. before of the given messages stand under the key prompt, the rest under
// that of the side.
func (s *source) encodeBehind(row value, given, side []chat.Message, before int, prompt, key string, t *chat.Template) (chat.Example, *fault) {
	n := len(given) - before
	if len(side) == 0 {
		return chat.Example{}, bad(key, "empty; a pair needs both completions")
	}
	if side[0].Role != "assistant" {
		return chat.Example{}, bad(element(key, n, "role"), "the pair parts at a message of role %q; its sides answer one prompt, so what differs begins with the assistant", side[0].Role)
	}
	all := append(append(make([]chat.Message, 0, len(given)+len(side)), given...), side...)
	exs, f := s.encoded(row, all, t, func(i int, field string) string {
		switch {
		case i < 0:
			return s.place(key, i, field)
		case i < before:
			return element(prompt, i, field)
		}
		return element(key, i-before, field)
	})
	if f == nil {
		f = single(exs, key)
	}
	if f != nil {
		return chat.Example{}, f
	}
	return exs[0], nil
}

// encodeTexts renders a pair of texts. Without a prompt they are whole texts, which only chat.template: none can take.
func (s *source) encodeTexts(p, c, r *column, row value, t *chat.Template) (rendered, *fault) {
	chosen, f := c.text(row)
	if f != nil {
		return rendered{}, f
	}
	rejected, f := r.text(row)
	if f != nil {
		return rendered{}, f
	}
	prompt := ""
	switch {
	case p.present(row):
		if prompt, f = p.text(row); f != nil {
			return rendered{}, f
		}
	case t.HasRoles():
		return rendered{}, bad(p.String(), "missing, and the sides are plain text: give a prompt, or messages; fields names a prompt of another column, as {prompt: question}; whole texts that begin alike need chat.template: none")
	default:
		prompt = alike(chosen, rejected)
		chosen, rejected = chosen[len(prompt):], rejected[len(prompt):]
	}
	out := rendered{desirable: true}
	for i, text := range []string{chosen, rejected} {
		key := [2]*column{c, r}[i].String()
		if text == "" {
			return rendered{}, bad(key, "empty; a pair needs both completions")
		}
		ex, f := s.answer(row, prompt, text, p.String(), key, t)
		if f != nil {
			return rendered{}, f
		}
		out.sides = append(out.sides, ex)
	}
	return out, nil
}

// answer renders a completion behind its prompt, both text.
func (s *source) answer(row value, prompt, text, promptKey, key string, t *chat.Template) (chat.Example, *fault) {
	place := func(i int, field string) string {
		if i < 0 {
			return s.place(key, i, field)
		}
		return [2]string{promptKey, key}[min(i, 1)]
	}
	if t.HasRoles() {
		ms := []chat.Message{{Role: "user", Content: prompt, Given: true}, {Role: "assistant", Content: text}}
		exs, f := s.encoded(row, ms, t, place)
		if f != nil {
			return chat.Example{}, f
		}
		return exs[0], single(exs, key)
	}
	if f := s.noSystem(row); f != nil {
		return chat.Example{}, f
	}
	exs, err := t.PromptCompletion(prompt, text)
	if err != nil {
		return chat.Example{}, fromChat(err, place)
	}
	return exs[0], nil
}

// alike is what two texts begin with, up to the last space in it, so that no word is cut in two.
func alike(a, b string) string {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	for n > 0 && n < len(a) && !utf8.RuneStart(a[n]) {
		n--
	}
	return a[:strings.LastIndexAny(a[:n], " \n\t")+1]
}

// present tells whether the row has the column, and not as null.
func (c *column) present(row value) bool {
	v := c.raw(row)
	return !c.whole() || v != nil && !v.isNull()
}

// talks tells whether the column holds messages.
func (c *column) talks(row value) bool {
	v := c.raw(row)
	return c.whole() && v != nil && (v.isList() || v.isObject())
}
