package hf

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"trainer/internal/chat/jinja"
)

// Template is a parsed template. It is read-only, and any number of goroutines may render it at once.
type Template struct {
	source string
	jinja  *jinja.Template
}

// Parse compiles a template. The error is a *jinja.Error.
func Parse(source string) (*Template, error) {
	t, err := jinja.Parse(source)
	if err != nil {
		return nil, err
	}
	return &Template{source, t}, nil
}

// Reads tells whether the template reads a variable of this name, so that an argument which has no effect can be refused.
func (t *Template) Reads(name string) bool { return t.jinja.Reads(name) }

// Variables are the names that the template reads from whoever renders it, functions and special tokens among them.
func (t *Template) Variables() []string { return t.jinja.Variables() }

// Options of a render. The zero value renders a whole conversation.
type Options struct {
	// AddGenerationPrompt ends the text where the assistant's next message starts.
	AddGenerationPrompt bool
	// Continue names the key of the last message, mostly "content", in whose text the rendering ends, so that the model
	// goes on with it; "" for none. It excludes AddGenerationPrompt.
	Continue string
	// SpecialTokens are variables of the template: bos_token and so on.
	SpecialTokens map[string]string
	// Args are further variables, such as enable_thinking; they win over SpecialTokens. nil for none.
	Args *jinja.Dict
	// Now is the time that templates which write a date see; nil makes them fail.
	Now func() time.Time
	// Limits bound the work; the zero value has jinja's defaults.
	Limits jinja.Limits
}

// MessageSpan is a range of bytes that the template wrote while it stood at a message.
type MessageSpan struct {
	Message int // index into Conversation.Messages
	jinja.Span
}

// Rendered is a conversation as text.
type Rendered struct {
	Text string
	// Generation are the template's {% generation %} blocks: what the assistant is to learn, where a template says it.
	Generation []jinja.Span
	// Messages are in order and do not overlap; a message has none where the template does not loop over the messages as
	// they are, and several where it writes something else in between.
	Messages []MessageSpan
}

// reserved are variables that the render sets itself.
var reserved = []string{"messages", "tools", "documents", "add_generation_prompt", "conversations", "chat_template",
	"return_assistant_tokens_mask", "continue_final_message"}

// Reserved tells whether a variable of this name is set by the render, or is a function of it.
func Reserved(name string) bool {
	return slices.Contains(reserved, name) || jinja.IsFunction(name)
}

// Render renders a conversation, which it does not change. An error that the template causes or raises is a *jinja.Error.
func (t *Template) Render(c Conversation, o Options) (*Rendered, error) {
	if len(c.Messages) == 0 {
		return nil, errors.New("the conversation is empty; a template needs a message")
	}
	messages := c.Messages
	if !c.Prepared || o.Continue != "" { // which writes into the last
		messages = Prepare(messages)
	}
	var p *prefill
	if o.Continue != "" {
		var err error
		if p, err = t.tag(messages, o); err != nil {
			return nil, err
		}
	}
	vars, err := variables(messages, c, o)
	if err != nil {
		return nil, err
	}
	out, err := t.jinja.Render(vars, jinja.Options{Limits: o.Limits, Now: o.Now, Traced: messages})
	if err != nil {
		return nil, err
	}
	r := &Rendered{Text: out.Text, Generation: out.Generation}
	for _, s := range out.Traced {
		r.Messages = append(r.Messages, MessageSpan{s.Index, s.Span})
	}
	if p != nil {
		return p.cut(r)
	}
	return r, nil
}

func variables(messages []*jinja.Dict, c Conversation, o Options) (*jinja.Dict, error) {
	vars := jinja.NewDict("messages", list(messages), "tools", list(c.Tools), "documents", list(c.Documents),
		"add_generation_prompt", o.AddGenerationPrompt)
	set := func(name string, v jinja.Value) error {
		if slices.Contains(reserved, name) {
			return fmt.Errorf("%s: the render sets this variable itself; take another name", name)
		}
		vars.Set(name, v)
		return nil
	}
	for name, token := range o.SpecialTokens {
		if err := set(name, token); err != nil {
			return nil, err
		}
	}
	if o.Args == nil {
		return vars, nil
	}
	for k, v := range o.Args.All() {
		name, ok := k.(string)
		if !ok {
			return nil, fmt.Errorf("%v: the name of a variable is text", k)
		}
		if err := set(name, v); err != nil {
			return nil, err
		}
	}
	return vars, nil
}
