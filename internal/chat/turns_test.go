package chat

import (
	"slices"
	"testing"

	"trainer/internal/chat/jinja"
)

// However many turns a conversation has, each trains as it would be sampled: a turn that is found in the rendering of a later
// one is byte for byte the turn that is rendered for itself.
func TestManyTurnsTrainAsEachAlone(t *testing.T) {
	user := Message{Role: "user", Content: "q"}
	answer := Message{Role: "assistant", Content: "so it is"}
	thought := Message{Role: "assistant", Content: "so it is", Fields: jinja.NewDict("role", "assistant", "content", "so it is", "reasoning_content", "hm")}
	call := Message{Role: "assistant", Fields: jinja.NewDict("role", "assistant", "content", "", "tool_calls", &jinja.List{Items: []jinja.Value{
		jinja.NewDict("type", "function", "id", "call00001", "function", jinja.NewDict("name", "look", "arguments", jinja.NewDict("at", "x")))}})}
	result := Message{Role: "tool", Content: "found", Fields: jinja.NewDict("role", "tool", "content", "found", "name", "look", "tool_call_id", "call00001")}

	several := func(n int, ms ...Message) []Message { return slices.Repeat(ms, n) }
	cases := map[string][]Message{
		"answers":                     several(7, user, answer),
		"each answer behind a call":   several(3, user, call, result, answer),
		"each answer behind two":      several(3, user, call, result, call, result, answer),
		"answers, then calls":         append(several(3, user, answer), several(3, user, call, result, answer)...),
		"one turn reasons, of many":   slices.Concat(several(4, user, answer), []Message{user, thought}, several(4, user, answer)),
		"a call, then answers":        append([]Message{user, call, result, answer}, several(5, user, answer)...),
		"all reason but for the last": append(several(5, user, thought), user, answer),
	}
	seen := map[string]int{}
	for _, f := range families() {
		tpl := f.open(t)
		for name, ms := range cases {
			c, weights := tpl.open(Conversation{Messages: ms})
			var got, want []turn
			err := tpl.own.guarded(tpl, c, weights, func(j *job) (err error) {
				if got, err = j.turns(); err != nil {
					return err
				}
				var trained []int
				for _, u := range got {
					trained = append(trained, u.message)
				}
				want, err = j.exact(trained)
				return err
			})
			if err != nil {
				continue // the template has no place for a call, or none for reasoning
			}
			seen[name]++
			for k, u := range got {
				if w := want[k]; u.begin != w.begin || u.in.text[:u.end] != w.in.text[:w.end] {
					t.Errorf("%s: %s: turn %d of %d trains %q, alone %q", f.name, name, k, len(got), u.in.text[u.begin:u.end], w.in.text[w.begin:w.end])
				}
			}
		}
	}
	for name := range cases {
		if seen[name] < 4 {
			t.Errorf("%s: only %d families take it", name, seen[name])
		}
	}
}
