package curriculum

import (
	"hash/fnv"

	"trainer/internal/tokenizer"
)

// Lesson is one row: a conversation, or a plain text.
type Lesson struct {
	Task string
	// Key is the content without its phrasing. Equal keys of a task are either all trained or all held out. What is learned
	// by heart has none, and is never held out.
	Key    string
	System string   // "" is none
	Turns  []string // user, assistant, user, assistant, …; nil for a plain text
	Text   string
}

// Answer is the last turn of a conversation.
func (l Lesson) Answer() string { return l.Turns[len(l.Turns)-1] }

// HeldOut says that the lesson is never trained.
func (l Lesson) HeldOut() bool {
	if l.Key == "" {
		return false
	}
	h := fnv.New32a()
	h.Write([]byte(l.Task + "\n" + l.Key))
	return h.Sum32()>>7%8 == 0
}

// Encode returns the ids of the lesson as recipes render it for the sandbox's models, [T], and which of them are trained, [T]:
// what the assistant says with its end tokens, or all of a plain text; never the first.
func (l Lesson) Encode() (ids []int32, trained []bool) {
	var b builder
	b.control("<|begin|>", false)
	if l.Turns == nil {
		b.text(l.Text, true)
		b.control("<|end|>", true)
		return b.ids, b.trained
	}
	b.conversation(l.System, l.Turns)
	return b.ids, b.trained
}

// Prompt returns the ids up to where the last answer of a conversation begins, [T]: what sampling is given.
func (l Lesson) Prompt() []int32 {
	var b builder
	b.control("<|begin|>", false)
	b.conversation(l.System, l.Turns[:len(l.Turns)-1])
	b.control("<|assistant|>", false)
	return b.ids
}

// End is the id that ends a turn.
func End() int32 { return control("<|end|>") }

func control(name string) int32 {
	id, ok := tokenizer.Bytes().Control(name)
	if !ok {
		panic("curriculum: the byte vocabulary has no " + name)
	}
	return id
}

// builder collects ids, and which are trained, in step.
type builder struct {
	ids     []int32
	trained []bool
}

func (b *builder) control(name string, trained bool) {
	b.ids, b.trained = append(b.ids, control(name)), append(b.trained, trained)
}

func (b *builder) text(text string, trained bool) {
	for _, c := range []byte(text) {
		b.ids, b.trained = append(b.ids, int32(c)), append(b.trained, trained)
	}
}

func (b *builder) conversation(system string, turns []string) {
	if system != "" {
		b.turn("<|system|>", system, false)
	}
	for i, text := range turns {
		role, answer := "<|user|>", i%2 == 1
		if answer {
			role = "<|assistant|>"
		}
		b.turn(role, text, answer)
	}
}

func (b *builder) turn(role, text string, trained bool) {
	b.control(role, false)
	b.text(text, trained)
	b.control("<|end|>", trained)
}
