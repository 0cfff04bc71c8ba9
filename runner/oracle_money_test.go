package runner_test

import (
	"math"
	"testing"
	"time"
)

// known: every resource at the server is one that the journal has created, or adopted.
func (o *oracle) known() {
	ids := map[string]bool{}
	for _, e := range o.records {
		if e.text("type") == "created" && e.text("what") == "resource" {
			ids[e.text("id")] = true
		}
	}
	for _, f := range o.served {
		if f.head.Kind == "resource" && !ids[f.head.ID] {
			o.fault("resource %s is in no record of the journal", f.head.ID)
		}
	}
}

// bills: what the journal has metered of each resource is at least what the server bills, by minutes that have begun, and at
// most a minute a life more. The server of these tests has resources READY as soon as they are made.
func (o *oracle) bills() {
	lives, seconds := 0, map[string]float64{}
	for _, e := range o.records {
		switch e.text("type") {
		case "life":
			lives++
		case "meter":
			s, _ := e["ready_seconds"].(float64)
			seconds[e.text("resource")] = s
		}
	}
	began := map[string]time.Time{}
	for _, f := range o.served {
		switch f.head.Kind {
		case "resource":
			began[f.head.ID] = f.head.T
		case "stop", "expire":
			from, ok := began[f.head.ID]
			if !ok {
				continue
			}
			end := f.head.T
			if f.head.Kind == "expire" && !f.head.Until.IsZero() {
				end = f.head.Until
			}
			bill := math.Max(1, math.Ceil(end.Sub(from).Minutes()))
			got := math.Max(1, math.Ceil(seconds[f.head.ID]/60))
			if got < bill || got > bill+float64(lives) {
				o.fault("resource %s: %v minutes are metered, in %d lives, the server bills %v", f.head.ID, got, lives, bill)
			}
			delete(began, f.head.ID)
		}
	}
}

// TestTheOracleCounts: a meter that lags, and a resource that nobody knows, are seen.
func TestTheOracleCounts(t *testing.T) {
	at := func(minutes float64) time.Time {
		return time.Unix(0, 0).Add(time.Duration(minutes * float64(time.Minute)))
	}
	o := &oracle{
		records: []entry{{"type": "life"}, {"type": "created", "what": "resource", "id": "a"}, {"type": "meter", "resource": "a", "ready_seconds": 100.0}},
		served:  []frame{{head: served{Kind: "resource", ID: "a", T: at(0)}}, {head: served{Kind: "resource", ID: "b", T: at(0)}}, {head: served{Kind: "stop", ID: "a", T: at(2.5)}}},
	}
	o.known()
	o.bills()
	if len(o.faults) != 2 {
		t.Errorf("%q", o.faults)
	}
	o.faults = nil
	o.records[2]["ready_seconds"] = 150.0
	o.bills()
	if len(o.faults) != 0 {
		t.Errorf("%q", o.faults)
	}
}
