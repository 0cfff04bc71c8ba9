package chat

import (
	"fmt"
	"slices"
	"strings"

	"trainer/internal/diag"
	"trainer/internal/tokenizer"
)

// layout is the byte vocabulary's own template: <|begin|>, then for each message its role's token, its content and
// <|end|>.
type layout struct {
	begin, end int32
	roles      map[string]int32
}

// roleNames in the order in which messages list them.
func roleNames() []string { return []string{"system", "user", "assistant", "tool"} }

// newLayout finds the tokens of the layout; nil where the tokenizer lacks one of them, and so is another.
func newLayout(tok *tokenizer.Tokenizer) *layout {
	l, all := &layout{roles: map[string]int32{}}, true
	need := func(name string) int32 {
		id, ok := tok.Control(name)
		all = all && ok
		return id
	}
	l.begin, l.end = need("<|begin|>"), need("<|end|>")
	for _, role := range roleNames() {
		l.roles[role] = need("<|" + role + "|>")
	}
	if !all || tok.ConfigJSON() != nil {
		return nil
	}
	return l
}

// encode lays out a conversation with these weights, one a message.
func (l *layout) encode(t *Template, ms []Message, weights []float64) Example {
	var b builder
	b.grow(ms)
	b.add(0, l.begin)
	for i, m := range ms {
		l.turn(t, &b, m, weights[i])
	}
	return b.example()
}

// prompt ends with the header of the assistant.
func (l *layout) prompt(t *Template, ms []Message) []int32 {
	var b builder
	b.add(0, l.begin)
	for _, m := range ms {
		l.turn(t, &b, m, 0)
	}
	b.add(0, l.roles["assistant"])
	return b.ids
}

// turn adds the header, the content and the end token of a message whose tokens have weight w.
func (l *layout) turn(t *Template, b *builder, m Message, w float64) {
	header, from := 0.0, len(b.ids)
	if t.mode.headers {
		header = w
	}
	b.add(header, l.roles[m.Role])
	if t.section.AllowControlTokens {
		b.add(w, t.ids(m.Content)...)
	} else {
		b.ids = t.tok.Append(b.ids, m.Content)
		b.weigh(w)
	}
	b.add(w, l.end)
	b.parts = append(b.parts, Part{m.Role, from, len(b.ids)})
}

// roleMessage refuses a role: by what this product calls it, where another name is known, else by the nearest.
func roleMessage(role string) string {
	msg := fmt.Sprintf("%q is not a role (%s)", role, strings.Join(roleNames(), ", "))
	switch strings.ToLower(role) {
	case "human":
		return msg + `; here it is called "user"`
	case "gpt", "bot", "model", "ai", "chatbot":
		return msg + `; here it is called "assistant"`
	case "developer":
		return msg + `; here it is called "system"`
	case "function", "observation", "ipython", "function_response":
		return msg + `; here it is called "tool"`
	}
	return msg + diag.DidYouMean(role, roleNames())
}

// builder collects ids and their weights in step.
type builder struct {
	ids     []int32
	weights []float64
	parts   []Part
}

// grow makes room for messages whose tokens are no more than their bytes.
func (b *builder) grow(ms []Message) {
	n := 1
	for _, m := range ms {
		n += len(m.Content) + 2
	}
	b.ids, b.weights = slices.Grow(b.ids, n), slices.Grow(b.weights, n)
}

func (b *builder) add(w float64, ids ...int32) {
	b.ids = append(b.ids, ids...)
	b.weigh(w)
}

// weigh gives w to the ids that have no weight yet.
func (b *builder) weigh(w float64) {
	at, n := len(b.weights), len(b.ids)
	b.weights = slices.Grow(b.weights, n-at)[:n]
	for i := at; i < n; i++ {
		b.weights[i] = w
	}
}

func (b *builder) example() Example { return Example{IDs: b.ids, Weights: b.weights, Parts: b.parts} }
