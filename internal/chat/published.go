package chat

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"trainer/internal/chat/hf"
	"trainer/internal/chat/jinja"
	"trainer/internal/diag"
	"trainer/internal/tokenizer"
	"trainer/recipe"
)

// published is a template in the language in which models publish theirs, compiled, with what it is given beside the
// conversation.
type published struct {
	config    *hf.Config
	templates map[string]*hf.Template // by name
	sources   map[string]string
	options   hf.Options
	args      []string // name=value, sorted; for the hash

	calls      callForm
	contentDue bool   // it refuses a tool call in a message without content, and takes one with empty content
	oneCall    bool   // of several tool calls it writes the first
	answerEnd  string // the token behind an answer of the probe; "" where the next role's token ends it
	nextEnds   bool   // the next role's token ends a turn
	generation bool   // the template has {% generation %} blocks
	noThink    string // the argument that forbids reasoning, as enable_thinking; "" for none
}

// publishedWith is the template that a tokenizer comes with, nil and a fault where there is none.
func publishedWith(faults *diag.List, section recipe.Chat, tok *tokenizer.Tokenizer) *published {
	sources := tok.ChatTemplates()
	if len(sources) == 0 {
		if c, err := readConfig(tok); err != nil {
			faults.Add(diag.Pos{}, "chat.template", "auto: tokenizer_config.json of %s: %v", tok.Name(), err)
			return nil
		} else if sources = c.Templates; len(sources) == 0 {
			faults.Add(diag.Pos{}, "chat.template", "auto: the tokenizer %s comes without a chat template, and a guess would train a layout that the model does not know; "+
				"give its template as a file (chat.template: model.jinja), write it here, or take none and rows of text, or of a prompt and a completion", tok.Name())
			return nil
		}
	}
	return publish(faults, section, tok, "auto", sources)
}

// readConfig is what the tokenizer's files say; the sandbox's own have none, and two tokens.
func readConfig(tok *tokenizer.Tokenizer) (*hf.Config, error) {
	if data := tok.ConfigJSON(); data != nil {
		return hf.ReadConfig(data)
	}
	c := &hf.Config{SpecialTokens: map[string]string{}}
	if ids := beginOf(tok); len(ids) == 1 {
		c.SpecialTokens["bos_token"] = tok.Decode(ids)
	}
	if id, ok := tok.End(); ok {
		c.SpecialTokens["eos_token"] = tok.Decode([]int32{id})
	}
	return c, nil
}

// publish compiles templates by name, default among them; nil where there is a fault.
func publish(faults *diag.List, section recipe.Chat, tok *tokenizer.Tokenizer, name string, sources map[string]string) *published {
	config, err := readConfig(tok)
	if err != nil {
		faults.Add(diag.Pos{}, "chat.template", "tokenizer_config.json of %s: %v", tok.Name(), err)
		return nil
	}
	before := len(*faults)
	config.Templates = sources
	p := &published{config: config, sources: sources, templates: map[string]*hf.Template{}}
	if _, err := config.Template("", false); err != nil {
		faults.Add(diag.Pos{}, "chat.template", "%v", err)
		return nil
	}
	for _, key := range slices.Sorted(maps.Keys(sources)) {
		if p.templates[key], err = hf.Parse(sources[key]); err != nil {
			place := label(name, key)
			var e *jinja.Error
			if place != "" && errors.As(err, &e) && e.Line == 0 { // it is the whole template that is at fault
				place += " "
			}
			faults.Add(diag.Pos{}, "chat.template", "%s%v", place, err)
		}
	}
	if len(*faults) > before {
		return nil
	}
	p.options = hf.Options{SpecialTokens: config.SpecialTokens}
	p.setArgs(faults, section.Args)
	p.setDate(faults, section.Date)
	if len(*faults) == before {
		p.probe(faults, tok, section.Date != nil)
	}
	if len(*faults) > before {
		return nil
	}
	return p
}

// label begins a message about a template.
func label(name, key string) string {
	if key != "default" {
		name = strings.TrimSpace(name + " " + key)
	}
	if name == "" {
		return ""
	}
	return name + ":"
}

// setArgs refuses arguments that the template never reads.
func (p *published) setArgs(faults *diag.List, args map[string]any) {
	if len(args) == 0 {
		return
	}
	p.options.Args = jinja.NewDict()
	for _, name := range slices.Sorted(maps.Keys(args)) {
		if !p.readsVariable(name) {
			faults.Add(diag.Pos{}, "chat.args."+name, "the template reads no variable of this name, so it would have no effect%s; %s",
				diag.DidYouMean(name, p.arguments()), p.offered())
			continue
		}
		v := argument(args[name])
		if off, ok := v.(bool); ok && !off && slices.Contains([]string{"enable_thinking", "thinking"}, name) {
			p.noThink = name
		}
		p.options.Args.Set(name, v)
		p.args = append(p.args, fmt.Sprintf("%s=%#v", name, args[name]))
	}
}

// arguments are the variables that the template reads and that nobody else gives it.
func (p *published) arguments() []string {
	all := map[string]bool{}
	for _, t := range p.templates {
		for _, name := range t.Variables() {
			if _, token := p.config.SpecialTokens[name]; !token && !hf.Reserved(name) {
				all[name] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(all))
}

func (p *published) offered() string {
	if names := p.arguments(); len(names) > 0 {
		return "it reads " + strings.Join(names, ", ")
	}
	return "it takes no arguments"
}

func (p *published) readsVariable(name string) bool {
	for _, t := range p.templates {
		if t.Reads(name) {
			return true
		}
	}
	return false
}

// argument is a value of a recipe as templates see it. The keys of a map are in the order of the alphabet.
func argument(v any) jinja.Value {
	switch v := v.(type) {
	case int:
		return int64(v)
	case []any:
		l := &jinja.List{Items: make([]jinja.Value, len(v))}
		for i, item := range v {
			l.Items[i] = argument(item)
		}
		return l
	case map[string]any:
		d := jinja.NewDict()
		for _, k := range slices.Sorted(maps.Keys(v)) {
			d.Set(k, argument(v[k]))
		}
		return d
	}
	return v
}

// setDate fixes the day that the template writes: the recipe says it, as it must be the same tomorrow.
func (p *published) setDate(faults *diag.List, date *string) {
	if date == nil {
		return
	}
	day, err := time.Parse(time.DateOnly, *date)
	if err != nil {
		faults.Add(diag.Pos{}, "chat.date", "%q is not a day, as 2026-01-31", *date)
		return
	}
	if !p.readsVariable("strftime_now") {
		faults.Add(diag.Pos{}, "chat.date", "this template writes no date, so it would have no effect; leave it out")
		return
	}
	p.options.Now = func() time.Time { return day }
}

// reads tells whether the template mentions a key of messages or of the row anywhere.
func (p *published) reads(key string) bool {
	for _, source := range p.sources {
		if strings.Contains(source, key) {
			return true
		}
	}
	return false
}

// hash names the templates and what they are given.
func (p *published) hash() string {
	h := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(p.sources)) {
		fmt.Fprintf(h, "%s %q\n", name, p.sources[name])
	}
	for _, name := range slices.Sorted(maps.Keys(p.config.SpecialTokens)) {
		fmt.Fprintf(h, "token %s %q\n", name, p.config.SpecialTokens[name])
	}
	fmt.Fprintf(h, "args %q\n", p.args)
	if p.options.Now != nil {
		fmt.Fprintf(h, "date %s\n", p.options.Now().Format(time.DateOnly))
	}
	return hex.EncodeToString(h.Sum(nil))
}

// template is the one that goes with a conversation.
func (p *published) template(tools bool) *hf.Template {
	if t, ok := p.templates["tool_use"]; ok && tools {
		return t
	}
	return p.templates["default"]
}

// refused is the fault of a message that the template does not render.
func refused(message int, err error) *Fault {
	var e *jinja.Error
	if errors.As(err, &e) {
		return faultf(message, "", "the template refuses it: %s", e.Msg)
	}
	return faultf(message, "", "%v", err)
}
