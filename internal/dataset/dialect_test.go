package dataset

import (
	"encoding/json"
	"reflect"
	"testing"

	"trainer/internal/diag"
	"trainer/recipe"
)

// begun is a source whose first row is raw.
func begun(t testing.TB, raw string, section recipe.Source) *source {
	t.Helper()
	if section.Format == "" {
		section.Format = "auto"
	}
	s := &source{section: section}
	if err := check([]byte(raw)); err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	if p := s.begin(trimmed([]byte(raw)), diag.Pos{File: "rows.jsonl", Line: 1}, byteTemplate(t, recipe.Chat{})); p != nil {
		t.Fatalf("%s: %s %s", raw, p.key, p.msg)
	}
	return s
}

func TestDialectsBecomeMessages(t *testing.T) {
	field := func(col string) recipe.Field { return recipe.Field{Columns: []string{col}} }
	for _, c := range []struct {
		name, row string
		section   recipe.Source
		want      string
	}{
		{"from and value", `{"conversations": [{"from": "system", "value": "s"}, {"from": "human", "value": "q\n\"é\""}, {"from": "gpt", "value": "a"}], "id": 7}`, recipe.Source{},
			`{"messages": [{"role": "system", "content": "s"}, {"role": "user", "content": "q\n\"é\""}, {"role": "assistant", "content": "a"}], "id": 7}`},
		{"a call and what came of it", `{"conversations": [{"from": "function_call", "value": "{\"name\": \"f\", \"arguments\": {\"x\": [1, 2.50]}}"}, {"from": "observation", "value": "{\"y\": 3}"}],
			"tools": "[{\"name\": \"f\", \"parameters\": {}}]"}`, recipe.Source{},
			`{"messages": [{"role": "assistant", "content": "", "tool_calls": [{"type": "function", "function": {"name": "f", "arguments": {"x": [1, 2.50]}}}]}, {"role": "tool", "content": "{\"y\": 3}"}],
			"tools": [{"type": "function", "function": {"name": "f", "parameters": {}}}]}`},
		{"several calls at once, one without arguments", `{"conversations": [{"from": "function_call", "value": "[{\"name\": \"f\", \"arguments\": \"{}\"}, {\"name\": \"g\", \"id\": \"1\"}]"}]}`, recipe.Source{},
			`{"messages": [{"role": "assistant", "content": "", "tool_calls": [{"type": "function", "function": {"name": "f", "arguments": "{}"}}, {"type": "function", "function": {"name": "g", "arguments": {}}, "id": "1"}]}]}`},
		{"a system column, and tools as a list with their type", `{"system": "s", "conversations": [{"from": "human", "value": "q"}], "tools": [{"type": "function", "function": {"name": "f"}}]}`, recipe.Source{},
			`{"messages": [{"role": "system", "content": "s"}, {"role": "user", "content": "q"}], "tools": [{"type": "function", "function": {"name": "f"}}]}`},
		{"blank columns say nothing", `{"system": "", "tools": "", "conversations": [{"from": "human", "value": "q", "weight": null}]}`, recipe.Source{}, `{"messages": [{"role": "user", "content": "q"}]}`},
		{"empty lists as text", `{"tools": "[]", "conversations": [{"from": "gpt", "value": "a", "weight": 0.5}]}`, recipe.Source{}, `{"messages": [{"role": "assistant", "content": "a", "weight": 0.5}], "tools": []}`},
		{"role and content under the other name", `{"conversations": [{"role": "user", "content": "q"}], "system": "s"}`, recipe.Source{},
			`{"messages": [{"role": "system", "content": "s"}, {"role": "user", "content": "q"}]}`},
		{"each message by its own shape", `{"conversation": [{"from": "human", "value": "q"}, {"role": "assistant", "content": "a"}]}`, recipe.Source{},
			`{"messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}]}`},
		{"columns of other names", `{"dialog": [{"from": "user", "value": "q"}], "sys": "s", "functions": [{"name": "f"}], "messages": 1}`,
			recipe.Source{Fields: map[string]recipe.Field{"messages": field("dialog"), "system": field("sys"), "tools": field("functions")}},
			`{"messages": [{"role": "system", "content": "s"}, {"role": "user", "content": "q"}], "tools": [{"type": "function", "function": {"name": "f"}}]}`},
		{"instructions with a history", `{"instruction": "i", "input": "x", "output": "o", "system": "s", "history": [["q1", "a1"], ["q2", "a2"]]}`, recipe.Source{},
			`{"messages": [{"role": "system", "content": "s"}, {"role": "user", "content": "q1"}, {"role": "assistant", "content": "a1"}, {"role": "user", "content": "q2"}, {"role": "assistant", "content": "a2"},
			{"role": "user", "content": "i\n\nx"}, {"role": "assistant", "content": "o"}], "instruction": "i", "input": "x", "output": "o", "history": [["q1", "a1"], ["q2", "a2"]]}`},
		{"a prompt in the other spelling, a completion without its list", `{"conversations": [{"from": "human", "value": "q"}], "chosen": {"from": "gpt", "value": "a"}, "rejected": 1}`,
			recipe.Source{Fields: map[string]recipe.Field{"prompt": field("conversations"), "completion": field("chosen")}},
			`{"prompt": [{"role": "user", "content": "q"}], "completion": [{"role": "assistant", "content": "a"}], "rejected": 1}`},
		{"a prompt of messages beside text", `{"prompt": {"role": "user", "content": "q"}, "completion": "a", "id": 1}`, recipe.Source{}, `{"prompt": [{"role": "user", "content": "q"}], "completion": "a", "id": 1}`},
		{"instructions that are named messages", `{"instruction": "i", "output": "o"}`, recipe.Source{Format: "messages"},
			`{"messages": [{"role": "user", "content": "i"}, {"role": "assistant", "content": "o"}], "instruction": "i", "output": "o"}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := begun(t, c.row, c.section)
			got, f := s.canonical(trimmed([]byte(c.row)))
			if f != nil {
				t.Fatalf("%s: %s", f.key, f.msg)
			}
			if err := check(got); err != nil {
				t.Fatalf("%s: %v", got, err)
			}
			if !reflect.DeepEqual(parsed(t, string(got)), parsed(t, c.want)) {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func parsed(t *testing.T, text string) (v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return v
}

// What is wrong with a row of a dialect is placed where the row has it, not where the rewritten one would.
func TestFaultsOfDialectsHaveTheRowsPlaces(t *testing.T) {
	const spokenRow = `{"conversations": [{"from": "human", "value": "q"}, {"from": "gpt", "value": "a"}]}` + "\n"
	const partedRow = `{"messages": [{"role": "user", "content": [{"type": "text", "value": "q"}]}, {"role": "assistant", "content": "a"}]}` + "\n"
	const sidesRow = `{"prompt": [{"from": "human", "value": "q"}], "completion": {"from": "gpt", "value": "a"}}` + "\n"
	const pastRow = `{"instruction": "i", "output": "o", "system": "", "history": []}` + "\n"
	for _, c := range []struct{ name, first, row, want string }{
		{"an unknown speaker", spokenRow, `{"conversations": [{"from": "humna", "value": "q"}]}`,
			`rows.jsonl:2: conversations.0.from: "humna" is not a speaker (human, gpt, system, function_call, observation, tool); did you mean "human"?`},
		{"a speaker that is no text", spokenRow, `{"conversations": [{"from": 1, "value": "q"}]}`, `rows.jsonl:2: conversations.0.from: a number where text is due`},
		{"nothing said", spokenRow, `{"conversations": [{"from": "human"}]}`, `rows.jsonl:2: conversations.0.value: missing`},
		{"null said", spokenRow, `{"conversations": [{"from": "human", "value": null}]}`, `rows.jsonl:2: conversations.0.value: null where text is due`},
		{"a key of no message", spokenRow, `{"system": "s", "conversations": [{"from": "human", "value": "q"}, {"from": "gpt", "value": "a", "wieght": 1}]}`,
			`rows.jsonl:2: conversations.1.wieght: not a key of a message (role, content, train, weight); did you mean "weight"?`},
		{"a value beside a content", spokenRow, `{"conversations": [{"from": "human", "value": "q", "content": "r"}]}`, `rows.jsonl:2: conversations.0.content: stands beside what says the same (from, value); give one`},
		{"no column", spokenRow, `{"id": 1}`, `rows.jsonl:2: conversations: missing; the row has id (by its first row, rows.jsonl:1, the source is messages)`},
		{"no list", spokenRow, `{"conversations": "q"}`, `rows.jsonl:2: conversations: text where a list of messages is due`},
		{"a call that is no JSON", spokenRow, `{"conversations": [{"from": "function_call", "value": "f(1)"}]}`, `rows.jsonl:2: conversations.0.value: text that is not JSON: byte 1: a value is due, not 'f'`},
		{"a call of nothing", spokenRow, `{"conversations": [{"from": "function_call", "value": "{\"arguments\": {}}"}]}`,
			`rows.jsonl:2: conversations.0.value: a call without the name of its function; one is {"name": …, "arguments": {…}}`},
		{"no call at all", spokenRow, `{"conversations": [{"from": "function_call", "value": "[]"}]}`, `rows.jsonl:2: conversations.0.value: no call; one is due, as {"name": …, "arguments": {…}}`},
		{"two system messages", spokenRow, `{"system": "s", "conversations": [{"from": "system", "value": "t"}]}`, `rows.jsonl:2: system: stands beside a system message in conversations; one is due`},
		{"a system column of numbers", spokenRow, `{"system": 1, "conversations": []}`, `rows.jsonl:2: system: a number where text is due`},
		{"tools that are no list", spokenRow, `{"conversations": [], "tools": "{}"}`, `rows.jsonl:2: tools: an object where a list of functions is due`},
		{"a speaker of a side", sidesRow, `{"prompt": [{"from": "human", "value": "q"}, {"from": "mod", "value": "q"}], "completion": "a"}`,
			`rows.jsonl:2: prompt.1.from: "mod" is not a speaker (human, gpt, system, function_call, observation, tool)`},
		{"a side's only message", sidesRow, `{"prompt": "q", "completion": {"from": "gpt", "value": "a", "train": 1}}`, `rows.jsonl:2: completion.train: a number where true or false is due`},
		{"a side of numbers", sidesRow, `{"prompt": 1, "completion": "a"}`, `rows.jsonl:2: prompt: a number where text or messages are due`},
		{"a side that is missing", sidesRow, `{"prompt": "q"}`, `rows.jsonl:2: completion: missing; the row has prompt (by its first row, rows.jsonl:1, the source is prompt_completion)`},
		{"a part of another type", partedRow, `{"messages": [{"role": "user", "content": [{"type": "image", "value": "x"}]}]}`,
			`rows.jsonl:2: messages.0.content.0.type: "image" cannot be rendered; only parts of type text, reasoning and tool_call`},
		{"a part without its value", partedRow, `{"messages": [{"role": "user", "content": [{"type": "text", "value": "a"}, {"type": "text"}]}]}`, `rows.jsonl:2: messages.0.content.1.text: missing; a part is {"type": "text", "text": …}`},
		{"a role of nobody", partedRow, `{"messages": [{"role": "usr", "content": [{"type": "text", "value": "a"}]}]}`,
			`rows.jsonl:2: messages.0.role: "usr" is not a role (system, user, assistant, tool); did you mean "user"?`},
		{"a history of texts", pastRow, `{"instruction": "i", "output": "o", "history": ["q"]}`, `rows.jsonl:2: history.0: text where [question, answer] is due`},
		{"half an exchange", pastRow, `{"instruction": "i", "output": "o", "history": [["q", "a"], ["q"]]}`, `rows.jsonl:2: history.1: 1 texts where [question, answer] is due`},
		{"a null answer", pastRow, `{"instruction": "i", "output": "o", "history": [["q", null]]}`, `rows.jsonl:2: history.0.1: null where [question, answer] is due, two texts`},
		{"no output", pastRow, `{"instruction": "i"}`, `rows.jsonl:2: output: missing; the row has instruction (by its first row, rows.jsonl:1, the source is messages)`},
		{"a history that the first row has no column for", `{"instruction": "i", "output": "o"}` + "\n", `{"instruction": "i", "output": "o", "history": [["q", "a"]]}`,
			`rows.jsonl:2: history: the first row, rows.jsonl:1, has no such column, so the source is read without; format: messages reads it`},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFixture(t, map[string]string{"rows.jsonl": c.first + c.row}, recipe.Source{Path: "rows.jsonl"})
			if _, err := f.open(); err == nil || err.Error() != c.want {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
		})
	}
}
