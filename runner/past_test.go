package runner

import "testing"

// TestFailed: only what trains makes a session unfit, and the first of it is the reason.
func TestFailed(t *testing.T) {
	g := newGeneration(0, 0, origin{})
	for i, kind := range []string{kindEval, kindTraining, kindForwardBackward, kindOptimStep} {
		key := string(rune('a' + i))
		g.intents = append(g.intents, intentRecord{Kind: kind, Key: key, Step: i})
		g.results[key] = resultRecord{Key: key, Status: "FAILED", Code: "CODE_" + key}
	}
	p := &past{gens: []*generation{newGeneration(0, 0, origin{}), g}}
	if in, code, ok := p.failed(); !ok || in.Kind != kindForwardBackward || code != "CODE_c" {
		t.Errorf("got %+v, %s, %v", in, code, ok)
	}
	p.gens = p.gens[:1]
	if in, code, ok := p.failed(); ok {
		t.Errorf("of a session without operations: %+v, %s", in, code)
	}
}
