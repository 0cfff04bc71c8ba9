package main

import (
	"slices"
	"testing"
	"time"

	"trainer/internal/journal"
	"trainer/runner"
)

// TestTheRunThatKnowsAResourceOwnsIt: a create of another run that has asked for the like of it, and whose answer was lost, says
// less, in whatever order the two are read. Without the first there is nothing but the second to go by.
func TestTheRunThatKnowsAResourceOwnsIt(t *testing.T) {
	type object = map[string]any
	create := object{"what": "resource", "body": object{"base_model": "m", "gpu_type": "g", "lora_enabled": true, "inactive_timeout": 900}}
	wrote := func(kinds []string, records []object) runner.Holdings {
		dir := t.TempDir()
		j, _, err := journal.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		for i, kind := range kinds {
			if err := j.Append(kind, records[i]); err != nil {
				t.Fatal(err)
			}
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		h, err := runner.ReadHoldings(dir)
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	lost := wrote([]string{"create"}, []object{create})
	kept := wrote([]string{"create", "created", "end"}, []object{create, {"what": "resource", "id": "r1"}, {"outcome": "complete"}})
	res := runner.Resource{ID: "r1", BaseModel: "m", GPUType: "g", LoRA: true, InactiveTimeout: 900 * time.Second}

	both := []runner.Holdings{lost, kept}
	for range 2 {
		var b billed
		b.owner(res, both)
		if b.Run != kept.Dir || b.RunState != "ended, kept" || b.Why != "" {
			t.Errorf("%s (%s) has it, for it is left: %q; want %s, kept", b.Run, b.RunState, b.Why, kept.Dir)
		}
		slices.Reverse(both)
	}
	var b billed
	if b.owner(res, []runner.Holdings{lost}); b.Run != lost.Dir || b.Why == "" {
		t.Errorf("without it %s has it, %q; want %s", b.Run, b.Why, lost.Dir)
	}
}
