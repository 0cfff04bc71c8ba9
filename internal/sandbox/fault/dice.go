package fault

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"sync"
	"time"
)

// Event is something that a fault may befall: its labels, the name first, and the rules that came with it, which are for
// it alone.
type Event struct {
	Labels []string
	Own    []Rule
}

// Hit is a rule that befalls an event.
type Hit struct {
	Rule
	u float64
}

// Duration is drawn from the rule's Delay; the same at every call.
func (h Hit) Duration() time.Duration { return h.Delay.at(h.u) }

// Dice decides. Safe for concurrent use. A nil *Dice decides by an event's own rules only.
type Dice struct {
	seed  uint64
	rules []*counted
}

// counted is a rule and what it has seen.
type counted struct {
	Rule
	id   string // tells it from another rule of the same text
	mu   sync.Mutex
	n    int            // events
	hits int            // of which it befell
	by   map[string]int // events by name
}

// NewDice takes rules in the order of precedence: the first one that strikes is the one that does.
func NewDice(seed uint64, rules []Rule) *Dice {
	d := &Dice{seed: seed}
	for i, r := range rules {
		d.rules = append(d.rules, &counted{Rule: r, id: fmt.Sprintf("%d %s", i, r.text), by: map[string]int{}})
	}
	return d
}

// Roll tells whether a fault of the kind, on that side of the work, befalls the event. Every rule that covers the event
// counts it, whether or not it strikes.
func (d *Dice) Roll(k Kind, w When, e Event) (hit Hit, ok bool) {
	for _, r := range e.Own {
		if r.Kind == k && r.When == w && !ok {
			u := draw(0, r.text, "", 0)
			hit, ok = Hit{r, u[1]}, true
		}
	}
	if d == nil {
		return hit, ok
	}
	for _, r := range d.rules {
		if r.Kind != k || r.When != w || !r.covers(e.Labels) {
			continue
		}
		if u, struck := r.roll(d.seed, e.Labels[0]); struck && !ok {
			hit, ok = Hit{r.Rule, u}, true
		}
	}
	return hit, ok
}

// roll counts an event, and decides.
func (c *counted) roll(seed uint64, name string) (u float64, struck bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n++
	c.by[name]++
	us := draw(seed, c.id, name, c.by[name])
	switch {
	case c.Times > 0 && c.hits >= c.Times:
	case c.At > 0:
		struck = c.n == c.At
	default:
		struck = us[0] < c.Rate
	}
	if struck {
		c.hits++
	}
	return us[1], struck
}

// draw gives two independent numbers in [0, 1).
func draw(seed uint64, rule, name string, n int) (u [2]float64) {
	b := binary.LittleEndian.AppendUint64([]byte("sandbox fault 1\n"), seed)
	b = binary.LittleEndian.AppendUint64(b, uint64(n))
	sum := sha256.Sum256(append(b, rule+"\n"+name...))
	for i := range u {
		u[i] = float64(binary.LittleEndian.Uint64(sum[8*i:])>>11) / (1 << 53)
	}
	return u
}
