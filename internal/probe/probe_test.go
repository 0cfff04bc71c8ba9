package probe_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"trainer/internal/probe"
	"trainer/internal/sandbox"
	"trainer/internal/together"
	"trainer/internal/wire"
)

// bench is a server in this process with one resource on it, in a bubble in which waiting takes no time.
type bench struct {
	t        *testing.T
	server   *sandbox.Server
	client   *together.Client
	resource string
}

// on calls f with a bench; model is the body of the resource's create.
func on(t *testing.T, o sandbox.Options, create string, f func(b *bench)) {
	synctest.Test(t, func(t *testing.T) {
		s, err := sandbox.Open(o)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = s.Close() }()
		b := &bench{t: t, server: s, client: together.New(together.Options{BaseURL: "http://sandbox", Key: "key", Transport: s})}
		var r wire.Resource
		b.call("POST", wire.PathResources, create, &r)
		b.resource = r.ID
		f(b)
	})
}

// call is a request past the client. It is made again where the server was asked to misbehave.
func (b *bench) call(method, path, body string, out any) {
	b.t.Helper()
	var err error
	for range 20 {
		if err = b.try(method, path, body, out); err == nil {
			return
		}
	}
	b.t.Fatal(err)
}

func (b *bench) try(method, path, body string, out any) error {
	req, err := http.NewRequest(method, "http://sandbox"+path, strings.NewReader(body))
	if err != nil {
		return err
	}
	res, err := b.server.RoundTrip(req)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != 200 {
		return fmt.Errorf("%s %s: %d", method, path, res.StatusCode)
	}
	return json.NewDecoder(res.Body).Decode(out)
}

// probe runs a probe, and holds it to leaving nothing behind.
func (b *bench) probe(ctx context.Context, s probe.Service) (*probe.Report, error) {
	b.t.Helper()
	target, err := probe.Find(ctx, s, b.resource)
	if err != nil {
		return nil, err
	}
	r, err := probe.Run(ctx, s, target, nil)
	b.empty()
	return r, err
}

// empty: no session holds a place, and the resource is as it was.
func (b *bench) empty() {
	b.t.Helper()
	var page wire.Page[wire.Session]
	b.call("GET", wire.PathSessions+"?limit=100", "", &page)
	for _, s := range page.Data {
		if !s.Status.Final() {
			b.t.Errorf("session %s (%s) is %s", s.ID, s.DisplayName, s.Status.Name())
		}
	}
	var r wire.Resource
	if b.call("GET", wire.PathResources+"/"+b.resource, "", &r); r.Status != wire.ResourceReady {
		b.t.Errorf("the resource is %s", r.Status.Name())
	}
}

func create(model string, lora bool, muon bool, generators int) string {
	optimizer := `{"adam":{}}`
	if muon {
		optimizer = `{"muon":{}}`
	}
	return fmt.Sprintf(`{"base_model":%q,"lora_enabled":%v,"optimizer_config":%s,"compute_config":{"num_generator_replicas":%d}}`, model, lora, optimizer, generators)
}

var sampled = []string{probe.SampledLogprobs, probe.StopToken}

// Every value of every choice is seen for what it is, alone and with all the others, by every kind of resource.
func TestEveryChoiceIsSeen(t *testing.T) {
	defaults, others := sandbox.Choices{}, sandbox.Choices{}
	for _, c := range sandbox.AllChoices() {
		defaults[c.Choice], others[c.Choice] = c.Values[0], c.Values[1]
	}
	sets := map[string]sandbox.Choices{"defaults": defaults, "none of the defaults": others}
	for _, c := range sandbox.AllChoices() {
		one := sandbox.Choices{c.Choice: c.Values[1]}
		for k, v := range defaults {
			if k != c.Choice {
				one[k] = v
			}
		}
		sets[string(c.Choice)+" alone"] = one
	}
	for name, choices := range sets {
		for _, kind := range []struct {
			name       string
			create     string
			generators int
		}{
			{"LoRA", create("sandbox/bytes-tiny", true, false, 1), 1},
			{"full weights", create("sandbox/bytes-tiny", false, false, 2), 2},
			{"full weights without generators", create("sandbox/bytes-tiny", false, false, 0), 0},
			{"Muon", create("sandbox/bytes-tiny", true, true, 1), 1},
			{"a stand-in", create("Qwen/Qwen3-8B", true, false, 1), 1},
			{"a stand-in, full weights", create("Qwen/Qwen3-8B", false, false, 0), 0},
		} {
			if strings.HasSuffix(name, "alone") && kind.name != "LoRA" {
				continue
			}
			t.Run(name+"/"+kind.name, func(t *testing.T) {
				on(t, sandbox.Options{Choices: choices}, kind.create, func(b *bench) {
					r, err := b.probe(b.t.Context(), b.client)
					if err != nil {
						t.Fatal(err)
					}
					holds(t, r, choices, kind.generators)
					if r.Operations > probe.Operations || r.Tokens > probe.Tokens {
						t.Errorf("%d operations and %d tokens, told were %d and %d", r.Operations, r.Tokens, probe.Operations, probe.Tokens)
					}
					for name, want := range map[string]string{"same_key": "original", "trainer_order": "in_order", "repeated_forward": "identical"} {
						if got, how := value(t, r, name); got != want {
							t.Errorf("%s: got %s, want %s: %s", name, got, want, how)
						}
					}
				})
			})
		}
	}
}

// holds compares what was found with what the server was told.
func holds(t *testing.T, r *probe.Report, choices sandbox.Choices, generators int) {
	t.Helper()
	if len(r.Choices) != len(choices) {
		t.Errorf("got %d choices, want %d", len(r.Choices), len(choices))
	}
	for _, f := range r.Choices {
		want := choices[sandbox.Choice(f.Name)]
		if generators == 0 && slices.Contains(sampled, f.Name) {
			want = probe.Unknown
		}
		if f.Value != want || f.How == "" {
			t.Errorf("%s: got %s, want %s: %s", f.Name, f.Value, want, f.How)
		}
	}
}

// value of the finding of that name; how it was seen.
func value(t *testing.T, r *probe.Report, name string) (value, how string) {
	t.Helper()
	for _, f := range slices.Concat(r.Choices, r.Facts) {
		if f.Name == name {
			return f.Value, f.How
		}
	}
	t.Fatalf("nothing is said about %s", name)
	return "", ""
}
