package fault

import (
	"math"
	"strings"
	"sync"
	"testing"
	"time"
)

// requests are the routes of these tests.
func requests() []Route {
	return []Route{
		{"get-session", Any, Reads},
		{"optim-step", Any, Writes, Operations},
		{"forward-backward", Any, Writes, Operations},
		{"get-optim-step", Any, Reads, Polls},
		{"weights-sync", Any, Writes, Operations},
		{"create-session", Any, Writes, Creates},
		{"create-resource", Any, Writes, Paid, Creates},
		{"prepare-for-fp4-inference", Any, Writes, Paid, Creates},
		{"stop-resource", Any, Writes, Stops},
		{"get-file", Any, Reads},
	}
}

func parse(t *testing.T, text string) Rule {
	t.Helper()
	r, err := Parse(text, requests())
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return r
}

func TestEveryKindParsesWithItsDefaultsAndItsKeys(t *testing.T) {
	values := map[string]string{
		"rate": "0.5", "on": Any, "fixed": "1s", "uniform": "1s..2s", "exponential": "3s", "when": "after", "retry_after": "250ms",
		"status": "503", "code": "TIMEOUT", "leaves": "gradient", "after": "1h", "position": "3", "by": "2", "bytes": "10",
	}
	for _, i := range Kinds() {
		if r := parse(t, string(i.Kind)); r.Rate != 1 || r.At != 0 {
			t.Errorf("%s: got %+v, want every event", i.Kind, r)
		}
		for _, key := range i.keys() {
			value := values[key]
			switch {
			case key == "at", key == "times":
				value = "3"
			case key == "except":
				value = "get-session"
				if i.Within == "get-session" {
					continue
				}
			case key == "status" && i.Kind == RefuseStop:
				value = "409"
			case key == "code" && i.Kind == ResourceError:
				value = "PROVISIONING_FAILED"
			case key == "code" && i.Kind == JobError:
				value = "SHAPING_USER_ERROR"
			}
			parse(t, string(i.Kind)+":"+key+"="+value)
		}
	}
}

func TestParseNamesWhatIsWrong(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"latncy", `"latncy" is not a fault; did you mean "latency"?`},
		{"", `"" is not a fault`},
		{"drop:", ``},
		{"drop:rate", `drop: "rate" is not key=value`},
		{"drop:rate=0.1,", `drop: "" is not key=value`},
		{"drop:rate=1.5", `drop: rate: "1.5" is not a number from 0 to 1`},
		{"drop:rate=NaN", `drop: rate: "NaN" is not a number from 0 to 1`},
		{"drop:at=0", `drop: at: "0" is not a whole number`},
		{"drop:at=2,rate=0.5", `drop: at is one event`},
		{"drop:at=2,at=3", `drop: at is said twice`},
		{"drop:wen=after", `drop: it has no key "wen"; did you mean "when"?`},
		{"drop:when=later", `drop: when: "later" is not one of before, after`},
		{"drop:on=optim-stp", `drop: on: "optim-stp" is no request; did you mean "optim-step"?`},
		{"drop:on=reads,except=reads", `drop: except: nothing is left`},
		{"fail:on=get-session", `fail: on: it does not happen on get-session, only on operations`},
		{"fail:code=TIMEUT", `fail: code: "TIMEUT" is not one of`},
		{"latency:fixed=1s..2s", `latency: fixed: "1s..2s" is not a duration such as 300ms`},
		{"latency:uniform=1s", `latency: uniform: "1s" is not a duration such as 100ms..2s`},
		{"latency:uniform=2s..1s", `ends before it begins`},
		{"latency:fixed=1s,uniform=1s..2s", `latency: a delay is fixed, uniform or exponential`},
		{"latency:fixed=-1s", `is not a duration`},
		{"latency:fixed=2000000h", `is not a duration`},
		{"server-error:status=404", `"404" is not a whole number from 500 to 599`},
	} {
		_, err := Parse(tt.text, requests())
		if tt.want == "" {
			if err != nil {
				t.Errorf("%q: %v, want none", tt.text, err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%q: got %v, want %q", tt.text, err, tt.want)
		}
	}
}

func TestARequestsOwnRulesSayOnlyWhat(t *testing.T) {
	rs, err := ParseOwn("drop:when=after; fail:code=TIMEOUT")
	if err != nil || len(rs) != 2 || rs[0].When != After || rs[1].Code != "TIMEOUT" {
		t.Errorf("got %+v, %v", rs, err)
	}
	for _, text := range []string{"", "drop:rate=0.5", "drop:at=1", "drop:except=any", "drop;", "nothing"} {
		if rs, err := ParseOwn(text); err == nil {
			t.Errorf("%q: got %+v, want an error", text, rs)
		}
	}
	e := Event{Labels: []string{"get-session", Any, Reads}, Own: rs}
	var none *Dice
	if hit, ok := none.Roll(Drop, After, e); !ok || hit.When != After {
		t.Errorf("its own drop: got %+v, %v", hit, ok)
	}
	if _, ok := none.Roll(Drop, Before, e); ok {
		t.Error("a drop after the work befell it before the work")
	}
}

// roll returns which of n events the rule befalls.
func roll(d *Dice, r Rule, n int, labels ...string) (struck []int) {
	for i := range n {
		if _, ok := d.Roll(r.Kind, r.When, Event{Labels: labels}); ok {
			struck = append(struck, i+1)
		}
	}
	return struck
}

func TestTheNthEventOfThoseThatARuleCovers(t *testing.T) {
	r := parse(t, "drop:at=3,on=operations,except=weights-sync")
	d := NewDice(1, []Rule{r})
	if got := roll(d, r, 5, "get-session", Any, Reads); got != nil {
		t.Errorf("reads: struck at %v", got)
	}
	if got := roll(d, r, 5, "weights-sync", Any, Writes, Operations); got != nil {
		t.Errorf("what is excepted: struck at %v", got)
	}
	roll(d, r, 2, "optim-step", Any, Writes, Operations)
	if got := roll(d, r, 5, "forward-backward", Any, Writes, Operations); len(got) != 1 || got[0] != 1 {
		t.Errorf("the third of all operations: struck at %v, want the first of these", got)
	}
}

func TestRateAndTimes(t *testing.T) {
	r := parse(t, "drop:rate=0.2")
	const n = 20000
	got := len(roll(NewDice(7, []Rule{r}), r, n, "optim-step", Any))
	// Five standard deviations of a binomial.
	if slack := 5 * math.Sqrt(n*0.2*0.8); math.Abs(float64(got)-n*0.2) > slack {
		t.Errorf("a rate of 0.2 struck %d of %d", got, n)
	}
	few := parse(t, "drop:rate=0.5,times=3")
	if got := roll(NewDice(7, []Rule{few}), few, 1000, "optim-step", Any); len(got) != 3 {
		t.Errorf("times=3 struck %d times", len(got))
	}
	never := parse(t, "drop:rate=0")
	if got := roll(NewDice(7, []Rule{never}), never, 1000, "optim-step", Any); got != nil {
		t.Errorf("rate=0 struck at %v", got)
	}
}

// Other traffic, other rules and goroutines change nothing; the seed and the place among the rules do.
func TestDecisionsAreAFunctionOfTheSeedAndTheEvent(t *testing.T) {
	r, other := parse(t, "drop:rate=0.3"), parse(t, "truncate:rate=0.3")
	alone := roll(NewDice(5, []Rule{r}), r, 200, "optim-step", Any)
	d := NewDice(5, []Rule{r, other})
	var wg sync.WaitGroup
	wg.Go(func() { roll(d, r, 200, "get-session", Any); roll(d, other, 200, "optim-step", Any) })
	mixed := roll(d, r, 200, "optim-step", Any)
	wg.Wait()
	if len(alone) != len(mixed) || len(alone) == 0 {
		t.Fatalf("alone %v, among others %v", alone, mixed)
	}
	for i := range alone {
		if alone[i] != mixed[i] {
			t.Fatalf("alone %v, among others %v", alone, mixed)
		}
	}
	seeded := roll(NewDice(6, []Rule{r}), r, 200, "optim-step", Any)
	twice := roll(NewDice(5, []Rule{r, r}), r, 200, "optim-step", Any)
	if len(twice) <= len(alone) {
		t.Errorf("the same rule twice struck %d times, once %d times: its copies draw alike", len(twice), len(alone))
	}
	same := len(seeded) == len(alone)
	for i := range min(len(seeded), len(alone)) {
		same = same && seeded[i] == alone[i]
	}
	if same {
		t.Error("another seed struck the same events")
	}
}

func TestDelays(t *testing.T) {
	const n = 20000
	for _, tt := range []struct {
		text      string
		mean      time.Duration
		low, high time.Duration
		deviation float64 // of one draw, by the distribution's formula
	}{
		{"latency:fixed=300ms", 300 * time.Millisecond, 300 * time.Millisecond, 300 * time.Millisecond, 0},
		{"latency:uniform=100ms..500ms", 300 * time.Millisecond, 100 * time.Millisecond, 500 * time.Millisecond, 0.4 / math.Sqrt(12)},
		{"latency:exponential=300ms", 300 * time.Millisecond, 0, time.Hour, 0.3},
	} {
		r := parse(t, tt.text)
		d := NewDice(3, []Rule{r})
		sum := 0.0
		for range n {
			hit, ok := d.Roll(Latency, Before, Event{Labels: []string{"get-session", Any}})
			if got := hit.Duration(); !ok || got < tt.low || got > tt.high {
				t.Fatalf("%s: got %v", tt.text, got)
			}
			sum += hit.Duration().Seconds()
		}
		if got := sum / n; math.Abs(got-tt.mean.Seconds()) > 5*tt.deviation/math.Sqrt(n)+1e-9 {
			t.Errorf("%s: mean %v s, want %v", tt.text, got, tt.mean)
		}
	}
}

// FuzzParse: whatever is asked for, it is refused or it is a rule that parses to itself.
func FuzzParse(f *testing.F) {
	for _, i := range Kinds() {
		f.Add(string(i.Kind))
	}
	f.Add("latency:uniform=1s..2s,on=reads+polls,except=get-session,rate=0.25,times=4")
	f.Add("fail:code=TIMEOUT,leaves=step,at=9")
	f.Fuzz(func(t *testing.T, text string) {
		r, err := Parse(text, requests())
		if err != nil {
			return
		}
		if r.String() != text || r.Rate < 0 || r.Rate > 1 || r.For < 0 {
			t.Errorf("%q: got %+v", text, r)
		}
		for _, u := range []float64{0, 0.5, 1 - 1.0/(1<<53)} {
			if d := r.Delay.at(u); d < 0 || d > longest {
				t.Errorf("%q: a delay of %v", text, d)
			}
		}
		_, _ = ParseOwn(text)
	})
}
