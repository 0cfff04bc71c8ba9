package chat

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"trainer/internal/chat/jinja"
)

// Answer is a sampled turn, taken apart as its family writes turns.
type Answer struct {
	Content   string
	Reasoning string // "" where there is none, or the family has no block for it
	Calls     []Call
	// Unread says why what looks like a call was not read; it stays in Content then, and Calls is empty.
	Unread string
}

// Call is one of a tool.
type Call struct {
	ID        string // "" where the turn gives it none
	Name      string
	Arguments string // JSON
}

// Answer takes text apart, a turn without its end token. Calls are read as the template writes them, in one of the spellings; where it
// has none of these they stay in the content, and Unread says so where tools are offered.
func (t *Template) Answer(text string, tools []*jinja.Dict) Answer {
	a := Answer{Content: text}
	if t.own == nil {
		return a
	}
	if t.own.reads(channelMark) {
		said, err := channels(text)
		switch {
		case err != nil:
			a.Unread = err.Error()
		case len(tools) > 0 || len(said.Calls) == 0:
			return said
		}
		return a
	}
	if t.own.reads("</think>") {
		if before, behind, ok := strings.Cut(text, "</think>"); ok {
			_, inner, opened := strings.Cut(before, "<think>")
			if opened {
				before = inner
			}
			a.Reasoning, a.Content = strings.TrimSpace(before), strings.TrimLeft(behind, "\n")
		}
	}
	if len(tools) == 0 {
		return a
	}
	spelt := t.own.spelling()
	if spelt == nil {
		a.Unread = "the calls of this template are not read; read them from the text"
		return a
	}
	calls, rest, err := spelt.read(t.own, a.Content, tools)
	if err != nil {
		a.Unread = err.Error()
		return a
	}
	if len(calls) > 0 {
		a.Calls, a.Content = calls, strings.TrimRight(rest, "\n ")
	}
	return a
}

var toolCall = regexp.MustCompile(`(?s)<tool_call>(.*?)</tool_call>`)

// callsOf reads calls in <tool_call> tags: as JSON, as <function=…> or as <arg_key>; rest is what stands beside them.
func (p *published) callsOf(text string, tools []*jinja.Dict) (calls []Call, rest string, err error) {
	rest = toolCall.ReplaceAllString(text, "")
	if strings.Contains(rest, "<tool_call>") {
		return nil, text, fmt.Errorf("a <tool_call> without its end")
	}
	for i, m := range toolCall.FindAllStringSubmatch(text, -1) {
		var c Call
		switch body := strings.TrimSpace(m[1]); {
		case p.reads("<arg_key>"):
			c, err = pairsCall(body, tools)
		case p.reads("<function="):
			c, err = taggedCall(body, tools)
		default:
			c, err = jsonCall(body)
		}
		if err != nil {
			return nil, text, fmt.Errorf("call %d: %w", i, err)
		}
		calls = append(calls, c)
	}
	return calls, rest, nil
}

func jsonCall(body string) (Call, error) {
	var c struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	}
	if err := json.Unmarshal([]byte(body), &c); err != nil {
		return Call{}, fmt.Errorf("not JSON: %w", err)
	}
	if c.Name == "" {
		return Call{}, fmt.Errorf("no name")
	}
	if len(c.Arguments) == 0 || string(c.Arguments) == "null" {
		c.Arguments = json.RawMessage("{}")
	}
	if c.Arguments[0] != '{' {
		return Call{}, fmt.Errorf("its arguments are not an object")
	}
	return Call{Name: c.Name, Arguments: string(c.Arguments)}, nil
}

var (
	functionTag  = regexp.MustCompile(`(?s)^<function=([^>\n]+)>(.*)</function>$`)
	parameterTag = regexp.MustCompile(`(?s)<parameter=([^>\n]+)>\n?(.*?)\n?</parameter>`)
	argumentPair = regexp.MustCompile(`(?s)<arg_key>(.*?)</arg_key>\s*<arg_value>(.*?)</arg_value>`)
)

func taggedCall(body string, tools []*jinja.Dict) (Call, error) {
	m := functionTag.FindStringSubmatch(body)
	if m == nil {
		return Call{}, fmt.Errorf("not a <function=…> with its end")
	}
	return pairs(strings.TrimSpace(m[1]), parameterTag.FindAllStringSubmatch(m[2], -1), tools)
}

func pairsCall(body string, tools []*jinja.Dict) (Call, error) {
	name, rest, _ := strings.Cut(body, "<arg_key>")
	if name = strings.TrimSpace(name); name == "" {
		return Call{}, fmt.Errorf("no name")
	}
	if rest != "" {
		rest = "<arg_key>" + rest
	}
	return pairs(name, argumentPair.FindAllStringSubmatch(rest, -1), tools)
}

// pairs are arguments that are written as text: those that the tool defines as something else are read as JSON where they are.
func pairs(name string, all [][]string, tools []*jinja.Dict) (Call, error) {
	arguments := map[string]any{}
	for _, m := range all {
		key, value := strings.TrimSpace(m[1]), m[2]
		if kind := typeOf(tools, name, key); kind != "" && kind != "string" && json.Valid([]byte(value)) {
			arguments[key] = json.RawMessage(value)
		} else {
			arguments[key] = value
		}
	}
	text, err := json.Marshal(arguments)
	return Call{Name: name, Arguments: string(text)}, err
}

// typeOf is what the definition of a tool says of an argument; "" for nothing.
func typeOf(tools []*jinja.Dict, name, key string) string {
	for _, tool := range tools {
		f := member(tool, "function")
		if f == nil {
			f = tool
		}
		if n, _ := f.Get("name"); n != name {
			continue
		}
		if p := member(member(member(f, "parameters"), "properties"), key); p != nil {
			kind, _ := p.Get("type")
			text, _ := kind.(string)
			return text
		}
	}
	return ""
}

func member(d *jinja.Dict, key string) *jinja.Dict {
	if d == nil {
		return nil
	}
	v, _ := d.Get(key)
	m, _ := v.(*jinja.Dict)
	return m
}

// Message is the answer as a turn of a conversation; ids[i] names call i.
func (t *Template) Message(a Answer, ids []string) Message {
	m := Message{Role: "assistant", Content: a.Content}
	if t.own == nil {
		return m
	}
	m.Fields = jinja.NewDict("role", m.Role, keyContent, a.Content)
	for _, name := range reasoningKeys {
		if a.Reasoning != "" && t.own.reads(name) {
			m.Fields.Set(name, a.Reasoning)
			break
		}
	}
	var calls []jinja.Value
	for i, c := range a.Calls {
		arguments, err := jinja.Decode([]byte(c.Arguments))
		if err != nil {
			arguments = c.Arguments
		}
		calls = append(calls, jinja.NewDict("id", ids[i], "type", "function", "function", jinja.NewDict("name", c.Name, "arguments", arguments)))
	}
	if len(calls) > 0 {
		m.Fields.Set(keyToolCalls, &jinja.List{Items: calls})
	}
	return m
}
