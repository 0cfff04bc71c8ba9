package chat

import (
	"fmt"
	"slices"
	"strings"

	"trainer/internal/chat/jinja"
)

// What a template does not write, a model does not learn, and nobody would see that it is missing. So every text of the
// conversation is looked for in what was rendered: as it is, without the space around it, and as JSON writes it.

// writtenAll looks for the texts of a conversation of which turns train: those of a trained turn in its own rendering, those
// of another message in the rendering of the first trained turn behind it. What stands behind the last is not rendered.
func (j *job) writtenAll(ts []turn) error {
	k := 0
	for i := range j.given {
		for k < len(ts) && ts[k].message < i {
			k++
		}
		if k == len(ts) {
			break
		}
		u := ts[k]
		text, trained := u.in.text[u.begin:u.end], u.message == i
		if !trained {
			text = u.in.text[:u.begin]
			if s, ok := u.in.span(i); ok && j.lost(i, text[min(s.Start, len(text)):min(s.End, len(text))], false) == nil {
				continue
			}
		}
		if err := j.lost(i, text, trained); err != nil {
			return err
		}
	}
	return j.writtenTools(ts[0].in.text)
}

// written looks for the texts of a conversation of which nothing trains.
func (j *job) written(r *rendering) error {
	for i := range j.given {
		if err := j.lost(i, r.text, false); err != nil {
			return err
		}
	}
	return j.writtenTools(r.text)
}

func (j *job) writtenTools(text string) error {
	for i, tool := range j.c.Tools {
		key := fmt.Sprintf("tools.%d", i)
		if f, ok := tool.Get("function"); ok {
			if d, ok := f.(*jinja.Dict); ok {
				key, tool = key+".function", d
			}
		}
		if name, _ := tool.Get("name"); !isIn(text, name) {
			return lostFault(-1, key+".name", name)
		}
	}
	return nil
}

// lost finds a text of message i that rendered does not have. The reasoning of a message that is not trained may be left
// out, and is by most templates.
func (j *job) lost(i int, rendered string, trained bool) error {
	m := j.c.Messages[i]
	if m.Content != "" && !hasContent(rendered, m.Content, trained) {
		return lostFault(i, keyContent, m.Content)
	}
	if m.Fields == nil {
		return nil
	}
	for k, v := range m.Fields.All() {
		switch key, _ := k.(string); {
		case key == keyContent:
			if l, ok := v.(*jinja.List); ok {
				if err := lostParts(i, l, rendered, trained); err != nil {
					return err
				}
			}
		case key == keyToolCalls:
			if err := j.lostCalls(i, v, rendered); err != nil {
				return err
			}
		case trained && slices.Contains(reasoningKeys, key):
			if s, ok := v.(string); ok && !hasText(rendered, s) {
				return lostFault(i, key, s)
			}
		}
	}
	return nil
}

// lostParts looks at content that stands in parts.
func lostParts(i int, parts *jinja.List, rendered string, trained bool) error {
	for n, item := range parts.Items {
		part, ok := item.(*jinja.Dict)
		if !ok {
			continue
		}
		for k, v := range part.All() {
			key, _ := k.(string)
			s, ok := v.(string)
			if !ok || key == "type" || !trained && slices.Contains(reasoningKeys, key) {
				continue
			}
			if !hasText(rendered, s) {
				return lostFault(i, fmt.Sprintf("content.%d.%s", n, key), s)
			}
		}
	}
	return nil
}

func (j *job) lostCalls(i int, calls jinja.Value, rendered string) error {
	l, ok := calls.(*jinja.List)
	if !ok {
		return nil
	}
	if j.p.oneCall && len(l.Items) > 1 {
		return faultf(i, keyToolCalls+".1", "the template writes the first call of a message alone, so training would drop this one; give each call a message of its own, or give a template that writes them (chat.template)")
	}
	for n, item := range l.Items {
		key := fmt.Sprintf("%s.%d", keyToolCalls, n)
		call, ok := item.(*jinja.Dict)
		if !ok {
			continue
		}
		if f, ok := call.Get("function"); ok {
			if d, ok := f.(*jinja.Dict); ok {
				key, call = key+".function", d
			}
		}
		if name, _ := call.Get("name"); !isIn(rendered, name) {
			return lostFault(i, key+".name", name)
		}
		arguments, _ := call.Get("arguments")
		if err := lostValue(i, key+".arguments", parsed(arguments), rendered); err != nil {
			return err
		}
	}
	return nil
}

// lostValue looks for every text within a value.
func lostValue(i int, key string, v jinja.Value, rendered string) error {
	switch v := v.(type) {
	case string:
		if !hasText(rendered, v) {
			return lostFault(i, key, v)
		}
	case *jinja.List:
		for n, item := range v.Items {
			if err := lostValue(i, fmt.Sprintf("%s.%d", key, n), item, rendered); err != nil {
				return err
			}
		}
	case *jinja.Dict:
		for k, item := range v.All() {
			name, _ := k.(string)
			if !hasText(rendered, name) {
				return lostFault(i, key+"."+name, name)
			}
			if err := lostValue(i, key+"."+name, item, rendered); err != nil {
				return err
			}
		}
	}
	return nil
}

func lostFault(i int, key string, v jinja.Value) error {
	s, _ := v.(string)
	return faultf(i, key, "the template does not write %q, so training would drop it; leave it out of the row, or give a template that writes it (chat.template)", head(s))
}

// isIn is hasText of what is text; anything else has none.
func isIn(rendered string, v jinja.Value) bool {
	s, ok := v.(string)
	return !ok || hasText(rendered, s)
}

// hasContent is hasText of content, which may hold reasoning between tags: templates take it apart there, and may leave it
// out of a message that is not trained.
func hasContent(rendered, content string, trained bool) bool {
	if hasText(rendered, content) {
		return true
	}
	before, answer, found := strings.Cut(content, "</think>")
	if !found {
		return false
	}
	before, thought, opened := strings.Cut(before, "<think>")
	if !opened {
		before, thought = "", before
	}
	return hasText(rendered, before) && hasText(rendered, answer) && (!trained || hasText(rendered, thought))
}

// hasText tells whether a text was written in one of the ways in which templates write text.
func hasText(rendered, s string) bool {
	if strings.Contains(rendered, s) {
		return true
	}
	if s = strings.TrimSpace(s); strings.Contains(rendered, s) {
		return true
	}
	if quoted := jinja.JSON(s); strings.Contains(rendered, quoted[1:len(quoted)-1]) {
		return true
	}
	return strings.Contains(rendered, strings.Join(strings.Fields(s), " "))
}
