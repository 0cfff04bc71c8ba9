package sandbox

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"trainer/internal/wire"
)

// parameter is one of a query's, by the document.
type parameter struct {
	name     string
	required bool
	schema   *jsonschema.Schema
	kind     string // its type; of an array, that of a list's entries does not matter
}

// queries are the parameters of an operation's query; c has the document, root.
func queries(c *jsonschema.Compiler, root map[string]any, o described) (all []parameter) {
	for path, item := range root["paths"].(map[string]any) {
		op, ok := item.(map[string]any)[strings.ToLower(o.method)].(map[string]any)
		list, _ := op["parameters"].([]any)
		if !ok || starred(path) != o.path {
			continue
		}
		for i, p := range list {
			at, p := fmt.Sprintf("/paths/%s/%s/parameters/%d", pointer(path), strings.ToLower(o.method), i), p.(map[string]any)
			if ref, ok := p["$ref"].(string); ok {
				at = strings.TrimPrefix(ref, "#")
				p = root["components"].(map[string]any)["parameters"].(map[string]any)[ref[strings.LastIndex(ref, "/")+1:]].(map[string]any)
			}
			if p["in"] != "query" {
				continue
			}
			kind, _ := p["schema"].(map[string]any)["type"].(string)
			all = append(all, parameter{p["name"].(string), p["required"] == true, c.MustCompile(documentURL + "#" + at + "/schema"), kind})
		}
	}
	return all
}

// lawful: the text says something that the document lets be said. Empty is as good as left out.
func (p parameter) lawful(text string) bool {
	var v any = text
	switch p.kind {
	case "integer":
		n, err := strconv.ParseInt(text, 10, 64)
		if v = n; err != nil {
			return false
		}
	case "boolean":
		b, err := strconv.ParseBool(text)
		if v = b; err != nil || text != "true" && text != "false" {
			return false
		}
	case "array":
		var list []any
		for part := range strings.SplitSeq(text, ",") {
			list = append(list, part)
		}
		v = list
	}
	return p.schema.Validate(v) == nil
}

func TestAnyWrongParameterOfAQueryIsRefusedByName(t *testing.T) {
	root, err := parseDocument()
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	if err := prepare(compiler, root); err != nil {
		t.Fatal(err)
	}
	asked := 0
	for _, o := range book(t).operations {
		for _, p := range queries(compiler, root, o) {
			_, c := open(t, Options{})
			id := ""
			if strings.HasPrefix(o.path, wire.PathCheckpoints+"/") {
				var saved wire.InferenceCheckpointOutput
				c.run(c.tiny(), wire.KindInferenceCheckpoint, "", &saved)
				id = saved.Checkpoint.ID
			}
			path := func() string {
				if strings.HasPrefix(o.path, wire.PathResources+"/") { // each stop has its own
					id = c.resource(`{"base_model":"sandbox/bytes-tiny"}`).ID
				}
				return strings.Replace(o.path, "*", id, 1)
			}
			for _, text := range []string{"", "text", "-1", "0", "1", "101", "1.5", "1e2", " 1", "2147483648", "99999999999999999999", "NaN", "true", "TRUE", ",", "\x00", "a,b", strings.Repeat("x", 5000),
				"MODEL_RESOURCES_STATUS_READY,TRAINING_SESSION_STATUS_RUNNING", "MODEL_RESOURCES_STATUS_READY,MODEL_RESOURCES_STATUS_NONE", "CHECKPOINT_TYPE_TRAINING", "CHECKPOINT_VARIANT_ADAPTER", "checkpoint_variant_merged"} {
				asked++
				status, answer := c.do(o.method, path()+"?"+url.Values{p.name: {text}}.Encode(), nil)
				var e wire.ErrorBody
				switch {
				case status == http.StatusOK:
					if !p.lawful(text) && (text != "" || p.required) {
						t.Errorf("%s %s: %s=%.40q was taken", o.method, o.path, p.name, text)
					}
				case status < 400 || status > 499 || json.Unmarshal(answer, &e) != nil || e.Error.Param == nil || *e.Error.Param != p.name || !strings.Contains(e.Error.Message, p.name):
					t.Errorf("%s %s: %s=%.40q: got %d %s, want its name", o.method, o.path, p.name, text, status, answer)
				case p.lawful(text) && !slices.Contains([]string{"after", "variant"}, p.name):
					t.Errorf("%s %s: %s=%.40q was refused: %s", o.method, o.path, p.name, text, answer)
				}
			}
			if status, answer := c.do(o.method, path(), nil); p.required && status != http.StatusBadRequest {
				t.Errorf("%s %s without %s: got %d %s", o.method, o.path, p.name, status, answer)
			}
		}
	}
	if asked < 300 {
		t.Errorf("%d queries were sent, want all parameters' ", asked)
	}
}

// What is no body at all is refused by every operation that takes one, and by those that take none when it is no JSON.
func TestAnyBodyThatIsNoneIsRefused(t *testing.T) {
	w := newWorkshop(t)
	for _, o := range book(t).operations {
		if rt, _, err := find(routes(), o.method, strings.ReplaceAll(o.path, "*", "x")); err != nil || rt.serve == nil || o.request == nil {
			continue
		}
		for i, body := range []string{
			"", " ", "null", "[]", "1", `"text"`, "true", "NaN", "{", "{}x", "{}{}", `{"a":1,}`, `{'a':1}`, `{"a"}`, `{a:1}`, "\ufeff{}", "\x00", "{\"\xff\":1}",
			strings.Repeat("[", 100_000), strings.Repeat(`{"a":`, 100_000), `{"a":` + strings.Repeat("9", 100_000) + `}`, `{"a":"\ud800"}`, "<xml/>", "a=b",
		} {
			status, answer := w.send(o, w.session, []byte(body), fmt.Sprint(o.path, i))
			lawful := o.request.Validate(anyJSON(body)) == nil
			lawful = lawful || body == "" && strings.HasSuffix(o.path, "/optim-step") // all of its members may be left out
			if status == http.StatusOK && !lawful || status != http.StatusOK && (status < 400 || status > 499) {
				t.Errorf("%s %s %.40q: got %d %s", o.method, o.path, body, status, answer)
			}
		}
	}
}

// anyJSON is the value of a text, or one that no schema of a body takes.
func anyJSON(text string) any {
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		return []any{}
	}
	return v
}

// Every operation needs its key.
func TestEveryOperationAsksForItsKey(t *testing.T) {
	w := newWorkshop(t)
	for _, rt := range routes() {
		kind, ok := strings.CutPrefix(rt.path, operations)
		if !ok || rt.method != http.MethodPost {
			continue
		}
		path := opsPath(w.session, wire.Kind(kind))
		for _, key := range []string{"", strings.Repeat("k", maxKey+1)} {
			e := w.refused(http.StatusBadRequest, "POST", path, "{}", wire.KeyHeader, key)
			if e.Param == nil || *e.Param != wire.KeyHeader {
				t.Errorf("%s with a key of %d bytes: got %+v", kind, len(key), e)
			}
		}
	}
}
