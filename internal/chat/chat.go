// Package chat turns conversations into token ids and says which of them train. A template lays the messages out; the
// masks come from the positions at which it put each header, text and end token, never from searching the rendered
// text, so that no content can look like a header, and an end token is trained exactly where its turn is.
package chat

import (
	"fmt"
	"math"
	"slices"

	"trainer/internal/tokenizer"
	"trainer/recipe"
)

// Message is one turn of a conversation.
type Message struct {
	Role    string // system, user, assistant or tool
	Content string
	// Train: false leaves the message out of training in every mode; true is needed under train_on: per_message and
	// changes nothing elsewhere; nil is unsaid.
	Train *bool
	// Weight multiplies the weight of every trained token of the message, finite, >= 0; 0 leaves it out; nil is 1.
	Weight *float64
	// Given marks a message of a prompt that is completed: the modes that name assistant messages leave it out.
	Given bool
}

// Example is a rendered conversation, both [n]: the ids, and what each counts in the loss when it is predicted.
// Weights[0] is always 0, as nothing predicts the first token.
type Example struct {
	IDs     []int32
	Weights []float64
}

// Fault says which message cannot be rendered. Message is its index, -1 for the conversation as a whole; Key is the
// field of the message, "" for the message as a whole.
type Fault struct {
	Message int
	Key     string
	Msg     string
}

// Error is "messages.2.role: ...".
func (f *Fault) Error() string {
	switch {
	case f.Message < 0:
		return f.Msg
	case f.Key == "":
		return fmt.Sprintf("messages.%d: %s", f.Message, f.Msg)
	}
	return fmt.Sprintf("messages.%d.%s: %s", f.Message, f.Key, f.Msg)
}

// Template renders for one tokenizer under one chat section. It is read-only and safe for concurrent use.
type Template struct {
	tok     *tokenizer.Tokenizer
	section recipe.Chat
	layout  layout
	mode    mode
}

// Tokenizer is what the template renders for.
func (t *Template) Tokenizer() *tokenizer.Tokenizer { return t.tok }

// TrainOn is the mode as the recipe spells it.
func (t *Template) TrainOn() string { return t.section.TrainOn }

// HasRoles tells whether the template can render messages; without roles there are only prompts, completions and text.
func (t *Template) HasRoles() bool { return t.layout.roles != nil }

// Encode renders a whole conversation. The error is a *Fault.
func (t *Template) Encode(ms []Message) (Example, error) {
	if err := t.check(ms); err != nil {
		return Example{}, err
	}
	trained := t.mode.trained(ms)
	for i, m := range ms {
		if trained[i] > 0 && m.Role == "assistant" && m.Content == "" {
			return Example{}, &Fault{i, "content", "empty; an assistant message that is trained needs text, or train: false"}
		}
	}
	var b builder
	b.grow(ms)
	b.add(0, t.layout.begin)
	if s := t.section.System; s != nil && !hasSystem(ms) {
		system := []Message{{Role: "system", Content: *s}}
		t.turn(&b, system[0], t.mode.inserted)
	}
	for i, m := range ms {
		t.turn(&b, m, trained[i])
	}
	return b.example(), nil
}

// Prompt renders a conversation up to where the assistant's next message starts: what sampling is given. Encode of the
// same messages and an answer starts with exactly these ids. The error is a *Fault.
func (t *Template) Prompt(ms []Message) ([]int32, error) {
	if err := t.check(ms); err != nil {
		return nil, err
	}
	var b builder
	b.add(0, t.layout.begin)
	if s := t.section.System; s != nil && !hasSystem(ms) {
		t.turn(&b, Message{Role: "system", Content: *s}, 0)
	}
	for _, m := range ms {
		t.turn(&b, m, 0)
	}
	b.add(0, t.layout.roles["assistant"])
	return b.ids, nil
}

// Text renders text that has no roles: all of it is trained, and one end token behind it. The error is a *Fault.
func (t *Template) Text(text string) (Example, error) {
	if text == "" {
		return Example{}, &Fault{-1, "", "empty; a row needs text"}
	}
	var b builder
	b.add(0, t.layout.begin)
	t.content(&b, 1, text)
	b.add(1, t.layout.end)
	return b.example(), nil
}

// PromptCompletion renders a prompt as a user message and its completion as an assistant message; under template: none
// as raw text, the one directly behind the other. Message 0 of a *Fault is the prompt, message 1 the completion.
func (t *Template) PromptCompletion(prompt, completion string) (Example, error) {
	if t.HasRoles() {
		return t.Encode([]Message{{Role: "user", Content: prompt, Given: true}, {Role: "assistant", Content: completion}})
	}
	if completion == "" {
		return Example{}, &Fault{1, "content", "empty; a completion needs text"}
	}
	var b builder
	b.add(0, t.layout.begin)
	t.content(&b, t.mode.prompt, prompt)
	t.content(&b, 1, completion)
	b.add(1, t.layout.end)
	return b.example(), nil
}

// turn adds the header, the content and the end token of a message whose tokens have weight w.
func (t *Template) turn(b *builder, m Message, w float64) {
	header := 0.0
	if t.mode.headers {
		header = w
	}
	b.add(header, t.layout.roles[m.Role])
	t.content(b, w, m.Content)
	b.add(w, t.layout.end)
}

// content adds text that counts w.
func (t *Template) content(b *builder, w float64, text string) {
	if t.section.AllowControlTokens {
		ids, _ := t.tok.EncodeControl(text)
		b.add(w, ids...)
		return
	}
	b.ids = t.tok.Append(b.ids, text)
	b.weigh(w)
}

func hasSystem(ms []Message) bool {
	return slices.ContainsFunc(ms, func(m Message) bool { return m.Role == "system" })
}

func (t *Template) check(ms []Message) error {
	if !t.HasRoles() {
		return &Fault{-1, "", "messages need roles, and chat.template: none has none; rows of text, or of a prompt and a completion, do without"}
	}
	if len(ms) == 0 {
		return &Fault{-1, "", "empty; a conversation needs a message"}
	}
	for i, m := range ms {
		if _, ok := t.layout.roles[m.Role]; !ok {
			return &Fault{i, "role", roleMessage(m.Role)}
		}
		if w := m.Weight; w != nil && !(*w >= 0 && *w <= math.MaxFloat32) {
			return &Fault{i, "weight", fmt.Sprintf("%v is not a weight; a finite number, at least 0", *w)}
		}
	}
	return nil
}
