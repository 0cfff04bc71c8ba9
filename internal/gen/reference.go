package main

import (
	"fmt"
	"strings"

	"trainer/loss"
	"trainer/recipe"
)

// reference is the page docs/recipe.md.
func reference(d docs) []byte {
	var b strings.Builder
	b.WriteString(opening)
	losses(&b)
	page{&b, d, map[string]string{}}.section("The recipe itself", "", recipe.Keys())
	b.WriteString(closing)
	return []byte(b.String())
}

const opening = `# The recipe

<!-- Made by go generate from the structs of the recipe package; edit their comments instead. -->

A recipe is one YAML file. ` + "`base_model`, `dataset.train` and `loss.type`" + ` are required, the rest has defaults:

` + "```yaml" + `
base_model: sandbox/bytes-tiny
dataset: {train: data.jsonl}
loss: {type: cross_entropy}
` + "```" + `

- An unknown key, a wrong type, a value out of range or a contradiction is an error with its place, and all are reported at once.
  A key that has no effect in the recipe's loop is one too. ` + "`trainer resolve`" + ` prints every value and where it came from.
- ` + "`extends: [base.yaml]`" + ` lays the file on top of its parents, local files beside it: later wins, mappings merge, lists and single
  values replace. Where a child changes a ` + "`type`" + `, the parent's ` + "`params`" + ` and the keys that the new type does not know are left behind.
- ` + "`--set a.b=c`" + ` lays a value on top, typed by the key; ` + "`--set dataset.train.0.limit=100`" + ` reaches into a list. A relative path in a
  ` + "`--set`" + ` starts in the working directory, one in a file in that file's folder.
- ` + "`null`" + ` turns a thing off, where the tables show it; an empty value is null. Durations are ` + "`90s`, `15m`, `4h` or `1h30m`" + `.
- Only ` + "`true` and `false`" + ` are booleans. A number is written without quotes, leading zeros or underscores; ` + "`1e-5`" + ` is one. Where text
  is due, every plain word is text. ` + "`<<`" + ` merges, and an explicit key wins. A file has at most 1 MiB.
- Secrets come from the environment: a recipe or a ` + "`--set`" + ` that holds one is refused. ` + "`${env:NAME}`" + ` works in ` + "`headers`" + ` only.

`

const closing = `## What decides the result

A run is locked to the hash of its recipe. The hash counts every value that decides what is trained. It does not count names,
descriptions, logging, limits, checkpoints, evaluation (unless ` + "`eval.early_stop`" + ` is on), ` + "`keep_resources`, `inactive_timeout`," + `
` + "`train.lookahead`" + ` and ` + "`test`" + `, nor how the values were written. Dataset, tokenizer and template are hashed apart, by their content.
`

func losses(b *strings.Builder) {
	b.WriteString("## Losses and their loops\n\nThe loss type decides the loop. What a recipe asks for that is not built yet is refused by name.\n\n")
	b.WriteString("| loss.type | loop |\n| --- | --- |\n")
	for _, k := range loss.Kinds() {
		loop := string(k.Loop)
		if rows := k.In(false); rows != k.Loop {
			loop += "; " + string(rows) + " where there is neither `rollout` nor `teacher`"
		}
		fmt.Fprintf(b, "| %s | %s |\n", k.Name, loop)
	}
	b.WriteString("\n")
}

type page struct {
	b    *strings.Builder
	d    docs
	seen map[string]string // the heading of a struct's table, by its first field
}

// section writes the table of a mapping, and the sections below it.
func (p page) section(title, text string, k *recipe.Key) {
	fmt.Fprintf(p.b, "## %s\n\n", title)
	if text != "" {
		p.b.WriteString(text + "\n\n")
	}
	first := k.Keys[0].Field
	if same := p.seen[first]; same != "" {
		fmt.Fprintf(p.b, "The keys are those of `%s`.\n\n", same)
		return
	}
	p.seen[first] = title
	p.table(k.Keys)
	for _, v := range k.Variants {
		if len(v.Keys) > 0 && k.Kind != recipe.Params {
			fmt.Fprintf(p.b, "With `type: %s` also:\n\n", v.Name)
			p.table(v.Keys)
		}
	}
	for _, c := range k.Keys {
		if c.Kind == recipe.Params {
			p.params(c)
		}
		if below := nested(c); below != nil {
			p.section(heading(c), p.about(c), below)
		}
	}
}

// params writes a table for each type that has parameters.
func (p page) params(k *recipe.Key) {
	for _, v := range k.Variants {
		if len(v.Keys) > 0 {
			fmt.Fprintf(p.b, "With `type: %s`, `%s` has:\n\n", v.Name, k.Name)
			p.table(v.Keys)
		}
	}
}

// nested is the mapping that stands at a key or in its list, if any.
func nested(k *recipe.Key) *recipe.Key {
	switch {
	case k.Kind == recipe.Mapping || k.Kind == recipe.Column:
		return k
	case k.Elem != nil:
		return nested(k.Elem)
	}
	return nil
}

func heading(k *recipe.Key) string { return strings.ReplaceAll(nested(k).Path, ".N", "[]") }

func (p page) about(k *recipe.Key) string {
	text := p.d.of(k)
	if k.Loops != nil {
		text += " Only in " + loopNames(k.Loops) + "."
	}
	return text
}

func (p page) table(keys []*recipe.Key) {
	p.b.WriteString("| key | value | default | meaning |\n| --- | --- | --- | --- |\n")
	for _, k := range keys {
		fmt.Fprintf(p.b, "| `%s` | %s | %s | %s |\n", k.Name, cell(allowed(k)), cell(byLoop(k)), cell(p.meaning(k)))
	}
	p.b.WriteString("\n")
}

func (p page) meaning(k *recipe.Key) string {
	text := p.about(k)
	if k.Types != nil {
		text += " Only with type " + strings.Join(k.Types, ", ") + "."
	}
	return text
}

// cell is text that a table holds: a bar would end it, and a tag outside of code would be one.
func cell(s string) string {
	parts := strings.Split(strings.ReplaceAll(strings.TrimSpace(s), "|", `\|`), "`")
	for i := 0; i < len(parts); i += 2 {
		parts[i] = strings.ReplaceAll(parts[i], "<", "&lt;")
	}
	return strings.Join(parts, "`")
}

// allowed says what may stand at a key.
func allowed(k *recipe.Key) string {
	s := string(k.Kind)
	switch k.Kind {
	case recipe.ListOf:
		s = "list of " + allowed(k.Elem)
	case recipe.DictOf:
		s = "names with " + allowed(k.Elem)
	case recipe.Sources:
		s = "path, source, or list of them"
	case recipe.Column:
		s = "column, list of columns, or mapping"
	case recipe.Held:
		s = "share in (0, 1), or number of rows"
	case recipe.Asserts:
		s = `metric with "operator number"`
	case recipe.Params:
		s = "mapping"
	}
	if k.Names != nil && k.Kind == recipe.Text {
		s = "`" + strings.Join(k.Names, "`, `") + "`"
	} else if r := rules(k.Check); r != "" {
		s += " " + r
	}
	if k.Null {
		s += ", or null"
	}
	return s
}

// rules is a validate tag in signs.
func rules(check string) string {
	var out []string
	for _, rule := range strings.Split(check, ",") {
		name, param, _ := strings.Cut(rule, "=")
		if sign, ok := map[string]string{"gte": "≥", "gt": ">", "lte": "≤", "lt": "<", "eq": "=", "ne": "≠"}[name]; ok {
			out = append(out, sign+" "+period(param))
		}
	}
	return strings.Join(out, ", ")
}

// period says whole minutes and hours as such.
func period(s string) string {
	for _, p := range []struct{ long, short string }{{"300s", "5m"}, {"3600s", "1h"}, {"86400s", "24h"}} {
		if s == p.long {
			return p.short
		}
	}
	return s
}

// byLoop is the default, of each loop where they differ.
func byLoop(k *recipe.Key) string {
	first := k.DefaultIn(loss.Supervised)
	var parts []string
	same := true
	for _, l := range []loss.Loop{loss.Supervised, loss.Preference, loss.Reinforcement, loss.Distillation} {
		if k.In(l) {
			same = same && k.DefaultIn(l) == first
			parts = append(parts, string(l)+" `"+k.DefaultIn(l)+"`")
		}
	}
	switch {
	case !same && k.Loops != nil || !same:
		return strings.Join(parts, ", ")
	case k.Required:
		return "required"
	case first == "" || first == "{}":
		return empty(k)
	}
	return "`" + first + "`"
}

func empty(k *recipe.Key) string {
	switch {
	case strings.HasPrefix(k.Path, "eval.sampling_params."):
		return "as in rollout"
	case k.Null && k.Default == "":
		return "`null`"
	case k.Kind == recipe.ListOf || k.Kind == recipe.Sources:
		return "`[]`"
	case k.Path == "loss.reduction":
		return "`sum`; reverse_kl and forward_kl `token_mean`; grpo and preference: refused"
	case k.Kind == recipe.Mapping:
		return "see below"
	case k.Kind == recipe.DictOf || k.Kind == recipe.Asserts || k.Kind == recipe.Params:
		return "`{}`"
	}
	return "empty"
}
