package chat

import (
	"fmt"
	"slices"
	"strings"

	"trainer/internal/diag"
	"trainer/internal/tokenizer"
)

// layout is the byte vocabulary's own template: <|begin|>, then for each message its role's token, its content and
// <|end|>. Without roles it is <|begin|>, text, <|end|>.
type layout struct {
	name       string
	begin, end int32
	roles      map[string]int32 // nil where there are none
}

// roleNames in the order in which messages list them.
func roleNames() []string { return []string{"system", "user", "assistant", "tool"} }

func newLayout(name string, tok *tokenizer.Tokenizer) (layout, error) {
	l := layout{name: name}
	need := func(name string) (id int32, err error) {
		id, ok := tok.Control(name)
		if !ok {
			return 0, fmt.Errorf("the tokenizer %s has no %s", tok.Name(), name)
		}
		return id, nil
	}
	var err error
	if l.begin, err = need("<|begin|>"); err != nil {
		return l, err
	}
	if l.end, err = need("<|end|>"); err != nil || name == "none" {
		return l, err
	}
	l.roles = map[string]int32{}
	for _, role := range roleNames() {
		if l.roles[role], err = need("<|" + role + "|>"); err != nil {
			return l, err
		}
	}
	return l, nil
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

func (b *builder) example() Example { return Example{b.ids, b.weights} }
