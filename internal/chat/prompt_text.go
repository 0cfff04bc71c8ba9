package chat

import "slices"

// PromptText renders text up to where its completion starts: as one user message, or as it is under template: none. The
// error is a *Fault.
func (t *Template) PromptText(text string) ([]int32, error) {
	if t.HasRoles() {
		return t.Prompt(Conversation{Messages: []Message{{Role: "user", Content: text}}})
	}
	if text == "" && len(t.begin) == 0 {
		return nil, faultf(-1, "", "empty; a prompt needs text")
	}
	return append(slices.Clone(t.begin), t.ids(text)...), nil
}
