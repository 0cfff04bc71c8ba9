package chat

import (
	"slices"
	"strings"

	"trainer/internal/diag"
)

// Keys of a message that have a meaning of their own, whatever the template.
const (
	keyContent   = "content"
	keyToolCalls = "tool_calls"
)

// reasoningKeys are the names under which data has the reasoning of a message.
var reasoningKeys = []string{"reasoning_content", "thinking", "reasoning"}

// takes tells whether a key of a message has a place in the template. That of a result to its call is not written by every
// template that writes results, and reasoning is a trained turn's business: whether it is lost there is looked at there.
func (t *Template) takes(m Message, key string) bool {
	switch key {
	case "role", keyContent:
		return true
	case "tool_call_id", "name":
		return t.own != nil && (m.Role == "tool" || m.Role == "function" || t.own.reads(key))
	}
	return t.own != nil && (slices.Contains(reasoningKeys, key) || t.own.reads(key))
}

// UnknownKey says why what has no role and a key of this name is no message.
func UnknownKey(key string) string { return unknownKey(key, false) }

// unknownKey refuses a key of a message.
func unknownKey(key string, template bool) string {
	switch key {
	case "from":
		return `not a key of a message; here it is called "role"`
	case "value", "text":
		return `not a key of a message; here it is called "content"`
	case "function_call":
		return `the template cannot render it, so training would drop it; write it as tool_calls, [{"type": "function", "function": {"name": …, "arguments": …}}]`
	case "tool_calls", "tool_call_id", "name", "reasoning_content", "reasoning", "thinking":
		return "the template cannot render it, so training would drop it; write it into the content, or leave it out"
	}
	keys := []string{"role", "content", "train", "weight"}
	if template {
		return "not a key of a message (" + strings.Join(keys, ", ") + "), and the template reads none of this name" + diag.DidYouMean(key, keys)
	}
	return "not a key of a message (" + strings.Join(keys, ", ") + ")" + diag.DidYouMean(key, keys)
}
