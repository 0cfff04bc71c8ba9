package chat

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"trainer/internal/chat/hf"
	"trainer/internal/chat/jinja"
	"trainer/internal/diag"
	"trainer/internal/tokenizer"
)

// Texts that no template writes by itself.
const (
	probeQuestion = "What does the probe ask?"
	probeAnswer   = "The probe answers this."
	probeValue    = "a value of the probe"
)

// probe renders small conversations to learn how the template ends an answer and wants tool calls, and refuses a template
// that cannot be trained: without a generation prompt, without an end token. A template that refuses the conversations may
// still render the rows, and is judged by them.
func (p *published) probe(faults *diag.List, tok *tokenizer.Tokenizer, dated bool) {
	p.calls = p.callForm()
	p.oneCall = p.dropsCalls()
	p.contentDue = p.needsContent()
	question := jinja.NewDict("role", "user", keyContent, probeQuestion)
	answer := jinja.NewDict("role", "assistant", keyContent, probeAnswer)
	o, asked := p.options, false
	if !dated {
		o.Now = func() time.Time { asked = true; return time.Unix(0, 0).UTC() }
	}
	tpl := p.template(false)
	whole, err := tpl.Render(hf.Conversation{Messages: []*jinja.Dict{question, answer}}, o)
	if asked {
		faults.Add(diag.Pos{}, "chat.date", "missing: the template writes the day on which it is used, and the same recipe would be another one tomorrow; say which day, as chat.date: 2026-01-31")
		return
	}
	if err != nil {
		return
	}
	p.generation = len(whole.Generation) > 0
	prompt, err := tpl.Render(hf.Conversation{Messages: []*jinja.Dict{question}}, hf.Options{AddGenerationPrompt: true,
		SpecialTokens: o.SpecialTokens, Args: o.Args, Now: o.Now})
	at := strings.LastIndex(whole.Text, probeAnswer)
	if err != nil || at < 0 {
		return
	}
	p.findEnd(tok, whole.Text[at+len(probeAnswer):])
	if !p.readsVariable("add_generation_prompt") && strings.HasPrefix(whole.Text[:at], prompt.Text) && hasControl(tok, whole.Text[len(prompt.Text):at]) {
		faults.Add(diag.Pos{}, "chat.template", "it writes %q before an answer, and nothing of that as a generation prompt, so sampling would not start where training does; let it write the header where add_generation_prompt is true",
			whole.Text[len(prompt.Text):at])
	}
	rest := strings.TrimSpace(whole.Text[at+len(probeAnswer):])
	if p.nextEnds && (rest != "" || !p.endsByNext(tok, whole.Text, question, answer)) {
		behind := ""
		if rest != "" {
			behind = ": " + head(rest) + " is not one of " + tok.Name()
		}
		faults.Add(diag.Pos{}, "chat.template", "it ends an answer with no token that a model could stop with%s; an end token is a single control token of the tokenizer, such as {{ eos_token }}", behind)
	}
}

// findEnd takes the first control token behind an answer.
func (p *published) findEnd(tok *tokenizer.Tokenizer, behind string) {
	ids, ends := tok.EncodeWhere(behind, func(int, int) bool { return true })
	start := 0
	for i, id := range ids {
		piece := behind[start:ends[i]]
		if tok.IsControl(id) {
			p.answerEnd = piece
			return
		}
		if strings.TrimSpace(piece) != "" {
			break
		}
		start = ends[i]
	}
	p.nextEnds = true
}

// endsByNext tells whether the header of the next message starts with a control token directly behind an answer.
func (p *published) endsByNext(tok *tokenizer.Tokenizer, answered string, question, answer *jinja.Dict) bool {
	out, err := p.template(false).Render(hf.Conversation{Messages: []*jinja.Dict{question, answer, question}}, p.options)
	if err != nil || !strings.HasPrefix(out.Text, answered) {
		return false
	}
	ids, _ := tok.EncodeWhere(out.Text[len(answered):], func(int, int) bool { return true })
	return len(ids) > 0 && tok.IsControl(ids[0])
}

func hasControl(tok *tokenizer.Tokenizer, text string) bool {
	ids, _ := tok.EncodeWhere(text, func(int, int) bool { return true })
	return slices.ContainsFunc(ids, tok.IsControl)
}

// callForm finds the form of arguments that the template writes: the object if it writes that, else JSON text.
func (p *published) callForm() callForm {
	for _, form := range []callForm{callAsObject, callAsText} {
		if text, err := p.renderCalls(form, []string{keyContent}, probeValue); err == nil && strings.Contains(text, probeValue) {
			return form
		}
	}
	return callAsGiven
}

// dropsCalls tells whether the template writes a tool call, and not the second one beside it.
func (p *published) dropsCalls() bool {
	const second = "another value"
	text, err := p.renderCalls(p.calls, []string{keyContent}, probeValue, second)
	return err == nil && strings.Contains(text, probeValue) && !strings.Contains(text, second)
}

// needsContent tells whether the template refuses a tool call without a content beside it, and takes it with an empty one.
func (p *published) needsContent() bool {
	if _, err := p.renderCalls(p.calls, nil, probeValue); err == nil {
		return false
	}
	_, err := p.renderCalls(p.calls, []string{keyContent}, probeValue)
	return err == nil
}

// renderCalls renders an answer with a tool call for each value, and with empty text under the keys given.
func (p *published) renderCalls(form callForm, empty []string, values ...string) (string, error) {
	calls := &jinja.List{}
	for i, v := range values {
		call := jinja.NewDict("id", fmt.Sprintf("probe%04d", i), "type", "function",
			"function", jinja.NewDict("name", "probe_tool", "arguments", form.arguments(jinja.NewDict("probe", v))))
		calls.Items = append(calls.Items, call)
	}
	answer := jinja.NewDict("role", "assistant")
	for _, key := range empty {
		answer.Set(key, "")
	}
	answer.Set(keyToolCalls, calls)
	messages := []*jinja.Dict{jinja.NewDict("role", "user", keyContent, probeQuestion), answer}
	o := p.options
	if o.Now == nil {
		o.Now = func() time.Time { return time.Unix(0, 0).UTC() }
	}
	out, err := p.template(true).Render(hf.Conversation{Messages: messages, Tools: []*jinja.Dict{probeTool()}}, o)
	if err != nil {
		return "", err
	}
	return out.Text, nil
}

func probeTool() *jinja.Dict {
	return jinja.NewDict("type", "function", "function", jinja.NewDict("name", "probe_tool", "description", "A tool of the probe.",
		"parameters", jinja.NewDict("type", "object", "properties",
			jinja.NewDict("probe", jinja.NewDict("type", "string", "description", "A value.")), "required", &jinja.List{Items: []jinja.Value{"probe"}})))
}
