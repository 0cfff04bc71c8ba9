package chat

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"trainer/internal/diag"
	"trainer/internal/tokenizer"
	"trainer/recipe"
)

// Source is the text of a template file, which whoever reads files has opened. The zero Source is none: under auto and none,
// and where the template stands in the recipe, there is no file.
type Source struct {
	Name string // as messages show it
	Text string
}

// inline tells whether a value of chat.template is the template itself, not the name of a file.
func inline(template string) bool {
	return strings.Contains(template, "{{") || strings.Contains(template, "{%") || strings.Contains(template, "\n")
}

// New makes the template that section asks for: auto is the tokenizer's own, none is raw text, else source's or the one
// that section holds. The error is a diag.List of every key of the section at fault, without positions: its Keys are dotted
// (chat.args), for recipe.At to place.
func New(section recipe.Chat, tok *tokenizer.Tokenizer, source Source) (*Template, error) {
	var faults diag.List
	t := &Template{tok: tok, section: section, begin: beginOf(tok)}
	t.end, t.hasEnd = tok.End()
	switch {
	case section.Template == "none":
	case section.Template == "auto":
		if t.layout = newLayout(tok); t.layout == nil {
			t.own = publishedWith(&faults, section, tok)
		}
	case source.Text != "":
		t.own = publish(&faults, section, tok, source.Name, map[string]string{"default": source.Text})
	case inline(section.Template):
		t.own = publish(&faults, section, tok, "", map[string]string{"default": section.Template})
	default:
		faults.Add(diag.Pos{}, "chat.template", "%s: neither a file that was opened nor a template; auto is the tokenizer's own, none raw text", brief(section.Template))
	}
	t.setMode(&faults)
	t.checkKeys(&faults)
	if err := faults.Err(); err != nil {
		return nil, err
	}
	return t, nil
}

// beginOf is what stands before raw text: what the vocabulary's post-processor puts there, or the byte vocabulary's own token.
func beginOf(tok *tokenizer.Tokenizer) []int32 {
	if l := newLayout(tok); l != nil {
		return []int32{l.begin}
	}
	return tok.Begin()
}

func (t *Template) setMode(faults *diag.List) {
	all := modes()
	name := t.section.TrainOn
	if i := slices.IndexFunc(all, func(m mode) bool { return m.name == name }); i >= 0 {
		t.mode = all[i]
	} else if name == "" { // of a loop that samples what it trains on
		t.mode = mode{picks: func([]Message, int) bool { return false }}
	} else {
		faults.Add(diag.Pos{}, "chat.train_on", "%q is not a mode%s", name, diag.DidYouMean(name, modeNames(all)))
	}
}

// checkKeys refuses what has no effect.
func (t *Template) checkKeys(faults *diag.List) {
	s := t.section
	if len(s.Args) > 0 && t.own == nil && (t.layout != nil || s.Template == "none") {
		faults.Add(diag.Pos{}, "chat.args", "this template takes no arguments, so they would have no effect; leave them out")
	}
	if s.Date != nil && t.own == nil && (t.layout != nil || s.Template == "none") {
		faults.Add(diag.Pos{}, "chat.date", "this template writes no date, so it would have no effect; leave it out")
	}
	if s.Template != "none" {
		return
	}
	if s.System != nil {
		faults.Add(diag.Pos{}, "chat.system", "template: none has no system message, so it would have no effect; leave it out")
	}
	if s.TrainOn == "per_message" {
		faults.Add(diag.Pos{}, "chat.train_on", "per_message needs messages, and template: none has none; leave it out to train completions, or take all_tokens")
	}
}

// Hash names what decides the ids and weights of a conversation, in lower-case hex: template, its variables and the day that
// it writes, its system message, mode, control tokens, vocabulary. It changes too when the way of rendering changes.
func (t *Template) Hash() string {
	system := "none"
	if t.section.System != nil {
		system = fmt.Sprintf("%q", *t.section.System)
	}
	name := t.section.Template
	if t.own != nil {
		name = t.own.hash()
	}
	h := sha256.New()
	fmt.Fprintf(h, "chat 1\ntemplate %s\nsystem %s\ntrain_on %s\ncontrol %t\ntokenizer %s\n",
		name, system, t.mode.name, t.section.AllowControlTokens, t.tok.Hash())
	return hex.EncodeToString(h.Sum(nil))
}

// brief is a template in a message: a file by its name, an inline one by its first words.
func brief(template string) string {
	line, _, more := strings.Cut(strings.TrimSpace(template), "\n")
	if r := []rune(line); len(r) > 40 {
		line, more = string(r[:40]), true
	}
	if more {
		line += "…"
	}
	return fmt.Sprintf("%q", line)
}

func modeNames(all []mode) []string {
	names := make([]string, len(all))
	for i, m := range all {
		names[i] = m.name
	}
	return names
}
