package runner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"trainer/internal/chat"
	"trainer/internal/hub"
)

// templateOfModel is the chat template of the model that chat.template names on the hub: its chat_template.jinja, or what its
// tokenizer_config.json has.
func templateOfModel(ctx context.Context, h *hub.Hub, name string) (chat.Source, error) {
	const file, config = "chat_template.jinja", "tokenizer_config.json"
	f, err := h.Folder(ctx, name, "", file, config)
	if err != nil {
		return chat.Source{}, err
	}
	text, err := os.ReadFile(filepath.Join(f.Path, file))
	if err == nil && len(text) > 0 {
		return chat.Source{Name: name, Text: string(text)}, nil
	}
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		text, err = os.ReadFile(filepath.Join(f.Path, config))
	}
	if errors.Is(err, fs.ErrNotExist) {
		return chat.Source{}, fmt.Errorf("%s: has no chat template", name)
	}
	if err != nil {
		return chat.Source{}, err
	}
	return configured(name, text)
}

// configured reads the template of a tokenizer_config.json: text, or of a list of named ones the one called default.
func configured(name string, config []byte) (chat.Source, error) {
	var c struct {
		Template json.RawMessage `json:"chat_template"`
	}
	if err := json.Unmarshal(config, &c); err != nil {
		return chat.Source{}, fmt.Errorf("%s: tokenizer_config.json: %w", name, err)
	}
	var text string
	var named []struct{ Name, Template string }
	if json.Unmarshal(c.Template, &text) != nil && json.Unmarshal(c.Template, &named) == nil {
		for _, t := range named {
			if t.Name == "default" {
				text = t.Template
			}
		}
	}
	if text == "" {
		return chat.Source{}, fmt.Errorf("%s: has no chat template", name)
	}
	return chat.Source{Name: name, Text: text}, nil
}
