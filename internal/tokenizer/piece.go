package tokenizer

import "unicode/utf8"

// piece is a run of text on its way to the model, and where it stood in the text that was given.
type piece struct {
	text  string
	start int    // byte offset in the given text at which text, or what it was made of, starts
	align []span // [len(text)] what of the given text each byte stands for; nil while text is a part of it as it is
}

// span is bytes of the given text.
type span struct{ from, to int }

// cut is the bytes [i, j) of p, as a piece of its own.
func (p piece) cut(i, j int) piece {
	q := piece{text: p.text[i:j], start: p.start + i}
	if p.align != nil {
		q.align, q.start = p.align[i:j], p.align[i].from
	}
	return q
}

// behind is the offset in the given text behind the first i bytes of p, 0 < i <= len(p.text): behind the whole character of
// which byte i-1 is a part.
func (p *piece) behind(i int) int {
	if p.align != nil {
		return p.align[i-1].to
	}
	for i < len(p.text) && !utf8.RuneStart(p.text[i]) {
		i++
	}
	return p.start + i
}

// origin is where the bytes [i, j) of p stand in the given text, i < j.
func (p piece) origin(i, j int) span {
	if p.align != nil {
		return span{p.align[i].from, p.align[j-1].to}
	}
	return span{p.start + i, p.start + j}
}

// spans is p.align, or what it would be.
func (p piece) spans() []span {
	if p.align != nil {
		return p.align
	}
	out := make([]span, 0, len(p.text))
	for i := 0; i < len(p.text); {
		_, n := utf8.DecodeRuneInString(p.text[i:])
		for range n {
			out = append(out, span{p.start + i, p.start + i + n})
		}
		i += n
	}
	return out
}

// with is p with another text; spans is what its bytes stand for, nil where nobody asks.
func (p piece) with(text string, spans []span) piece {
	return piece{text: text, start: p.start, align: spans}
}

// prepend is p with head before it, which stands for the first character, as the reference has it.
func (p piece) prepend(head string, aligned bool) piece {
	if p.text == "" {
		return p
	}
	if !aligned {
		return p.with(head+p.text, nil)
	}
	old := p.spans()
	spans := make([]span, 0, len(head)+len(old))
	for range len(head) {
		spans = append(spans, old[0])
	}
	return p.with(head+p.text, append(spans, old...))
}

// replace is p with every from in it, left to right, made into to; from is not empty. The new bytes stand for what the last
// character of from stood for.
func (p piece) replace(from, to string, aligned bool) piece {
	var text []byte
	var spans, old []span
	done := 0
	for i := indexFrom(p.text, from, 0); i >= 0; i = indexFrom(p.text, from, done) {
		if text == nil {
			text = make([]byte, 0, len(p.text)+len(p.text)/2)
			if aligned {
				old = p.spans()
				spans = make([]span, 0, len(p.text)+len(p.text)/2)
			}
		}
		text = append(append(text, p.text[done:i]...), to...)
		end := i + len(from)
		if aligned {
			spans = append(spans, old[done:i]...)
			for range len(to) {
				spans = append(spans, old[end-1])
			}
		}
		done = end
	}
	if text == nil {
		return p
	}
	if aligned {
		spans = append(spans, old[done:]...)
	}
	return p.with(string(append(text, p.text[done:]...)), spans)
}
