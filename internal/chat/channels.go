package chat

import (
	"fmt"
	"regexp"
	"strings"
)

// channelMark is of templates whose turns are messages on channels, as those of GPT-OSS.
const channelMark = "<|channel|>"

var recipient = regexp.MustCompile(`to=functions\.([^\s<]+)`)

// channels takes a turn of messages on channels apart: analysis is its reasoning, a message to a function a call, the rest its
// content.
func channels(text string) (a Answer, err error) {
	if !strings.Contains(text, "<|message|>") {
		return Answer{Content: text}, nil
	}
	var reasoning, content []string
	for part := range strings.SplitSeq(strings.ReplaceAll(text, "<|call|>", "<|end|>"), "<|end|>") {
		head, body, ok := strings.Cut(part, "<|message|>")
		if !ok && strings.TrimSpace(part) == "" {
			continue
		}
		if !ok {
			return a, fmt.Errorf("a message without <|message|>")
		}
		switch to := recipient.FindStringSubmatch(head); {
		case to != nil:
			c, err := object("", to[1], body)
			if err != nil {
				return a, fmt.Errorf("call %d: %w", len(a.Calls), err)
			}
			a.Calls = append(a.Calls, c)
		case strings.Contains(head, channelMark+"analysis"):
			reasoning = append(reasoning, body)
		default:
			content = append(content, body)
		}
	}
	a.Reasoning, a.Content = strings.Join(reasoning, "\n"), strings.Join(content, "\n")
	return a, nil
}
