package chat

import (
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"trainer/internal/chat/jinja"
)

// spelling is how turns write the calls of tools. read gives those of a turn, and what stands beside them.
type spelling struct {
	mark string // what a template has that writes calls so
	read func(p *published, text string, tools []*jinja.Dict) (calls []Call, rest string, err error)
}

// spellings are those of the published templates, the first that fits counts. The turns of channels are apart, in channels.go.
var spellings = []spelling{
	{"<tool_call>", (*published).callsOf},
	{"<minimax:tool_call>", invokes},
	{"<｜tool▁calls▁begin｜>", fenced},
	{"<|tool_calls_section_begin|>", numbered},
	{"[TOOL_CALLS]", listed},
	{`"parameters": `, bare},
}

// spelling is that of the template, nil where none is known.
func (p *published) spelling() *spelling {
	for i := range spellings {
		if p.reads(spellings[i].mark) {
			return &spellings[i]
		}
	}
	return nil
}

// section cuts text into what stands between begin and end and what stands around it; ok says that there is a begin.
func section(text, begin, end string) (inner, rest string, ok bool, err error) {
	before, behind, ok := strings.Cut(text, begin)
	if !ok {
		return "", text, false, nil
	}
	inner, after, closed := strings.Cut(behind, end)
	if !closed {
		return "", text, true, fmt.Errorf("a %s without its end", begin)
	}
	return inner, before + after, true, nil
}

// each reads every match of form in text, of which there are as many as begin.
func each(text, begin string, form *regexp.Regexp, read func(m []string) (Call, error)) (calls []Call, err error) {
	all := form.FindAllStringSubmatch(text, -1)
	if len(all) == 0 || len(all) != strings.Count(text, begin) {
		return nil, fmt.Errorf("a %s without its end", begin)
	}
	for i, m := range all {
		c, err := read(m)
		if err != nil {
			return nil, fmt.Errorf("call %d: %w", i, err)
		}
		calls = append(calls, c)
	}
	return calls, nil
}

// object makes a call of arguments that are written as a JSON object.
func object(id, name, arguments string) (Call, error) {
	var keys map[string]json.RawMessage
	switch name, arguments = strings.TrimSpace(name), strings.TrimSpace(arguments); {
	case name == "":
		return Call{}, fmt.Errorf("no name")
	case json.Unmarshal([]byte(arguments), &keys) != nil || keys == nil:
		return Call{}, fmt.Errorf("its arguments are not an object of JSON")
	}
	return Call{ID: id, Name: name, Arguments: arguments}, nil
}

var (
	invokeTag   = regexp.MustCompile(`(?s)<invoke name="([^"]+)">(.*?)</invoke>`)
	namedTag    = regexp.MustCompile(`(?s)<parameter name="([^"]+)">(.*?)</parameter>`)
	fencedCall  = regexp.MustCompile(`(?s)<｜tool▁call▁begin｜>(.*?)<｜tool▁sep｜>(.*?)<｜tool▁call▁end｜>`)
	numberedOne = regexp.MustCompile(`(?s)<\|tool_call_begin\|>(.*?)<\|tool_call_argument_begin\|>(.*?)<\|tool_call_end\|>`)
	functionID  = regexp.MustCompile(`^(?:functions\.)?(.+?)(?::\d+)?$`)
)

// invokes are the calls of MiniMax: <invoke name=…> with a <parameter name=…> an argument.
func invokes(_ *published, text string, tools []*jinja.Dict) ([]Call, string, error) {
	inner, rest, ok, err := section(text, "<minimax:tool_call>", "</minimax:tool_call>")
	if !ok || err != nil {
		return nil, text, err
	}
	calls, err := each(inner, "<invoke", invokeTag, func(m []string) (Call, error) {
		return pairs(m[1], namedTag.FindAllStringSubmatch(m[2], -1), tools)
	})
	return calls, rest, err
}

// fenced are the calls of DeepSeek: the name, and its arguments in a fence of JSON, or without one.
func fenced(_ *published, text string, _ []*jinja.Dict) ([]Call, string, error) {
	inner, rest, ok, err := section(text, "<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>")
	if !ok || err != nil {
		return nil, text, err
	}
	calls, err := each(inner, "<｜tool▁call▁begin｜>", fencedCall, func(m []string) (Call, error) {
		name, arguments := m[1], m[2]
		if before, behind, ok := strings.Cut(m[2], "```json"); ok {
			name, arguments = before, strings.TrimSuffix(strings.TrimSpace(behind), "```")
		}
		return object("", name, arguments)
	})
	return calls, rest, err
}

// numbered are the calls of Kimi, each named functions.NAME:N.
func numbered(_ *published, text string, _ []*jinja.Dict) ([]Call, string, error) {
	inner, rest, ok, err := section(text, "<|tool_calls_section_begin|>", "<|tool_calls_section_end|>")
	if !ok || err != nil {
		return nil, text, err
	}
	calls, err := each(inner, "<|tool_call_begin|>", numberedOne, func(m []string) (Call, error) {
		id := strings.TrimSpace(m[1])
		name := ""
		if f := functionID.FindStringSubmatch(id); f != nil {
			name = f[1]
		}
		return object(id, name, m[2])
	})
	return calls, rest, err
}

// listed are the calls of Mistral: a JSON list behind [TOOL_CALLS], or in later models a name and its arguments behind each.
func listed(_ *published, text string, _ []*jinja.Dict) (calls []Call, rest string, err error) {
	parts := strings.Split(text, "[TOOL_CALLS]")
	if len(parts) == 1 {
		return nil, text, nil
	}
	var all []struct {
		ID        string          `json:"id"`
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	}
	if body := strings.TrimSpace(parts[1]); strings.HasPrefix(body, "[") {
		if err := json.Unmarshal([]byte(body), &all); err != nil || len(parts) > 2 {
			return nil, text, fmt.Errorf("[TOOL_CALLS] without a list of JSON")
		}
		for i, c := range all {
			call, err := object(c.ID, c.Name, cmp.Or(string(c.Arguments), "{}"))
			if err != nil {
				return nil, text, fmt.Errorf("call %d: %w", i, err)
			}
			calls = append(calls, call)
		}
		return calls, parts[0], nil
	}
	for i, part := range parts[1:] {
		name, arguments, _ := strings.Cut(part, "[ARGS]")
		name, id, _ := strings.Cut(name, "[CALL_ID]")
		call, err := object(id, name, arguments)
		if err != nil {
			return nil, text, fmt.Errorf("call %d: %w", i, err)
		}
		calls = append(calls, call)
	}
	return calls, parts[0], nil
}

// bare is the call of Llama 3.1, which is the whole turn: a JSON object of a name and parameters.
func bare(_ *published, text string, _ []*jinja.Dict) ([]Call, string, error) {
	body, tagged := strings.CutPrefix(strings.TrimSpace(text), "<|python_tag|>")
	if !tagged && !strings.HasPrefix(body, `{"name"`) {
		return nil, text, nil
	}
	var c struct {
		Name       string          `json:"name"`
		Parameters json.RawMessage `json:"parameters"`
	}
	if err := json.Unmarshal([]byte(body), &c); err != nil {
		return nil, text, fmt.Errorf("not JSON: %w", err)
	}
	call, err := object("", c.Name, cmp.Or(string(c.Parameters), "{}"))
	if err != nil {
		return nil, text, err
	}
	return []Call{call}, "", nil
}
