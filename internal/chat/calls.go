package chat

import (
	"trainer/internal/chat/jinja"
)

// callForm is how a template wants the arguments of a tool call: data has them as an object or as JSON text, and a template
// may write the one and quote or refuse the other.
type callForm int

const (
	callAsGiven callForm = iota
	callAsObject
	callAsText
)

// message is the message as the template is given it: its tool calls in the one shape, whichever the row has.
func (f callForm) message(m Message) *jinja.Dict {
	if m.Fields == nil {
		return jinja.NewDict("role", m.Role, keyContent, m.Content)
	}
	calls, ok := m.Fields.Get(keyToolCalls)
	list, isList := calls.(*jinja.List)
	if !ok || !isList || f == callAsGiven {
		return m.Fields
	}
	out := m.Fields.Clone()
	shaped := &jinja.List{Items: make([]jinja.Value, len(list.Items))}
	for i, item := range list.Items {
		shaped.Items[i] = f.call(item)
	}
	out.Set(keyToolCalls, shaped)
	return out
}

// given is the message as the template is given it. Data writes null for the content of a message that calls tools, and some
// templates look into it all the same: those get empty text.
func (p *published) given(m Message) *jinja.Dict {
	out := p.calls.message(m)
	if !p.contentDue || !m.calls() {
		return out
	}
	if _, ok := out.Get(keyContent); ok {
		return out
	}
	out = out.Clone()
	out.Set(keyContent, "")
	return out
}

// call is one call, with its name and arguments under function.
func (f callForm) call(v jinja.Value) jinja.Value {
	call, ok := v.(*jinja.Dict)
	if !ok {
		return v
	}
	function, wrapped := call.Get("function")
	inner, ok := function.(*jinja.Dict)
	if !wrapped {
		if name, _ := call.Get("name"); name == nil {
			return v
		}
		inner, ok = call, true
	}
	if !ok {
		return v
	}
	arguments, has := inner.Get("arguments")
	if has {
		inner = inner.Clone()
		inner.Set("arguments", f.arguments(arguments))
	}
	if !wrapped {
		return jinja.NewDict("type", "function", "function", inner)
	}
	out := call.Clone()
	out.Set("function", inner)
	return out
}

func (f callForm) arguments(v jinja.Value) jinja.Value {
	v = parsed(v)
	if d, ok := v.(*jinja.Dict); ok && f == callAsText {
		return jinja.JSON(d)
	}
	return v
}

// parsed is the object that JSON text stands for; what is no such text stays as it is. Nothing is an object without keys.
func parsed(v jinja.Value) jinja.Value {
	s, ok := v.(string)
	if !ok {
		return v
	}
	if s == "" {
		return jinja.NewDict()
	}
	if d, err := jinja.Decode([]byte(s)); err == nil {
		if d, ok := d.(*jinja.Dict); ok {
			return d
		}
	}
	return v
}
