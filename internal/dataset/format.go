package dataset

import (
	"maps"
	"slices"

	"trainer/internal/chat"
	"trainer/loss"
)

// format is a dialect of rows.
type format struct {
	name     string
	required []string // our fields that every row has
	optional []string
	// encode renders a row, whose columns are in s; nil where the format is refused.
	encode func(s *source, row value, t *chat.Template) (chat.Example, *fault)
	// bare: rows need no template.
	bare bool
	// loops are those that the rows are of; nil is supervised.
	loops []loss.Loop
	// joins: columns that a row of another dialect has instead of ours, and which make up ours.
	joins map[string][]string
}

// of tells whether a loop trains on such rows; "" is supervised.
func (f format) of(loop loss.Loop) bool {
	if loop == "" {
		loop = loss.Supervised
	}
	if f.loops == nil {
		return loop == loss.Supervised
	}
	return slices.Contains(f.loops, loop)
}

// untrained: a row is what completions are sampled for.
func (f format) untrained() bool { return f.of(loss.Reinforcement) }

func (f format) fields() []string { return slices.Concat(f.required, f.optional) }

// mappable are the fields that the recipe's fields may map columns to.
func (f format) mappable() []string {
	if f.joins != nil {
		return slices.Sorted(maps.Keys(f.joins))
	}
	return f.fields()
}

// formats is the table. Under auto the first whose required fields the first row has is taken; what is listed without
// encode is recognised, so as to be refused by name.
func formats() []format {
	return []format{
		{name: "tokens", required: []string{"tokens"}, optional: []string{"weights"}, encode: encodeTokens, bare: true},
		{name: "preference", required: []string{"chosen", "rejected"}, optional: []string{"prompt"}},
		{name: "messages", required: []string{"messages"}, encode: encodeMessages},
		{name: "prompt_completion", required: []string{"prompt", "completion"}, encode: encodePromptCompletion},
		{name: "prompt_completion", required: []string{"instruction", "output"}, encode: encodePromptCompletion,
			joins: map[string][]string{"prompt": {"instruction", "input"}, "completion": {"output"}}},
		{name: "text", required: []string{"text"}, encode: encodeText},
		{name: "labelled", required: []string{"completion", "label"}, optional: []string{"prompt"}},
		{name: "prompts", required: []string{"prompt"}, optional: []string{"target"}, encode: encodePrompt,
			loops: []loss.Loop{loss.Reinforcement, loss.Distillation}},
	}
}

// named is the format that the recipe names.
func named(name string) (format, bool) {
	all := formats()
	i := slices.IndexFunc(all, func(f format) bool { return f.name == name })
	if i < 0 {
		return format{}, false
	}
	return all[i], true
}

// recognise finds the format of a row by its columns; has tells whether a field of ours is there. What the recipe maps
// says what it means, whatever else the rows hold: a format that knows all mapped fields goes before one that does not, and
// one of the loop before both.
func recognise(has func(field string) bool, mapped []string, loop loss.Loop) (format, bool) {
	lacks := func(field string) bool { return !has(field) }
	fits := func(f format) bool { return !slices.ContainsFunc(f.required, lacks) }
	knows := func(f format) bool {
		return !slices.ContainsFunc(mapped, func(field string) bool { return !slices.Contains(f.mappable(), field) })
	}
	all := formats()
	i := -1
	if loop != "" && loop != loss.Supervised {
		i = slices.IndexFunc(all, func(f format) bool { return fits(f) && f.of(loop) })
	}
	if i < 0 {
		i = slices.IndexFunc(all, func(f format) bool { return fits(f) && knows(f) })
	}
	if i < 0 {
		i = slices.IndexFunc(all, fits)
	}
	if i < 0 {
		return format{}, false
	}
	return all[i], true
}
