package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"trainer/loss"
	"trainer/recipe"
)

// schema is the JSON Schema of a recipe, indented, with a final newline.
func schema(d docs) []byte {
	root := recipe.Keys()
	s := object{
		{"$schema", "https://json-schema.org/draft/2020-12/schema"},
		{"title", "trainer recipe"},
		{"description", "One post-training experiment. base_model, dataset.train and loss.type are required, of the file or of its parents; the loss type decides the loop."},
	}
	s = append(s, mapping(d, root)...)
	// Parents can supply what a file lacks, so a file that names any is not asked for it.
	s.add("if", object{{"not", object{{"required", []string{"extends"}}}}})
	s.add("then", object{
		{"required", []string{"base_model", "dataset", "loss"}},
		{"properties", object{
			{"dataset", object{{"required", []string{"train"}}}},
			{"loss", object{{"required", []string{"type"}}}},
		}},
	})
	data, err := marshal(s)
	if err != nil {
		panic(fmt.Sprintf("a schema of plain values: %v", err))
	}
	var b bytes.Buffer
	if err := json.Indent(&b, data, "", "  "); err != nil {
		panic(fmt.Sprintf("our own JSON: %v", err))
	}
	b.WriteByte('\n')
	return b.Bytes()
}

// mapping is the schema of fixed keys, and of those that a type adds.
func mapping(d docs, k *recipe.Key) object {
	props, needs := object{}, object{}
	var required []string
	keys := slices.Clone(k.Keys)
	if k.Kind != recipe.Params {
		for _, v := range k.Variants {
			keys = append(keys, v.Keys...)
		}
	}
	for _, c := range keys {
		props.add(c.Name, value(d, c))
		if c.Required && strings.Contains(c.Path, ".N.") {
			required = append(required, c.Name)
		}
		if types := typesOf(k, c); types != nil {
			needs.add(c.Name, typeIs(k, types))
		} else if c.Kind == recipe.Params {
			needs.add(c.Name, params(d, c))
		}
	}
	s := object{{"type", "object"}, {"additionalProperties", false}, {"properties", props}}
	if required != nil {
		s.add("required", required)
	}
	if len(needs) > 0 {
		s.add("dependentSchemas", needs)
	}
	return s
}

// typesOf are the values of the sibling type that have the key; nil: all.
func typesOf(k, c *recipe.Key) []string {
	if c.Types != nil {
		return c.Types
	}
	var types []string
	for _, v := range k.Variants {
		if slices.Contains(v.Keys, c) {
			types = append(types, v.Name)
		}
	}
	return types
}

func typeIs(k *recipe.Key, types []string) object {
	s := object{{"properties", object{{"type", object{{"enum", types}}}}}}
	i := slices.IndexFunc(k.Keys, func(c *recipe.Key) bool { return c.Name == "type" })
	if !slices.Contains(types, k.Keys[i].DefaultIn(loss.Supervised)) {
		s.add("required", []string{"type"})
	}
	return s
}

// value is the schema of what may stand at a key, with its description and default.
func value(d docs, k *recipe.Key) object {
	s := kind(d, k)
	if k.Null {
		s = orNull(s)
	}
	if text := description(d, k); text != "" {
		s = append(object{{"description", text}}, s...)
	}
	if def, ok := literal(k); ok {
		s.add("default", def)
	}
	return s
}

func description(d docs, k *recipe.Key) string {
	text := d.of(k)
	if k.Loops != nil {
		text += " Only in " + loopNames(k.Loops) + "."
	}
	if k.Required {
		text += " Required."
	}
	return strings.TrimSpace(text)
}

func loopNames(ls []loss.Loop) string {
	names := make([]string, len(ls))
	for i, l := range ls {
		names[i] = string(l)
	}
	last := len(names) - 1
	return strings.TrimPrefix(strings.Join(names[:last], ", ")+" and ", " and ") + names[last]
}

// literal is the default as JSON: that of the supervised loop where loops differ.
func literal(k *recipe.Key) (any, bool) {
	text := k.DefaultIn(loss.Supervised)
	switch {
	case text == "":
		return nil, k.Null
	case text == "{}":
		return object{}, true
	case k.Kind == recipe.Integer:
		v, err := strconv.ParseInt(text, 10, 64)
		return v, err == nil
	case k.Kind == recipe.Number:
		v, err := strconv.ParseFloat(text, 64)
		return v, err == nil
	case k.Kind == recipe.Boolean:
		return text == "true", true
	case k.Kind == recipe.ListOf:
		var v []json.Number
		err := json.Unmarshal([]byte(text), &v)
		return v, err == nil
	case strings.HasPrefix(text, `"`):
		var v string
		err := json.Unmarshal([]byte(text), &v)
		return v, err == nil
	}
	return text, true
}

const (
	durationForm = `^([0-9]+h([0-9]+m)?([0-9]+s)?|[0-9]+m([0-9]+s)?|[0-9]+s)$`
	assertForm   = `^\s*(<=|>=|==|!=|<|>)\s*\S+\s*$`
)

func kind(d docs, k *recipe.Key) object {
	text := object{{"type", []string{"string", "number", "boolean"}}} // a plain word of any form is text where text is due
	switch k.Kind {
	case recipe.Text:
		if k.Names != nil {
			return object{{"enum", k.Names}}
		}
		return bounded(text, k)
	case recipe.Integer:
		return bounded(object{{"type", "integer"}}, k)
	case recipe.Number:
		return bounded(object{{"type", "number"}}, k)
	case recipe.Boolean:
		return object{{"type", "boolean"}}
	case recipe.Duration:
		return object{{"type", "string"}, {"pattern", durationForm}}
	case recipe.ListOf:
		return bounded(object{{"type", "array"}, {"items", value(d, k.Elem)}}, k)
	case recipe.Mapping:
		return mapping(d, k)
	case recipe.DictOf:
		return object{{"type", "object"}, {"additionalProperties", value(d, k.Elem)}}
	case recipe.Sources:
		one := object{{"anyOf", []object{text, value(d, k.Elem)}}}
		many := object{{"type", "array"}, {"items", one}}
		return object{{"anyOf", []object{text, value(d, k.Elem), many}}}
	case recipe.Column:
		names := object{{"type", "array"}, {"items", text}, {"minItems", 1}}
		m := object{{"type", "object"}, {"additionalProperties", false}, {"required", []string{"column"}}, {"properties", object{
			{"column", object{{"anyOf", []object{text, names}}}}, {"regex", text},
		}}}
		return object{{"anyOf", []object{text, names, m}}}
	case recipe.Held:
		return object{{"anyOf", []object{
			{{"type", "number"}, {"exclusiveMinimum", 0}, {"exclusiveMaximum", 1}}, {{"type", "integer"}, {"minimum", 1}},
		}}}
	case recipe.Auto:
		return object{{"anyOf", []object{{{"const", "auto"}}, bounded(object{{"type", "integer"}}, k)}}}
	case recipe.Asserts:
		return object{{"type", "object"}, {"additionalProperties", object{{"type", "string"}, {"pattern", assertForm}}}}
	case recipe.Params: // which keys it has is said beside the type
		return object{{"type", "object"}}
	}
	return object{}
}

// params is one of the types of the mapping above, with the parameters that it has.
func params(d docs, k *recipe.Key) object {
	types := make([]object, len(k.Variants))
	for i, v := range k.Variants {
		types[i] = object{{"properties", object{
			{"type", object{{"const", v.Name}}},
			{k.Name, mapping(d, &recipe.Key{Keys: v.Keys})},
		}}}
	}
	return object{{"anyOf", types}}
}

// bounded adds the rules of the key's validate tag.
func bounded(s object, k *recipe.Key) object {
	for _, rule := range strings.Split(k.Check, ",") {
		name, param, _ := strings.Cut(rule, "=")
		number := json.Number(param)
		switch name {
		case "gte":
			s.add("minimum", number)
		case "gt":
			s.add("exclusiveMinimum", number)
		case "lte":
			s.add("maximum", number)
		case "lt":
			s.add("exclusiveMaximum", number)
		case "eq":
			s.add("const", number)
		case "ne":
			s.add("not", object{{"const", number}})
		case "min":
			s.add("minItems", number)
		case "hexadecimal":
			s.add("pattern", "^[0-9A-Fa-f]{64}$")
		}
	}
	return s
}

func orNull(s object) object {
	for i, m := range s {
		if m.name == "type" {
			if one, ok := m.value.(string); ok {
				s[i].value = []string{one, "null"}
			} else {
				s[i].value = append(slices.Clone(m.value.([]string)), "null")
			}
			return s
		}
	}
	return object{{"anyOf", []object{s, {{"type", "null"}}}}}
}
