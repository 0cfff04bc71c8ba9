package chat

// PromptText renders text up to where its completion starts: as one user message, or as it is under template: none. The
// error is a *Fault.
func (t *Template) PromptText(text string) ([]int32, error) {
	if t.HasRoles() {
		return t.Prompt([]Message{{Role: "user", Content: text}})
	}
	var b builder
	b.add(0, t.layout.begin)
	t.content(&b, 0, text)
	return b.ids, nil
}
