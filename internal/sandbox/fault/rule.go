package fault

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"trainer/internal/diag"
)

// When says on which side of the work a fault lies.
type When string

// The sides. A kind without the key `when` has neither.
const (
	Before When = "before"
	After  When = "after"
)

// What a failed operation leaves behind.
const (
	LeavesNothing  = "nothing"
	LeavesGradient = "gradient"
	LeavesStep     = "step"
)

// Rule is one fault as asked for. Members that its kind has no key for are zero. A Rule is read-only.
type Rule struct {
	Kind       Kind
	On, Except []string // labels; Except wins

	Rate  float64 // share of the events that it befalls, 0 to 1
	At    int     // only the event of this number, from 1; 0: Rate decides
	Times int     // at most so often; 0: no bound

	When       When
	Status     int           // HTTP
	RetryAfter time.Duration // 0: the header is left out
	Delay      Delay
	Code       string        // without prefix
	Leaves     string        // empty: not said
	For        time.Duration // the key `after`
	Position   int
	By         int
	Bytes      int // -1: half

	text string
}

// String is the rule as it was written.
func (r Rule) String() string { return r.text }

// Route is the labels of one thing that can be asked for; the first is its name.
type Route []string

// Parse reads NAME[:key=value,…]. routes are all there are. An error names the word that is wrong, and what it may mean.
func Parse(text string, routes []Route) (Rule, error) {
	name, rest, _ := strings.Cut(text, ":")
	info, ok := find(Kind(name))
	if !ok {
		return Rule{}, fmt.Errorf("%q is not a fault%s", name, diag.DidYouMean(name, names()))
	}
	r := defaults(info)
	r.text = text
	seen := map[string]bool{}
	for word := range strings.SplitSeq(rest, ",") {
		if word == "" && rest == "" {
			break
		}
		key, value, ok := strings.Cut(word, "=")
		if !ok {
			return Rule{}, fmt.Errorf("%s: %q is not key=value", name, word)
		}
		if seen[key] {
			return Rule{}, fmt.Errorf("%s: %s is said twice", name, key)
		}
		seen[key] = true
		if err := r.set(info, key, value); err != nil {
			return Rule{}, fmt.Errorf("%s: %w", name, err)
		}
	}
	if seen["at"] && (seen["rate"] || seen["times"]) {
		return Rule{}, fmt.Errorf("%s: at is one event; rate and times do not go with it", name)
	}
	if n := count(seen, "fixed", "uniform", "exponential"); n > 1 {
		return Rule{}, fmt.Errorf("%s: a delay is fixed, uniform or exponential, one of them", name)
	}
	if err := r.place(info, routes); err != nil {
		return Rule{}, fmt.Errorf("%s: %w", name, err)
	}
	return r, nil
}

// ParseOwn reads the rules that come with a request, for it alone, separated by semicolons: they have only the keys that
// say what happens, none that say when or where.
func ParseOwn(text string) ([]Rule, error) {
	var out []Rule
	for part := range strings.SplitSeq(text, ";") {
		part = strings.TrimSpace(part)
		name, _, _ := strings.Cut(part, ":")
		info, _ := find(Kind(name))
		r, err := Parse(part, []Route{append(strings.Split(info.Within, "+"), Any, info.On)})
		if err != nil {
			return nil, err
		}
		if own := defaults(info); r.Rate != 1 || r.At != 0 || r.Times != 0 || !slices.Equal(r.On, own.On) || r.Except != nil {
			return nil, fmt.Errorf("%s: %s are for rules of the server; this one is for its request", name, strings.Join(common(), ", "))
		}
		out = append(out, r)
	}
	return out, nil
}

func count(seen map[string]bool, keys ...string) (n int) {
	for _, k := range keys {
		if seen[k] {
			n++
		}
	}
	return n
}

func find(k Kind) (Info, bool) {
	all := Kinds()
	i := slices.IndexFunc(all, func(i Info) bool { return i.Kind == k })
	if i < 0 {
		return Info{}, false
	}
	return all[i], true
}

func names() []string {
	var out []string
	for _, i := range Kinds() {
		out = append(out, string(i.Kind))
	}
	return out
}

func defaults(i Info) Rule {
	r := Rule{Kind: i.Kind, On: []string{i.On}, Rate: 1, Bytes: -1}
	if slices.Contains(i.Keys, "when") {
		r.When = Before
	}
	switch i.Kind {
	case TooManyRequests:
		r.RetryAfter = time.Second
	case ServerError:
		r.Status = 500
	case RefuseStop:
		r.Status = 400
	case Latency:
		r.Delay = Delay{shape: fixed, low: time.Second}
	case SlowBody, SlowPublish:
		r.Delay = Delay{shape: fixed, low: 5 * time.Second}
	case Queue:
		r.Delay, r.Position = Delay{shape: fixed, low: time.Minute}, 1
	case Fail:
		r.Code = "INTERNAL_ERROR"
	case ResourceError:
		r.Code = "CAPACITY_WAIT_TIMEOUT"
	case JobError:
		r.Code = "SHAPING_ERROR"
	case Reorder:
		r.For = 2 * time.Second
	case LateCreate:
		r.For = 30 * time.Second
	case LaggingStep:
		r.By = 1
	}
	return r
}

// place holds the rule's labels to those that exist, and to where its kind can happen.
func (r Rule) place(i Info, routes []Route) error {
	var known []string
	for _, rt := range routes {
		known = append(known, rt...)
	}
	for _, label := range slices.Concat(r.On, r.Except) {
		if !slices.Contains(known, label) {
			return fmt.Errorf("on: %q is no request%s", label, diag.DidYouMean(label, known))
		}
	}
	for _, label := range r.On {
		within := func(rt Route) bool { return slices.Contains(rt, label) && i.within(rt) }
		if !slices.ContainsFunc(routes, within) {
			return fmt.Errorf("on: it does not happen on %s, only on %s", label, i.Within)
		}
	}
	if !slices.ContainsFunc(routes, func(rt Route) bool { return r.covers(rt) && i.within(rt) }) {
		return fmt.Errorf("except: nothing is left for it to happen on")
	}
	return nil
}

func (i Info) within(rt Route) bool {
	return slices.ContainsFunc(strings.Split(i.Within, "+"), func(l string) bool { return slices.Contains(rt, l) })
}

// covers: the rule speaks of events with these labels.
func (r Rule) covers(labels []string) bool {
	in := func(l string) bool { return slices.Contains(labels, l) }
	return slices.ContainsFunc(r.On, in) && !slices.ContainsFunc(r.Except, in)
}
