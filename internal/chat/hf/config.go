package hf

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"trainer/internal/diag"
)

// Config is what a tokenizer_config.json says about conversations.
type Config struct {
	// Templates by name: a single one is "default"; nil where the model has none.
	Templates map[string]string
	// SpecialTokens by the name under which templates read them, bos_token and so on.
	SpecialTokens map[string]string
}

// ReadConfig reads a tokenizer_config.json. What it does not need it does not check.
func ReadConfig(data []byte) (*Config, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(data, &fields); err != nil {
		return nil, err
	}
	c := &Config{SpecialTokens: map[string]string{}}
	var err error
	if c.Templates, err = readTemplates(fields["chat_template"]); err != nil {
		return nil, err
	}
	for name, raw := range fields {
		if strings.HasSuffix(name, "_token") {
			if token, ok := readToken(raw); ok {
				c.SpecialTokens[name] = token
			}
		}
	}
	var extra map[string]json.RawMessage // a list has no names
	if json.Unmarshal(fields["extra_special_tokens"], &extra) == nil {
		for name, raw := range extra {
			token, ok := readToken(raw)
			if !ok {
				return nil, fmt.Errorf("extra_special_tokens.%s: not a token", name)
			}
			c.SpecialTokens[name] = token
		}
	}
	return c, nil
}

// readTemplates reads a template, or a list of named ones.
func readTemplates(raw json.RawMessage) (map[string]string, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	var single string
	if json.Unmarshal(raw, &single) == nil {
		return map[string]string{"default": single}, nil
	}
	var named []struct{ Name, Template *string }
	if err := json.Unmarshal(raw, &named); err != nil {
		return nil, errors.New("chat_template: neither a template nor a list of named ones")
	}
	all := map[string]string{}
	for i, n := range named {
		if n.Name == nil || n.Template == nil {
			return nil, fmt.Errorf("chat_template.%d: needs name and template", i)
		}
		all[*n.Name] = *n.Template
	}
	return all, nil
}

// readToken reads a token, which stands as text or as an object with its content.
func readToken(raw json.RawMessage) (string, bool) {
	var s string
	if json.Unmarshal(raw, &s) == nil && string(raw) != "null" {
		return s, true
	}
	var object struct{ Content *string }
	if json.Unmarshal(raw, &object) == nil && object.Content != nil {
		return *object.Content, true
	}
	return "", false
}

// Template is the source of the template with this name. An empty name takes what the library takes: tool_use where the
// conversation brings tools and the model has one, else default.
func (c *Config) Template(name string, tools bool) (string, error) {
	names := slices.Sorted(maps.Keys(c.Templates))
	if len(names) == 0 {
		return "", errors.New("the model has no chat template")
	}
	if name == "" {
		name = "default"
		if _, ok := c.Templates["tool_use"]; ok && tools {
			name = "tool_use"
		}
	}
	source, ok := c.Templates[name]
	if !ok {
		return "", fmt.Errorf("the model has no chat template %q; it has %s%s", name, strings.Join(names, ", "), diag.DidYouMean(name, names))
	}
	return source, nil
}
