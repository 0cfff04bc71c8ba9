package grader

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"runtime"
	"sync"
)

// Entry is one reward of a recipe: a grader and what its score counts.
type Entry struct {
	Type   string // the kind's name
	Grader Grader
	// Weight multiplies the score in the total; finite, may be negative; 0 is measured and not added.
	Weight float64
	// Clip bounds the score, [lo, hi]; nil: as it is.
	Clip *[2]float64
	// Gate, where not nil, replaces the total by Else when the clipped score is below Min.
	Gate *Gate
	// Skip leaves this entry out where it has no score; otherwise the completion then has no reward.
	Skip bool
}

// Gate replaces the total by Else where a clipped score is below Min.
type Gate struct{ Min, Else float64 }

// Part is what one entry said of a completion.
type Part struct {
	// Name is the kind's, with _2, _3, … from its second entry on: math_equal, regex, regex_2.
	Name string
	// Value is the score before clip and weight; 0 where there is none.
	Value float64
	// Scored: there is a Value. Neither Scored nor an unscored reason where NotRun.
	Scored bool
	// NotRun: a gate had failed before, and the kind asks outside.
	NotRun bool
	// Why is the reason of a 0 or of the lack of a score.
	Why string
	// Info is what a stranger's grader gave to be kept; nil for none.
	Info json.RawMessage
}

// Graded is a completion's reward. Without Scored it has none: it is not trained, and not in the mean or the standard deviation
// of its group.
type Graded struct {
	// Total is the sum of weight × score in the order of the recipe, each product rounded before it is added; or what the first
	// failing gate says.
	Total  float64
	Scored bool
	// Why names the part and the reason where there is no Total: "command: timeout".
	Why string
	// Parts are [entries], in the order of the recipe.
	Parts []Part
}

// Set grades by all rewards of a recipe. It is read-only after New and safe for concurrent use.
type Set struct {
	entries []Entry
	names   []string
}

// New names the entries; every Grader has passed Check and Open.
func New(entries []Entry) *Set {
	s := &Set{entries: entries}
	seen := map[string]int{}
	for _, e := range entries {
		seen[e.Type]++
		name := e.Type
		if n := seen[e.Type]; n > 1 {
			name = fmt.Sprintf("%s_%d", e.Type, n)
		}
		s.names = append(s.names, name)
	}
	return s
}

// Names are those of the parts, [entries].
func (s *Set) Names() []string { return s.names }

// Grade scores all completions, many at a time, and returns them in their order, [len(all)]. An error means that the run can't
// go on: ctx is done, or a grader said so; what is unscored is no error.
func (s *Set) Grade(ctx context.Context, all []Completion) ([]Graded, error) {
	out, errs := make([]Graded, len(all)), make([]error, len(all))
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	// A completion that waits for a worker costs nothing; the pools bound what is asked outside.
	slots := make(chan struct{}, s.width())
	var group sync.WaitGroup
	for i := range all {
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
			errs[i] = context.Cause(ctx)
			continue
		}
		group.Go(func() {
			defer func() { <-slots }()
			out[i], errs[i] = s.one(ctx, all[i])
			if errs[i] != nil {
				cancel()
			}
		})
	}
	group.Wait()
	return out, first(errs)
}

// first prefers the fault itself to the cancellation that it caused.
func first(errs []error) error {
	var found error
	for _, err := range errs {
		if err != nil && (found == nil || errors.Is(found, context.Canceled)) {
			found = err
		}
	}
	return found
}

// width is how many completions are graded at a time.
func (s *Set) width() int {
	for _, e := range s.entries {
		if asksOutside(e.Grader) {
			return 1024
		}
	}
	return runtime.GOMAXPROCS(0)
}

func asksOutside(g Grader) bool {
	_, ok := g.(Outside)
	return ok
}

// one grades a completion. A panic of a grader is an error of the run, not the end of the process.
func (s *Set) one(ctx context.Context, c Completion) (g Graded, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("grading %s: %v", c.Sample, p)
		}
	}()
	var t total
	g.Parts = make([]Part, len(s.entries))
	for i, e := range s.entries {
		p := &g.Parts[i]
		p.Name = s.names[i]
		if t.gated && asksOutside(e.Grader) {
			p.NotRun = true
			continue
		}
		score, err := e.Grader.Grade(ctx, c)
		if err != nil {
			return Graded{}, fmt.Errorf("reward %s: %w", p.Name, err)
		}
		if !score.Unscored && (math.IsNaN(score.Value) || math.IsInf(score.Value, 0)) {
			score = unscored(NotFinite)
		}
		*p = Part{Name: p.Name, Value: score.Value, Scored: !score.Unscored, Why: score.Why, Info: score.Info}
		t.add(e, p)
	}
	g.Total, g.Scored, g.Why = t.result()
	return g, nil
}

// total adds up the parts of a completion.
type total struct {
	sum       float64
	any       bool
	gated     bool
	otherwise float64 // of the first failing gate
	dropped   string
}

func (t *total) add(e Entry, p *Part) {
	if !p.Scored {
		if !e.Skip && t.dropped == "" {
			t.dropped = p.Name + ": " + p.Why
		}
		return
	}
	v := p.Value
	if e.Clip != nil {
		v = min(max(v, e.Clip[0]), e.Clip[1])
	}
	t.any = true
	if e.Gate != nil && v < e.Gate.Min && !t.gated {
		t.gated, t.otherwise = true, e.Gate.Else
	}
	t.sum += float64(e.Weight * v) // rounded: no fused multiply-add
}

func (t *total) result() (float64, bool, string) {
	switch {
	case t.dropped != "":
		return 0, false, t.dropped
	case !t.any:
		return 0, false, Skipped
	case t.gated:
		return t.otherwise, true, ""
	case math.IsInf(t.sum, 0) || math.IsNaN(t.sum):
		return 0, false, NotFinite
	}
	return paid(t.sum).Value, true, ""
}

// ErrMachinery means that the graders outside don't work: more than half of a batch has no score because of them.
var ErrMachinery = errors.New("the graders outside do not answer")

// Healthy returns nil, or an ErrMachinery where more than half of a whole batch has no reward by timeouts, deaths, broken replies
// or errors: to train on the rest would be to train on whatever happens to work.
func Healthy(batch []Graded) error {
	broken, why := 0, ""
	for _, g := range batch {
		for _, p := range g.Parts {
			if !g.Scored && !p.Scored && machinery[p.Why] {
				broken, why = broken+1, p.Name+": "+p.Why
				break
			}
		}
	}
	if 2*broken <= len(batch) {
		return nil
	}
	return fmt.Errorf("%d of %d completions have no reward, the last for %s: %w", broken, len(batch), why, ErrMachinery)
}

var machinery = map[string]bool{Died: true, TimedOut: true, Protocol: true, Failed: true, BadReply: true}
