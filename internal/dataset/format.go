package dataset

import (
	"maps"
	"slices"

	"trainer/internal/chat"
)

// format is a dialect of rows.
type format struct {
	name     string
	required []string // our fields that every row has
	optional []string
	// encode renders a row, whose columns are in s, as one or more examples; nil where the format is refused.
	encode func(s *source, row value, t *chat.Template) ([]chat.Example, *fault)
	// bare: rows need no template.
	bare bool
	// joins: columns that a row of another dialect has instead of ours, and which make up ours.
	joins map[string][]string
}

// one is the encode of rows that are one example each.
func one(encode func(s *source, row value, t *chat.Template) (chat.Example, *fault)) func(*source, value, *chat.Template) ([]chat.Example, *fault) {
	return func(s *source, row value, t *chat.Template) ([]chat.Example, *fault) {
		ex, f := encode(s, row, t)
		if f != nil {
			return nil, f
		}
		return []chat.Example{ex}, nil
	}
}

// beside are the fields that stand beside messages, for templates that write them.
func beside() []string { return []string{"tools", "documents"} }

func (f format) fields() []string { return slices.Concat(f.required, f.optional) }

// columns are those of a row whose names are ours.
func (f format) columns() map[string]*column {
	all := map[string]*column{}
	for _, field := range f.fields() {
		all[field] = newColumn(field)
	}
	return all
}

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
		{name: "tokens", required: []string{"tokens"}, optional: []string{"weights"}, encode: one(encodeTokens), bare: true},
		{name: "preference", required: []string{"chosen", "rejected"}, optional: []string{"prompt"}},
		{name: "messages", required: []string{"messages"}, optional: append(beside(), "system"), encode: encodeMessages},
		{name: "prompt_completion", required: []string{"prompt", "completion"}, optional: beside(), encode: encodePromptCompletion},
		{name: "prompt_completion", required: []string{"instruction", "output"}, encode: encodePromptCompletion,
			joins: map[string][]string{"prompt": {"instruction", "input"}, "completion": {"output"}}},
		{name: "text", required: []string{"text"}, encode: one(encodeText)},
		{name: "labelled", required: []string{"completion", "label"}, optional: []string{"prompt"}},
		{name: "prompts", required: []string{"prompt"}, optional: []string{"target"}},
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
// says what it means, whatever else the rows hold: a format that knows all mapped fields goes before one that does not.
func recognise(has func(field string) bool, mapped []string) (format, bool) {
	lacks := func(field string) bool { return !has(field) }
	fits := func(f format) bool { return !slices.ContainsFunc(f.required, lacks) }
	knows := func(f format) bool {
		return !slices.ContainsFunc(mapped, func(field string) bool { return !slices.Contains(f.mappable(), field) })
	}
	all := formats()
	i := slices.IndexFunc(all, func(f format) bool { return fits(f) && knows(f) })
	if i < 0 {
		i = slices.IndexFunc(all, fits)
	}
	if i < 0 {
		return format{}, false
	}
	return all[i], true
}
