package runner

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"trainer/internal/chat"
	"trainer/internal/diag"
	"trainer/internal/hub"
	"trainer/internal/tokenizer"
	"trainer/recipe"
)

// tokenizerFiles are what a model's tokenizer is made of, and its chat templates.
var tokenizerFiles = []string{
	"tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json",
	"chat_template.jinja", "additional_chat_templates/*", "*.tiktoken", "tiktoken.model", "tekken.json",
}

// maxTemplate bounds a template's file, in bytes.
const maxTemplate = 1 << 20

// openTemplate finds the tokenizer and compiles the template. A fault of the recipe is added to problems.
func (in *Inputs) openTemplate(ctx context.Context, h *hub.Hub, problems *diag.List) error {
	r := in.Recipe
	source, err := in.templateFile(ctx, h)
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	var away *hub.Uncached
	if errors.As(err, &away) {
		in.missing = append(in.missing, fmt.Sprintf("the template, %v", away))
	} else if err != nil {
		problems.Add(r.At("chat.template"), "chat.template", "%v", err)
	}
	if err := in.openTokenizer(ctx, h, problems); err != nil {
		return err
	}
	if err != nil || in.Tokenizer == nil {
		return nil
	}
	t, err := chat.New(in.chatSection(), in.Tokenizer, source)
	var faults diag.List
	if errors.As(err, &faults) {
		for _, f := range faults {
			problems.Add(r.At(f.Key), f.Key, "%s", f.Msg)
		}
		return nil
	}
	in.Template = t
	return err
}

// chatSection is the recipe's; where the byte vocabulary stands in, and with it its template, without what is said to the
// template of the model alone.
func (in *Inputs) chatSection() recipe.Chat {
	c := in.Recipe.Chat
	if in.Instead != "" && c.Template == "auto" {
		c.Args, c.Date = nil, nil
	}
	return c
}

// templateFile reads the file, or the model on the hub, that chat.template names, where it names one.
func (in *Inputs) templateFile(ctx context.Context, h *hub.Hub) (chat.Source, error) {
	c := in.Recipe.Chat
	if strings.HasPrefix(c.Template, hub.Scheme) {
		return templateOfModel(ctx, h, c.Template)
	}
	if !c.IsFile() {
		return chat.Source{}, nil
	}
	files, err := h.Open(ctx, c.Template, in.Recipe.Dir("chat.template"))
	if err != nil {
		return chat.Source{}, err
	}
	if len(files) > 1 || files[0].Size == 0 || files[0].Size > maxTemplate {
		return chat.Source{}, fmt.Errorf("%s: one file of at most %d KiB is due, and not an empty one", c.Template, maxTemplate>>10)
	}
	text, err := os.ReadFile(files[0].Path)
	return chat.Source{Name: c.Template, Text: string(text)}, err
}

// openTokenizer finds the tokenizer: the model's own, or the one that the recipe names. It stays nil where rows are tokens, and
// where it is not here and may not be fetched.
func (in *Inputs) openTokenizer(ctx context.Context, h *hub.Hub, problems *diag.List) error {
	r, own := in.Recipe, strings.HasPrefix(in.Recipe.BaseModel, SandboxPrefix)
	auto := r.Tokenizer == "auto"
	switch {
	case own && !auto:
		problems.Add(r.At("tokenizer"), "tokenizer", "%q: the sandbox's own models have the byte vocabulary; leave it auto", r.Tokenizer)
		return nil
	case own:
		in.Tokenizer = tokenizer.Bytes()
		return nil
	case auto && allTokens(r.Dataset):
		return nil // the ids are the model's own, also where the sandbox stands in for it
	}
	f, err := h.Folder(ctx, in.tokenizerName(), r.Dir("tokenizer"), tokenizerFiles...)
	var away *hub.Uncached
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil && auto && in.StandIn:
		in.Tokenizer, in.Instead = tokenizer.Bytes(), err.Error()
		return nil
	case errors.As(err, &away):
		in.missing = append(in.missing, fmt.Sprintf("the tokenizer, %v", away))
		return nil
	case err != nil:
		problems.Add(r.At("tokenizer"), "tokenizer", "%v%s", err, in.otherTokenizers())
		return nil
	}
	if in.Tokenizer, err = tokenizer.Open(f.Path); err != nil {
		in.Tokenizer = nil
		problems.Add(r.At("tokenizer"), "tokenizer", "%s: %v%s", f.Name, err, in.otherTokenizers())
	}
	return nil
}

// stoodIn says, in lines, that the byte vocabulary stands in for the model's tokenizer, where it does.
func (in *Inputs) stoodIn() []string {
	if in.Instead == "" {
		return nil
	}
	out := []string{fmt.Sprintf("the byte vocabulary stands in for the tokenizer of %s: %s", in.Recipe.BaseModel, in.Instead)}
	if now, was := in.chatSection(), in.Recipe.Chat; len(now.Args) != len(was.Args) || now.Date != was.Date {
		out = append(out, "its template stands in too, and takes neither chat.args nor chat.date")
	}
	return out
}

// tokenizerName is what the tokenizer is asked for by, as auto stands for the base model's own.
func (in *Inputs) tokenizerName() string {
	if in.Recipe.Tokenizer == "auto" {
		return hub.Scheme + in.Recipe.BaseModel
	}
	return in.Recipe.Tokenizer
}

// otherTokenizers are the ways out where the model's own cannot be had: it is never guessed.
func (in *Inputs) otherTokenizers() string {
	if in.Recipe.Tokenizer != "auto" {
		return ""
	}
	return fmt.Sprintf("; the tokenizer of %s is needed: name it (tokenizer: a folder, a tokenizer.json or hf://org/name), give rows as token ids (format: tokens on every source), or try the recipe with --sandbox", in.Recipe.BaseModel)
}
