package sandbox

import (
	"bytes"
	"fmt"
	"math"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"gopkg.in/yaml.v3"
)

// contract is testdata/openapi.yaml, the API as the official SDK speaks it: what may be sent, and what an answer may be.
type contract struct {
	operations []described
	refusal    *jsonschema.Schema
	seen       sync.Map // answers that were found to be right: polls are many and alike
}

// described is one operation of the document.
type described struct {
	method, path string // the path with "*" for its parameters, as the routes have it
	answer       *jsonschema.Schema
	request      *jsonschema.Schema // nil: it takes no body
	body         map[string]any     // request's text, with references; nil: it takes no body
}

// theBook is the document, read once.
var theBook = sync.OnceValues(readDocument)

func book(t testing.TB) *contract {
	t.Helper()
	d, err := theBook()
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// ownMembers are those that the sandbox adds to the document's.
var ownMembers = map[string]string{"SupportedModel": "stand_in", "ModelResources": "stand_in", "Session": "stand_in"}

// ownStatuses are those that the document's client has no class of its own for, but takes as the 4xx or 5xx that they are.
var ownStatuses = []int{http.StatusRequestEntityTooLarge, http.StatusInsufficientStorage}

// toldApart are the refusals that the document names.
var toldApart = []int{400, 401, 402, 403, 404, 408, 409, 422, 429, 500, 501, 502, 503, 504}

func readDocument() (*contract, error) {
	root, err := parseDocument()
	if err != nil {
		return nil, err
	}
	requests := jsonschema.NewCompiler()
	if err := prepare(requests, root); err != nil {
		return nil, err
	}
	strict, err := parseDocument()
	if err != nil {
		return nil, err
	}
	closeAnswers(strict)
	answers := jsonschema.NewCompiler()
	if err := prepare(answers, strict); err != nil {
		return nil, err
	}
	d := &contract{}
	if d.refusal, err = answers.Compile(documentURL + "#/components/schemas/ErrorData"); err != nil {
		return nil, err
	}
	for path, item := range root["paths"].(map[string]any) {
		for method, op := range item.(map[string]any) {
			if method == "parameters" {
				continue
			}
			at := documentURL + "#/paths/" + pointer(path) + "/" + method
			o := described{method: strings.ToUpper(method), path: starred(path)}
			if o.answer, err = answers.Compile(at + "/responses/200/content/application~1json/schema"); err != nil {
				return nil, err
			}
			if body, ok := op.(map[string]any)["requestBody"].(map[string]any); ok {
				if o.request, err = requests.Compile(at + "/requestBody/content/application~1json/schema"); err != nil {
					return nil, err
				}
				o.body = body["content"].(map[string]any)["application/json"].(map[string]any)["schema"].(map[string]any)
			}
			d.operations = append(d.operations, o)
		}
	}
	// Literal segments before parameters, so that the first match is the right one.
	slices.SortFunc(d.operations, func(a, b described) int { return strings.Compare(b.path+b.method, a.path+a.method) })
	return d, nil
}

const documentURL = "file:///openapi.json"

func parseDocument() (map[string]any, error) {
	b, err := os.ReadFile("testdata/openapi.yaml")
	if err != nil {
		return nil, err
	}
	var root map[string]any
	return root, yaml.Unmarshal(b, &root)
}

// prepare makes formats part of the contract, those of numbers too.
func prepare(c *jsonschema.Compiler, root map[string]any) error {
	c.DefaultDraft(jsonschema.Draft2020)
	c.AssertFormat()
	for name, most := range map[string]float64{"int32": math.MaxInt32, "int64": math.MaxInt64, "float": math.MaxFloat32} {
		c.RegisterFormat(&jsonschema.Format{Name: name, Validate: func(v any) error {
			if f, err := strconv.ParseFloat(fmt.Sprint(v), 64); err == nil && math.Abs(f) > most {
				return fmt.Errorf("%v is beyond %s", v, name)
			}
			return nil
		}})
	}
	return c.AddResource(documentURL, root)
}

func pointer(path string) string {
	return strings.NewReplacer("~", "~0", "/", "~1", "{", "%7B", "}", "%7D").Replace(path)
}

// starred writes "*" for the parameters of a path.
func starred(path string) string {
	segments := strings.Split(path, "/")
	for i, s := range segments {
		if strings.HasPrefix(s, "{") {
			segments[i] = "*"
		}
	}
	return strings.Join(segments, "/")
}

// closeAnswers makes the document as strict as a server can be held to: no member that it does not name, 64-bit integers as
// the strings that answers have, times in UTC.
func closeAnswers(root map[string]any) {
	schemas := root["components"].(map[string]any)["schemas"].(map[string]any)
	for schema, member := range ownMembers {
		schemas[schema].(map[string]any)["properties"].(map[string]any)[member] = map[string]any{"const": true}
	}
	schemas["Int64"] = map[string]any{"type": "string", "pattern": "^(0|-?[1-9][0-9]*)$"}
	for _, s := range schemas {
		closeObjects(s)
	}
	delete(schemas["OperationBase"].(map[string]any), "additionalProperties") // the operations close over it
	for _, item := range root["paths"].(map[string]any) {
		closeObjects(item)
	}
}

func closeObjects(v any) {
	switch v := v.(type) {
	case []any:
		for _, v := range v {
			closeObjects(v)
		}
	case map[string]any:
		for _, v := range v {
			closeObjects(v)
		}
		if v["type"] == "object" {
			if _, open := v["additionalProperties"]; !open {
				v["additionalProperties"] = false
			}
		}
		if v["format"] == "date-time" {
			v["pattern"] = "Z$"
		}
		parts, ok := v["allOf"].([]any)
		if !ok {
			return
		}
		v["unevaluatedProperties"] = false
		for _, part := range parts {
			delete(part.(map[string]any), "additionalProperties")
		}
	}
}

// find is the operation of a request; nil: the document has none.
func (d *contract) find(method, path string) *described {
	for i, o := range d.operations {
		if _, ok := match(o.path, path); ok && o.method == method {
			return &d.operations[i]
		}
	}
	return nil
}

// check says what is wrong with an answer, by the document.
func (d *contract) check(method, path string, status int, answer []byte) error {
	type told struct {
		method, path, answer string
		status               int
	}
	once := told{method, path, string(answer), status}
	if _, known := d.seen.Load(once); known {
		return nil
	}
	schema := d.refusal
	op, own := d.find(method, path), strings.HasPrefix(path, "/payloads/") || strings.HasPrefix(path, "/files/")
	switch {
	case own && status == http.StatusOK: // presigned addresses answer with bytes
		return nil
	case own && status == http.StatusMethodNotAllowed:
	case op == nil && !own:
		if status != http.StatusNotFound && status != http.StatusMethodNotAllowed {
			return fmt.Errorf("%s %s is not in the document, and was answered with %d", method, path, status)
		}
	case op != nil && status == http.StatusOK:
		schema = op.answer
	case !slices.Contains(toldApart, status) && !slices.Contains(ownStatuses, status):
		return fmt.Errorf("%s %s: the document has no status %d", method, path, status)
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(answer))
	if err == nil {
		err = schema.Validate(value)
	}
	if err != nil {
		return fmt.Errorf("%s %s: %d %.600s: %w", method, path, status, answer, err)
	}
	if len(answer) < 1<<10 {
		d.seen.Store(once, true)
	}
	return nil
}

func TestTheRoutesAreTheDocuments(t *testing.T) {
	d := book(t)
	for _, rt := range routes() {
		// The document leaves the form of presigned addresses to the server.
		if !rt.open && d.find(rt.method, strings.ReplaceAll(rt.path, "*", "x")) == nil {
			t.Errorf("%s %s is not in the document", rt.method, rt.path)
		}
	}
	for _, o := range d.operations {
		if _, _, err := find(routes(), o.method, strings.ReplaceAll(o.path, "*", "x")); err != nil {
			t.Errorf("%s %s: %v", o.method, o.path, err)
		}
	}
	if len(d.operations) != 37 {
		t.Errorf("the document has %d operations, want 37", len(d.operations))
	}
}

// The check is worth nothing when it lets everything pass.
func TestTheDocumentRefuses(t *testing.T) {
	const resource = `{"id":"x","status":"MODEL_RESOURCES_STATUS_READY","status_details":{},"base_model":"m","compute_config":{"num_generator_replicas":1},` +
		`"lora_enabled":true,"optimizer_config":{"adam":{}},"inactive_timeout":300,"created_at":"2026-11-01T00:00:00Z","updated_at":"2026-11-01T00:00:00Z","created_by":"me"}`
	const step = `{"id":"x","status":"TRAINING_OPERATION_STATUS_COMPLETED","output":{"step":"1"}}`
	const refusal = `{"error":{"type":"t","message":"m","param":null}}`
	get, poll := "/v1/rl/model-resources/x", "/v1/rl/training-sessions/x/operations/optim-step/y"
	for _, tt := range []struct {
		name, path string
		status     int
		answer     string
		right      bool
	}{
		{"a resource", get, 200, resource, true},
		{"an operation", poll, 200, step, true},
		{"an envelope", get, 404, refusal, true},
		{"a member that is missing", get, 200, strings.Replace(resource, `"id":"x",`, "", 1), false},
		{"a status that does not exist", get, 200, strings.Replace(resource, "READY", "EXPIRED", 1), false},
		{"a time without its zone", get, 200, strings.Replace(resource, "00Z", "00", 1), false},
		{"a time of another zone", get, 200, strings.Replace(resource, "00Z", "00+01:00", 1), false},
		{"a number beyond int32", get, 200, strings.Replace(resource, "300", "3000000000", 1), false},
		{"null for an absent member", get, 200, strings.Replace(resource, `"created_by"`, `"expires_at":null,"created_by"`, 1), false},
		{"a member that is not named", get, 200, strings.Replace(resource, `{"id"`, `{"extra":1,"id"`, 1), false},
		{"a member of an operation that is not named", poll, 200, strings.Replace(step, `{"id"`, `{"extra":1,"id"`, 1), false},
		{"a 64-bit integer as a number", poll, 200, strings.Replace(step, `"1"`, "1", 1), false},
		{"an output without its step", poll, 200, strings.Replace(step, `"step":"1"`, "", 1), false},
		{"an envelope without a message", get, 404, `{"error":{"type":"t"}}`, false},
		{"a refusal that is no envelope", get, 404, resource, false},
		{"an envelope as an answer", get, 200, refusal, false},
		{"a status that is not told apart", get, 418, refusal, false},
		{"a path that does not exist", "/v1/rl/nothing", 200, `{}`, false},
		{"no JSON", get, 200, `{`, false},
	} {
		if err := book(t).check("GET", tt.path, tt.status, []byte(tt.answer)); (err == nil) != tt.right {
			t.Errorf("%s: got %v", tt.name, err)
		}
	}
}
