package worker

import (
	"context"
	"encoding/json"
	"strings"
)

// Chat asks a model behind an OpenAI-compatible address for the reply to one message, at temperature 0. URL is the base, to which
// /chat/completions is added. It is safe for concurrent use.
type Chat struct {
	server    *Server
	model     string
	maxTokens int
}

// DialChat makes a Chat of an address.
func DialChat(a Address, model string, maxTokens int) *Chat {
	a.URL = strings.TrimRight(a.URL, "/") + "/chat/completions"
	return &Chat{server: Dial(a), model: model, maxTokens: maxTokens}
}

// Reply returns the text of the model's reply. Errors are as those of Pool.Ask; a body without a reply is asked for again.
func (c *Chat) Reply(ctx context.Context, message string) (string, error) {
	type turn struct {
		Role    string `json:"role"`
		Content string `json:"content"`
	}
	body, err := json.Marshal(struct {
		Model       string  `json:"model"`
		Messages    []turn  `json:"messages"`
		Temperature float64 `json:"temperature"`
		MaxTokens   int     `json:"max_tokens"`
	}{c.model, []turn{{"user", message}}, 0, c.maxTokens})
	if err != nil {
		return "", err
	}
	var text string
	err = c.server.post(ctx, "", func(int) ([]byte, error) { return body, nil }, func(data []byte) error {
		var r struct {
			Choices []struct {
				Message struct {
					Content *string `json:"content"`
				} `json:"message"`
			} `json:"choices"`
		}
		if json.Unmarshal(data, &r) != nil || len(r.Choices) == 0 || r.Choices[0].Message.Content == nil {
			return &tryAgain{reason: Protocol, msg: "the body is no chat completion"}
		}
		text = *r.Choices[0].Message.Content
		return nil
	})
	return text, err
}
