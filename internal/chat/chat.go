// Package chat turns conversations into token ids and says which of them train. A template lays the messages out; the
// masks come from the positions at which sampling would start and at which the template ends a turn, never from searching
// the text, so that no content can look like a header, and an end token is trained exactly where its turn is.
//
// A trained turn is seen exactly as it would be sampled. What stands before it is, id for id, what Prompt gives for the
// messages before it; where a template writes a turn otherwise once it is history (most drop its reasoning), a conversation
// becomes several examples, one for each such turn, and turns that agree share one.
//
// The sandbox's byte vocabulary has a layout of its own; every other tokenizer has the template that its model was
// published with, or one that the recipe gives.
package chat

import (
	"fmt"
	"math"
	"slices"

	"trainer/internal/chat/jinja"
	"trainer/internal/tokenizer"
	"trainer/recipe"
)

// Message is one turn of a conversation.
type Message struct {
	Role    string // of those that the template knows
	Content string
	// Fields is the message as templates see it: every key in the order of the row, role and content among them; nil for
	// a message of role and content alone. Nothing may change it once it is here.
	Fields *jinja.Dict
	// Train: false leaves the message out of training in every mode; true is needed under train_on: per_message and
	// changes nothing elsewhere; nil is unsaid.
	Train *bool
	// Weight multiplies the weight of every trained token of the message, finite, >= 0; 0 leaves it out; nil is 1.
	Weight *float64
	// Given marks a message of a prompt that is completed: the modes that name assistant messages leave it out.
	Given bool
}

// Conversation is what is rendered.
type Conversation struct {
	Messages []Message
	// Tools and Documents that the template is given; nil for none.
	Tools, Documents []*jinja.Dict
}

// Example is a rendered conversation, both [n]: the ids, and what each counts in the loss when it is predicted.
// Weights[0] is always 0, as nothing predicts the first token.
type Example struct {
	IDs     []int32
	Weights []float64
	Parts   []Part // of the messages, in order; nil where there are no roles
	// TopIDs and TopLogprobs are [n][<= 20]: the ids that a teacher finds likeliest in place of each, and the natural logs of their
	// probabilities; nil where rows have none.
	TopIDs      [][]int32
	TopLogprobs [][]float64
	// Teacher and Sampled are [n] where rows come with them, natural logs: of each token under a teacher, and under the weights
	// that sampled it. They say nothing where the weight is 0.
	Teacher, Sampled []float64
}

// Fault says which message cannot be rendered. Message is its index, -1 for the conversation as a whole; Key is the
// field of the message, or of the row (tools.0), "" for the whole.
type Fault struct {
	Message int
	Key     string
	Msg     string
}

// Error is "messages.2.role: ...".
func (f *Fault) Error() string {
	switch {
	case f.Message < 0 && f.Key == "":
		return f.Msg
	case f.Message < 0:
		return fmt.Sprintf("%s: %s", f.Key, f.Msg)
	case f.Key == "":
		return fmt.Sprintf("messages.%d: %s", f.Message, f.Msg)
	}
	return fmt.Sprintf("messages.%d.%s: %s", f.Message, f.Key, f.Msg)
}

func faultf(message int, key, format string, a ...any) *Fault {
	return &Fault{message, key, fmt.Sprintf(format, a...)}
}

// Template renders for one tokenizer under one chat section. It is read-only and safe for concurrent use.
type Template struct {
	tok     *tokenizer.Tokenizer
	section recipe.Chat
	layout  *layout    // the byte vocabulary's own; nil for others
	own     *published // a template in the language of templates; nil for others. Raw text has neither
	mode    mode
	begin   []int32 // before raw text
	end     int32   // behind it
	hasEnd  bool
}

// Tokenizer is what the template renders for.
func (t *Template) Tokenizer() *tokenizer.Tokenizer { return t.tok }

// TrainOn is the mode as the recipe spells it.
func (t *Template) TrainOn() string { return t.section.TrainOn }

// HasRoles tells whether the template can render messages; without roles there are only prompts, completions and text.
func (t *Template) HasRoles() bool { return t.layout != nil || t.own != nil }

// Encode renders a whole conversation as one or more examples, in the order of the turns that they train; each trained
// turn is in one of them. The error is a *Fault.
func (t *Template) Encode(c Conversation) ([]Example, error) {
	if err := t.check(c); err != nil {
		return nil, err
	}
	c, weights := t.open(c)
	for i, m := range c.Messages {
		if weights[i] > 0 && m.Role == "assistant" && m.empty() {
			return nil, t.moved(c, faultf(i, "content", "empty; an assistant message that is trained needs text, or train: false"))
		}
	}
	if t.layout != nil {
		return []Example{t.layout.encode(t, c.Messages, weights)}, nil
	}
	examples, err := t.own.encode(t, c, weights)
	if err != nil {
		return nil, t.moved(c, err)
	}
	return examples, nil
}

// Prompt renders a conversation up to where the assistant's next message starts: what sampling is given. Encode of the
// same messages and an answer starts with exactly these ids. The error is a *Fault.
func (t *Template) Prompt(c Conversation) ([]int32, error) {
	if err := t.check(c); err != nil {
		return nil, err
	}
	c, _ = t.open(c)
	if t.layout != nil {
		return t.layout.prompt(t, c.Messages), nil
	}
	ids, err := t.own.prompt(t, c)
	if err != nil {
		return nil, t.moved(c, err)
	}
	return ids, nil
}

// LastTrained is the index of the last message of the assistant that trains, -1 where there is none. What stands before it is, by
// Prompt, what it would be sampled from.
func (t *Template) LastTrained(c Conversation) int {
	for i, w := range slices.Backward(t.mode.trained(c.Messages)) {
		if w > 0 && c.Messages[i].Role == "assistant" {
			return i
		}
	}
	return -1
}

// Text renders text that has no roles: all of it is trained, and one end token behind it. The error is a *Fault.
func (t *Template) Text(text string) (Example, error) {
	if text == "" {
		return Example{}, faultf(-1, "", "empty; a row needs text")
	}
	return t.raw(0, "", text)
}

// PromptCompletion renders a prompt as a user message and its completion as an assistant message; under template: none
// as raw text, the one directly behind the other. Message 0 of a *Fault is the prompt, message 1 the completion.
func (t *Template) PromptCompletion(prompt, completion string) ([]Example, error) {
	if t.HasRoles() {
		return t.Encode(Conversation{Messages: []Message{{Role: "user", Content: prompt, Given: true}, {Role: "assistant", Content: completion}}})
	}
	if completion == "" {
		return nil, faultf(1, "content", "empty; a completion needs text")
	}
	ex, err := t.raw(t.mode.prompt, prompt, completion)
	return []Example{ex}, err
}

// open puts the recipe's system message where the conversation has none, and weighs the messages.
func (t *Template) open(c Conversation) (Conversation, []float64) {
	weights := t.mode.trained(c.Messages)
	if t.section.System == nil || hasSystem(c.Messages) {
		return c, weights
	}
	inserted := Message{Role: "system", Content: *t.section.System, Given: true}
	c.Messages = append([]Message{inserted}, c.Messages...)
	return c, append([]float64{t.mode.inserted}, weights...)
}

// moved gives the fault of an opened conversation the index that the message has in the row.
func (t *Template) moved(c Conversation, err error) error {
	f, ok := err.(*Fault)
	if !ok || f.Message < 0 || t.section.System == nil || !c.Messages[0].inserted(*t.section.System) {
		return err
	}
	if f.Message == 0 {
		return faultf(-1, "", "chat.system: %s", f.Msg)
	}
	return &Fault{f.Message - 1, f.Key, f.Msg}
}

func (m Message) inserted(system string) bool {
	return m.Given && m.Fields == nil && m.Role == "system" && m.Content == system
}

// empty tells whether the message says nothing.
func (m Message) empty() bool {
	if m.Content != "" {
		return false
	}
	if m.Fields == nil {
		return true
	}
	for k, v := range m.Fields.All() {
		if name, _ := k.(string); name != "role" && name != "name" && name != "content" && !blank(v) {
			return false
		}
		if l, ok := v.(*jinja.List); ok && k == "content" && len(l.Items) > 0 {
			return false
		}
	}
	return true
}

// blank tells whether there is nothing in a value: None, "", [] or {}.
func blank(v jinja.Value) bool {
	switch v := v.(type) {
	case nil:
		return true
	case string:
		return v == ""
	case *jinja.List:
		return len(v.Items) == 0
	case *jinja.Dict:
		return v.Len() == 0
	}
	return false
}

func hasSystem(ms []Message) bool {
	return slices.ContainsFunc(ms, func(m Message) bool { return m.Role == "system" || m.Role == "developer" })
}

func (t *Template) check(c Conversation) error {
	if !t.HasRoles() {
		return faultf(-1, "", "messages need roles, and chat.template: none has none; rows of text, or of a prompt and a completion, do without")
	}
	if len(c.Messages) == 0 {
		return faultf(-1, "", "empty; a conversation needs a message")
	}
	for i, m := range c.Messages {
		if err := t.checkMessage(i, m); err != nil {
			return err
		}
	}
	for key, objects := range map[string][]*jinja.Dict{"tools": c.Tools, "documents": c.Documents} {
		if len(objects) > 0 && (t.own == nil || !t.own.reads(key)) {
			return faultf(-1, key, "the template has no place for them, so training would drop them; leave them out, or give a template that writes them (chat.template)")
		}
	}
	return nil
}

func (t *Template) checkMessage(i int, m Message) error {
	if l := t.layout; l != nil {
		if _, ok := l.roles[m.Role]; !ok {
			return faultf(i, "role", "%s", roleMessage(m.Role))
		}
	}
	if w := m.Weight; w != nil && !(*w >= 0 && *w <= math.MaxFloat32) {
		return faultf(i, "weight", "%v is not a weight; a finite number, at least 0", *w)
	}
	if m.Fields == nil {
		return nil
	}
	for k, v := range m.Fields.All() {
		key, ok := k.(string)
		if ok && !blank(v) && !t.takes(m, key) {
			return faultf(i, key, "%s", unknownKey(key, t.own != nil))
		}
	}
	return nil
}
