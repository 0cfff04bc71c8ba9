package chat

import "slices"

// raw renders a prompt that counts w and the text behind it, which is trained with one end token. The ids of the prompt are
// those that sampling is given.
func (t *Template) raw(w float64, prompt, text string) (Example, error) {
	if !t.hasEnd {
		return Example{}, faultf(-1, "", "the tokenizer %s names no end token (eos_token), so a model would never learn to stop", t.tok.Name())
	}
	var b builder
	b.add(0, t.begin...)
	given := t.ids(prompt)
	b.add(w, given...)
	whole := t.ids(prompt + text)
	if len(whole) > len(given) && slices.Equal(whole[:len(given)], given) {
		b.add(1, whole[len(given):]...)
	} else { // a token reaches over the boundary
		b.add(1, t.ids(text)...)
	}
	b.add(1, t.end)
	if len(t.begin) == 0 {
		b.weights[0] = 0
	}
	return b.example(), nil
}

// ids are those of text that comes from a row.
func (t *Template) ids(text string) []int32 {
	if t.section.AllowControlTokens {
		ids, _ := t.tok.EncodeControl(text)
		return ids
	}
	return t.tok.Append(nil, text)
}
