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
	// sides renders, in place of encode, a row that is compared: a pair, or one that is labelled.
	sides func(s *source, row value, t *chat.Template) (rendered, *fault)
	// bare: rows need no template.
	bare bool
	// untrained: a row is what completions are sampled for.
	untrained bool
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
	if f.joins == nil {
		return f.fields()
	}
	known := slices.Sorted(maps.Keys(f.joins))
	for _, field := range f.required {
		joined := slices.ContainsFunc(slices.Collect(maps.Values(f.joins)), func(paths []string) bool { return slices.Contains(paths, field) })
		if !joined {
			known = append(known, field)
		}
	}
	return append(known, f.optional...)
}

// formats is the table. Under auto the first of those that the loss takes whose required fields the first row has is
// taken; others are recognised, so as to be refused by name.
func formats() []format {
	return []format{
		{name: "tokens", required: []string{"tokens"}, optional: []string{"weights", "prompt_tokens", "teacher_topk", "teacher_logprobs", "logprobs"}, encode: one(encodeTokens), bare: true},
		{name: "preference", required: []string{"conversations", "chosen", "rejected"}, optional: append(beside(), "system"), sides: encodePreference,
			joins: map[string][]string{"prompt": {"conversations"}}},
		{name: "preference", required: []string{"instruction", "chosen", "rejected"}, optional: append(beside(), "system"), sides: encodePreference,
			joins: map[string][]string{"prompt": {"instruction", "input"}}},
		{name: "preference", required: []string{"chosen", "rejected"}, optional: append(beside(), "prompt", "system"), sides: encodePreference},
		{name: "messages", required: []string{"messages"}, optional: append(beside(), "system"), encode: encodeMessages},
		{name: "prompt_completion", required: []string{"prompt", "completion"}, optional: beside(), encode: encodePromptCompletion},
		{name: "prompt_completion", required: []string{"instruction", "output"}, encode: encodePromptCompletion,
			joins: map[string][]string{"prompt": {"instruction", "input"}, "completion": {"output"}}},
		{name: "text", required: []string{"text"}, encode: one(encodeText)},
		{name: "labelled", required: []string{"prompt", "completion", "label"}, optional: append(beside(), "system"), sides: encodeLabelled},
		{name: "labelled", required: []string{"instruction", "output", "label"}, optional: append(beside(), "system"), sides: encodeLabelled,
			joins: map[string][]string{"prompt": {"instruction", "input"}, "completion": {"output"}}},
		{name: "labelled", required: []string{"messages", "label"}, optional: append(beside(), "system"), sides: encodeLabelledMessages},
		{name: "labelled", required: []string{"conversations", "label"}, optional: append(beside(), "system"), sides: encodeLabelledMessages,
			joins: map[string][]string{"messages": {"conversations"}}},
		{name: "prompts", required: []string{"prompt"}, optional: append(beside(), "target", "teacher_prompt"), encode: one(encodePrompt), untrained: true},
	}
}

// compared are the formats that a loss of preferences takes: of these a name has several shapes.
func (f format) compared() bool { return f.sides != nil }

// named is the format that the recipe names. Where a name of rows that are compared has several shapes, it is the one that
// the row has.
func named(name string, has func(field string) bool) (format, bool) {
	all := formats()
	lacks := func(field string) bool { return !has(field) }
	i := slices.IndexFunc(all, func(f format) bool {
		return f.name == name && f.compared() && !slices.ContainsFunc(f.required, lacks)
	})
	if i < 0 {
		i = slices.IndexFunc(all, func(f format) bool { return f.name == name && f.joins == nil })
	}
	if i < 0 {
		return format{}, false
	}
	return all[i], true
}

// noColumn is of a format that is named whatever the row has.
func noColumn(string) bool { return false }

// recognise finds the format of a row by its columns; has tells whether a field of ours is there, takes whether the loss
// trains on a format. What the recipe maps says what it means, whatever else the rows hold: a format that knows all mapped
// fields goes before one that does not.
func recognise(has func(field string) bool, mapped []string, takes func(format) bool) (format, bool) {
	lacks := func(field string) bool { return !has(field) }
	fits := func(f format) bool { return !slices.ContainsFunc(f.required, lacks) }
	knows := func(f format) bool {
		return !slices.ContainsFunc(mapped, func(field string) bool { return !slices.Contains(f.mappable(), field) })
	}
	all := formats()
	for _, fit := range []func(format) bool{
		func(f format) bool { return takes(f) && f.compared() && fits(f) && knows(f) },
		func(f format) bool { return takes(f) && (f.compared() || f.untrained) && fits(f) },
		func(f format) bool { return fits(f) && knows(f) },
		fits,
	} {
		if i := slices.IndexFunc(all, fit); i >= 0 {
			return all[i], true
		}
	}
	return format{}, false
}
