package grader

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"trainer/internal/grader/answer"
)

// Bounds of a JSON answer.
const (
	maxJSON      = 1 << 20 // bytes
	maxJSONDepth = 128
	maxExponent  = 1000 // of a number
	maxDigits    = 10000
)

// JSONSchema pays 1 for JSON that a schema of draft 2020-12 allows, and 0 otherwise. Numbers are exact, lengths in code points.
type JSONSchema struct {
	Scope
	// Schema is the schema itself, a mapping, true or false; or the path of its file, relative to the recipe.
	Schema any `yaml:"schema" validate:"required"`
	// Extract: auto takes the whole text where it is JSON, else the last fenced block.
	Extract string `yaml:"extract" validate:"oneof=auto all fenced"`
	// AssertFormat holds strings to format: date, time, date-time, email, uuid, uri, ipv4, ipv6.
	AssertFormat bool `yaml:"assert_format" default:"false"`

	schema *jsonschema.Schema
}

func newJSONSchema() *JSONSchema {
	return &JSONSchema{Scope: newScope(AfterReasoning), Extract: answer.Auto}
}

// Check implements Checker.
func (g *JSONSchema) Check() error {
	switch s := g.Schema.(type) {
	case string:
		if strings.TrimSpace(s) == "" {
			return fault("schema", "must be a mapping, true, false, or the path of a file")
		}
	case map[string]any, bool:
	default:
		return fault("schema", "must be a mapping, true, false, or the path of a file")
	}
	return g.Scope.check()
}

// Open implements Opener; it compiles the schema.
func (g *JSONSchema) Open(dir string) error {
	data, err := g.read(dir)
	if err != nil {
		return fault("schema", "%v", err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		return fault("schema", "is not JSON: %v", err)
	}
	if err := checkSchema(doc, g.AssertFormat); err != nil {
		return fault("schema", "%v", err)
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.UseLoader(noLoader{})
	if g.AssertFormat {
		c.AssertFormat()
	}
	const name = "mem:schema"
	if err := c.AddResource(name, doc); err != nil {
		return fault("schema", "%s", oneLine(err))
	}
	if g.schema, err = c.Compile(name); err != nil {
		return fault("schema", "%s", oneLine(err))
	}
	return nil
}

func (g *JSONSchema) read(dir string) ([]byte, error) {
	path, ok := g.Schema.(string)
	if !ok {
		return json.Marshal(g.Schema)
	}
	f, err := os.Open(g.File(dir))
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, errors.Unwrap(err))
	}
	defer func() { _ = f.Close() }()
	if info, err := f.Stat(); err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is no regular file", path)
	}
	data, err := io.ReadAll(io.LimitReader(f, maxJSON+1))
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	if len(data) > maxJSON {
		return nil, fmt.Errorf("%s has more than %d bytes", path, maxJSON)
	}
	return data, nil
}

// File is the path of the schema's file, "" where it stands in the recipe.
func (g *JSONSchema) File(dir string) string {
	path, ok := g.Schema.(string)
	switch {
	case !ok:
		return ""
	case filepath.IsAbs(path):
		return path
	}
	return filepath.Join(dir, path)
}

// noLoader refuses to fetch a schema from elsewhere.
type noLoader struct{}

// Load implements jsonschema.URLLoader.
func (noLoader) Load(url string) (any, error) {
	return nil, fmt.Errorf("%s is outside of the schema; put it under $defs", url)
}

// oneLine is what the module says without its own address and line breaks.
func oneLine(err error) string {
	return strings.Join(strings.Fields(strings.ReplaceAll(err.Error(), "mem:schema", "")), " ")
}

// formats can be asserted.
var formats = []string{"date", "time", "date-time", "email", "uuid", "uri", "ipv4", "ipv6"}

const draft = "https://json-schema.org/draft/2020-12/schema"

// checkSchema refuses what would be read otherwise than it was meant: another draft, a format that nobody asserts.
func checkSchema(doc any, assertFormat bool) error {
	m, ok := doc.(map[string]any)
	if !ok {
		if _, isBool := doc.(bool); !isBool {
			return errors.New("is neither a mapping nor true or false")
		}
		return nil
	}
	if s, ok := m["$schema"]; ok && strings.TrimSuffix(fmt.Sprint(s), "#") != draft {
		return fmt.Errorf("$schema %v is another draft; only %s is read", s, draft)
	}
	if f, ok := m["format"].(string); ok && assertFormat && !slices.Contains(formats, f) {
		return fmt.Errorf("format %q can't be asserted; %s can", f, strings.Join(formats, ", "))
	}
	for key, v := range m {
		if err := checkBelow(key, v, assertFormat); err != nil {
			return err
		}
	}
	return nil
}

// checkBelow goes into the schemas that stand at a keyword.
func checkBelow(key string, v any, assertFormat bool) error {
	var below []any
	switch key {
	case "properties", "patternProperties", "$defs", "definitions", "dependentSchemas":
		if m, ok := v.(map[string]any); ok {
			for _, s := range m {
				below = append(below, s)
			}
		}
	case "allOf", "anyOf", "oneOf", "prefixItems":
		below, _ = v.([]any)
	case "items", "contains", "not", "if", "then", "else", "additionalProperties", "propertyNames", "unevaluatedItems", "unevaluatedProperties":
		below = []any{v}
	}
	for _, s := range below {
		if _, isMap := s.(map[string]any); !isMap {
			continue // what is no schema at all the compiler names
		}
		if err := checkSchema(s, assertFormat); err != nil {
			return err
		}
	}
	return nil
}

// Grade implements Grader, after Open.
func (g *JSONSchema) Grade(_ context.Context, c Completion) (Score, error) {
	if g.schema == nil {
		return Score{}, errors.New("the schema was never opened")
	}
	text, open := g.of(c)
	if open {
		return zero(OpenReasoning), nil
	}
	var candidates []string
	if g.Extract != answer.Fenced {
		candidates = append(candidates, text)
	}
	if g.Extract != answer.All {
		if block, ok := answer.Find(text, answer.Fenced, answer.Marker); ok {
			candidates = append(candidates, block)
		}
	}
	why := NoAnswer
	for _, s := range candidates {
		s = strings.Trim(s, " \t\r\n")
		if len(s) > maxJSON {
			why = TooLong
			continue
		}
		v, err := strictJSON(s)
		if err != nil {
			why = cmp.Or(map[bool]string{true: Empty}[s == ""], Unparsed)
			continue
		}
		return verdict(g.schema.Validate(v) == nil), nil
	}
	return zero(why), nil
}

var errNotStrict = errors.New("not strict JSON")

var exponent = regexp.MustCompile(`[eE]([-+]?)0*([0-9]*)$`)

// strictJSON reads one value of RFC 8259 and nothing after it: no key twice, no depth or exponent that costs more than it says.
func strictJSON(s string) (any, error) {
	d := json.NewDecoder(strings.NewReader(s))
	d.UseNumber()
	if err := scanJSON(d, 0); err != nil {
		return nil, err
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, errNotStrict
	}
	return jsonschema.UnmarshalJSON(strings.NewReader(s))
}

func scanJSON(d *json.Decoder, depth int) error {
	t, err := d.Token()
	if err != nil || depth > maxJSONDepth {
		return errNotStrict
	}
	switch x := t.(type) {
	case json.Number:
		if len(x) > maxDigits {
			return errNotStrict
		}
		if m := exponent.FindStringSubmatch(string(x)); m != nil && (len(m[2]) > 4 || len(m[2]) == 4 && m[2] > fmt.Sprint(maxExponent)) {
			return errNotStrict
		}
	case json.Delim:
		seen := map[string]bool{}
		for d.More() {
			if x == '{' {
				key, err := d.Token()
				name, ok := key.(string)
				if err != nil || !ok || seen[name] {
					return errNotStrict
				}
				seen[name] = true
			}
			if err := scanJSON(d, depth+1); err != nil {
				return err
			}
		}
		if _, err := d.Token(); err != nil {
			return errNotStrict
		}
	}
	return nil
}
