package main

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"

	"trainer/recipe"
)

// TestSchemaAcceptsWhatLoads: the recipes that the recipe package tests with, and all that are shipped. Merge keys are
// YAML's alone; a schema sees them as a key.
func TestSchemaAcceptsWhatLoads(t *testing.T) {
	var files []string
	for _, pattern := range []string{"../../recipe/testdata/valid/*.yaml", "../../recipe/testdata/full/*.yaml", "../../recipes/*.yaml", "../../recipes/*/*.yaml"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	if len(files) < 15 {
		t.Fatalf("only %d recipes", len(files))
	}
	for _, file := range files {
		if filepath.Base(file) == "anchors.yaml" {
			continue
		}
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if faults := check(t, string(data)); len(faults) > 0 {
			t.Errorf("%s: %s", file, strings.Join(faults, "; "))
		}
	}
}

func TestSchemaRefuses(t *testing.T) {
	base := "base_model: m\ndataset: {train: a}\nloss: {type: cross_entropy}\n"
	for name, text := range map[string]string{
		"an unknown key":                      base + "seeed: 1\n",
		"an unknown key in a section":         base + "optimizer: {lr: 1}\n",
		"an unknown key in a list":            "base_model: m\ndataset: {train: [{path: a, splt: b}]}\nloss: {type: cross_entropy}\n",
		"a recipe without a loss":             "base_model: m\ndataset: {train: a}\n",
		"a dataset without rows":              "base_model: m\ndataset: {shuffle: true}\nloss: {type: cross_entropy}\n",
		"a source without a path":             "base_model: m\ndataset: {train: {limit: 3}}\nloss: {type: cross_entropy}\n",
		"a value below its bound":             base + "train: {batch_size: 0}\n",
		"a value at an open bound":            base + "optimizer: {beta1: 1}\n",
		"a fraction for an integer":           base + "seed: 1.5\n",
		"text for a number":                   base + "optimizer: {learning_rate: fast}\n",
		"a word that is not one of the names": base + "keep_resources: sometimes\n",
		"null where none may stand":           base + "seed: null\n",
		"a duration without a unit":           base + "inactive_timeout: 15\n",
		"an empty duration":                   base + "inactive_timeout: ''\n",
		"a key of the other optimizer":        base + "optimizer: {momentum: 0.5}\n",
		"a key of another schedule":           base + "lr_schedule: {type: cosine, power: 2}\n",
		"an expectation without an operator":  base + "test: {expect: {train/loss: '5'}}\n",
		"a parameter of another loss":         "base_model: m\ndataset: {train: a}\nloss: {type: ppo, params: {beta: 0.1}}\n",
		"a parameter out of bounds":           "base_model: m\ndataset: {train: a}\nloss: {type: grpo, params: {clip_high_threshold: 0.28}}\n",
		"a parameter of no loss":              "extends: [a.yaml]\nloss: {params: {betta: 0.1}}\n",
		"a share of more than all":            "base_model: m\ndataset: {train: a, validation_split: 1.5}\nloss: {type: cross_entropy}\n",
	} {
		if faults := check(t, text); len(faults) == 0 {
			t.Errorf("%s passes", name)
		}
	}
	for name, text := range map[string]string{
		"a child without what its parent gives": "extends: [a.yaml]\nseed: 1\n",
		"parameters of the named loss":          "base_model: m\ndataset: {train: a}\nloss: {type: grpo, params: {beta: 0.1, agg_type: sequence_mean}}\n",
		"a parameter without its type":          "extends: [a.yaml]\nloss: {params: {beta: 0.1}}\n",
		"a key of the named optimizer":          base + "optimizer: {type: muon, momentum: 0.5}\n",
		"a key of the default optimizer":        base + "optimizer: {beta1: 0.5}\n",
	} {
		if faults := check(t, text); len(faults) > 0 {
			t.Errorf("%s: %v", name, faults)
		}
	}
}

func check(t *testing.T, text string) []string {
	t.Helper()
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte(text), &doc); err != nil {
		t.Fatal(err)
	}
	var s any
	if err := json.Unmarshal(recipe.Schema(), &s); err != nil {
		t.Fatal(err)
	}
	return validate(s, core(t, doc.Content[0]), "")
}

// core is a YAML value by the core schema, as an editor sees it: a date is text.
func core(t *testing.T, n *yaml.Node) any {
	switch n.Kind {
	case yaml.AliasNode:
		return core(t, n.Alias)
	case yaml.MappingNode:
		m := map[string]any{}
		for i := 0; i < len(n.Content); i += 2 {
			m[n.Content[i].Value] = core(t, n.Content[i+1])
		}
		return m
	case yaml.SequenceNode:
		list := []any{}
		for _, c := range n.Content {
			list = append(list, core(t, c))
		}
		return list
	}
	switch n.Tag {
	case "!!null":
		return nil
	case "!!bool":
		return n.Value == "true"
	case "!!int", "!!float":
		v, err := strconv.ParseFloat(n.Value, 64)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	return n.Value
}

// validate holds v to the part of JSON Schema that the generator uses; any other keyword is a fault of its own.
func validate(schema, v any, at string) (faults []string) {
	s, ok := schema.(map[string]any)
	if !ok {
		if schema == false {
			return []string{at + " may not be there"}
		}
		return nil
	}
	fault := func(format string, a ...any) { faults = append(faults, at+": "+fmt.Sprintf(format, a...)) }
	number, isNumber := v.(float64)
	object, isObject := v.(map[string]any)
	list, isList := v.([]any)
	for word, arg := range s {
		switch word {
		case "$schema", "title", "description", "default", "then", "additionalProperties":
		case "type":
			if !slices.ContainsFunc(anyList(arg), func(name any) bool { return isType(name.(string), v) }) {
				fault("%v is not of type %v", v, arg)
			}
		case "enum":
			if !slices.Contains(anyList(arg), v) {
				fault("%v is not one of %v", v, arg)
			}
		case "const":
			if !reflect.DeepEqual(arg, v) {
				fault("%v is not %v", v, arg)
			}
		case "pattern":
			if text, ok := v.(string); ok && !regexp.MustCompile(arg.(string)).MatchString(text) {
				fault("%q does not match %v", text, arg)
			}
		case "minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum":
			if isNumber && !within(word, number, arg.(float64)) {
				fault("%v breaks %s %v", number, word, arg)
			}
		case "minItems":
			if isList && float64(len(list)) < arg.(float64) {
				fault("too few entries")
			}
		case "items":
			for i, item := range list {
				faults = append(faults, validate(arg, item, fmt.Sprintf("%s.%d", at, i))...)
			}
		case "required":
			for _, name := range arg.([]any) {
				if _, ok := object[name.(string)]; isObject && !ok {
					fault("%v is missing", name)
				}
			}
		case "properties":
			for name, sub := range arg.(map[string]any) {
				if value, ok := object[name]; ok {
					faults = append(faults, validate(sub, value, at+"."+name)...)
				}
			}
		case "dependentSchemas":
			for name, sub := range arg.(map[string]any) {
				if _, ok := object[name]; ok {
					faults = append(faults, validate(sub, v, at)...)
				}
			}
		case "anyOf":
			if !slices.ContainsFunc(arg.([]any), func(sub any) bool { return len(validate(sub, v, at)) == 0 }) {
				fault("%v is none of what may stand there", v)
			}
		case "not":
			if len(validate(arg, v, at)) == 0 {
				fault("%v may not stand there", v)
			}
		case "if":
			if len(validate(arg, v, at)) == 0 {
				faults = append(faults, validate(s["then"], v, at)...)
			}
		default:
			fault("the test does not know the keyword %s", word)
		}
	}
	known, _ := s["properties"].(map[string]any)
	for name, value := range object {
		if _, ok := known[name]; !ok && s["additionalProperties"] != nil {
			faults = append(faults, validate(s["additionalProperties"], value, at+"."+name)...)
		}
	}
	return faults
}

func anyList(v any) []any {
	if list, ok := v.([]any); ok {
		return list
	}
	return []any{v}
}

func isType(name string, v any) bool {
	switch v := v.(type) {
	case nil:
		return name == "null"
	case bool:
		return name == "boolean"
	case string:
		return name == "string"
	case float64:
		return name == "number" || name == "integer" && v == math.Trunc(v)
	case []any:
		return name == "array"
	}
	return name == "object"
}

func within(word string, v, bound float64) bool {
	switch word {
	case "minimum":
		return v >= bound
	case "exclusiveMinimum":
		return v > bound
	case "maximum":
		return v <= bound
	}
	return v < bound
}
