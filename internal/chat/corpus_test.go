package chat

import (
	"bufio"
	"encoding/json"
	"os"
	"slices"
	"testing"

	"trainer/internal/chat/hf"
	"trainer/internal/chat/jinja"
)

// The conversations on which templates are compared with transformers: what data sets hold, what they should not hold, and
// random ones. Each is refused, or every turn of it is seen as it would be sampled.
func TestEveryFamilyOnEveryConversation(t *testing.T) {
	f, err := os.Open("hf/testdata/corpus/cases.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	tpls := map[string]*Template{}
	for _, fam := range families() {
		tpls[fam.name] = fam.open(t)
	}
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<26)
	rows, turns, refused := 0, 0, 0
	for lines.Scan() {
		c, ok := caseOf(t, lines.Bytes())
		if !ok {
			continue
		}
		rows++
		for name, tpl := range tpls {
			exs, err := tpl.Encode(c)
			if err != nil {
				refused++
				continue
			}
			for _, ex := range exs {
				if len(ex.IDs) == 0 || len(ex.IDs) != len(ex.Weights) || ex.Weights[0] != 0 {
					t.Fatalf("%s: %d ids, weights %v", name, len(ex.IDs), ex.Weights)
				}
			}
			if slices.ContainsFunc(c.Messages, func(m Message) bool { return m.Role == "assistant" }) {
				turns += checkTurns(t, tpl, name, c, exs)
			}
		}
	}
	t.Logf("%d conversations, %d turns, %d refused", rows, turns, refused)
	if rows < 100 || turns < 500 {
		t.Errorf("%d conversations, %d turns: too few to say anything", rows, turns)
	}
}

// caseOf is a conversation of the corpus; ok is false where a message has no role, which a dataset refuses.
func caseOf(t *testing.T, line []byte) (c Conversation, ok bool) {
	var raw struct{ Messages, Tools json.RawMessage }
	if err := json.Unmarshal(line, &raw); err != nil {
		t.Fatal(err)
	}
	ms, err := hf.Objects(raw.Messages)
	if err != nil || len(ms) == 0 {
		return c, false
	}
	if c.Tools, err = hf.Objects(raw.Tools); err != nil {
		return c, false
	}
	for _, d := range ms {
		m := Message{Fields: jinja.NewDict()}
		for k, v := range d.All() {
			if v != nil && k != "weight" && k != "train" {
				m.Fields.Set(k, v)
			}
		}
		role, _ := d.Get("role")
		if m.Role, ok = role.(string); !ok {
			return c, false
		}
		content, _ := d.Get("content")
		m.Content, _ = content.(string)
		c.Messages = append(c.Messages, m)
	}
	return c, true
}
