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

// New makes the template that section asks for: auto is the tokenizer's own, none is raw text. The error is a diag.List
// of every key of the section at fault, without positions: its Keys are dotted (chat.args), for recipe.At to place.
func New(section recipe.Chat, tok *tokenizer.Tokenizer, _ Source) (*Template, error) {
	var faults diag.List
	t := &Template{tok: tok, section: section}
	switch section.Template {
	case "auto", "none":
		var err error
		if t.layout, err = newLayout(section.Template, tok); err != nil {
			faults.Add(diag.Pos{}, "chat.template", "%s: %v", section.Template, err)
		}
	default:
		faults.Add(diag.Pos{}, "chat.template", "%s: templates of your own are not built yet; auto (the tokenizer's own) and none (raw text) work", brief(section.Template))
	}
	all := modes()
	if i := slices.IndexFunc(all, func(m mode) bool { return m.name == section.TrainOn }); i >= 0 {
		t.mode = all[i]
	} else if section.TrainOn == "" { // of a loop that samples what it trains on
		t.mode = mode{picks: func([]Message, int) bool { return false }}
	} else {
		faults.Add(diag.Pos{}, "chat.train_on", "%q is not a mode%s", section.TrainOn, diag.DidYouMean(section.TrainOn, modeNames(all)))
	}
	if len(section.Args) > 0 {
		faults.Add(diag.Pos{}, "chat.args", "this template takes no arguments, so they would have no effect; leave them out")
	}
	if section.Template == "none" {
		if section.System != nil {
			faults.Add(diag.Pos{}, "chat.system", "template: none has no system message, so it would have no effect; leave it out")
		}
		if section.TrainOn == "per_message" {
			faults.Add(diag.Pos{}, "chat.train_on", "per_message needs messages, and template: none has none; leave it out to train completions, or take all_tokens")
		}
	}
	if err := faults.Err(); err != nil {
		return nil, err
	}
	return t, nil
}

// Hash names what decides the ids and weights of a conversation, in lower-case hex: template, its system message, mode,
// control tokens, vocabulary. It changes too when the way of rendering changes.
func (t *Template) Hash() string {
	system := "none"
	if t.section.System != nil {
		system = fmt.Sprintf("%q", *t.section.System)
	}
	h := sha256.New()
	fmt.Fprintf(h, "chat 1\ntemplate %s\nsystem %s\ntrain_on %s\ncontrol %t\ntokenizer %s\n",
		t.layout.name, system, t.mode.name, t.section.AllowControlTokens, t.tok.Hash())
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
