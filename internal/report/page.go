package report

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"
)

// page is what page.html shows. All of it is text that the template escapes.
type page struct {
	Name, ID, BaseModel, Recipe string
	Start                       string // where the run has begun; empty: at the base model's weights
	Version                     string // of the binary
	Mark, Note                  string // sandbox or stand-in, and what that means
	Outcome, Class, Why         string // why it ended, where the outcome alone does not say it
	Tiles                       []tile
	Loss, Reward                chart
	Charts                      []chart
	MoreCharts                  int // that are not shown
	EvalColumns                 []string
	Evals                       []evalRow
	Saves                       []saveRow
	Download                    string // the command that brings the newest inference checkpoint; empty for none
	Plan                        []field
	Lock                        []field
	LockText                    string // where it is not a plain list
	Resolved                    string
	Samples                     []sampleRow
	Log                         []logRow
	Logged                      int
	Unreadable                  int
	AsOf                        string
}

type (
	tile    struct{ Name, Value, Detail string }
	evalRow struct {
		Step      string
		Values    []string
		Best      bool
		Abandoned bool
	}
	saveRow struct {
		Step, Kind, ID, Model string
		Abandoned             bool
	}
	sampleRow struct{ Step, Prompt, Text, Reward, Advantage string }
	logRow    struct{ Time, Kind, Step, Text string }
)

// Name and Value let the template read a field.
func (f field) Name() string { return f.name }

// Value is the text beside Name.
func (f field) Value() string { return f.value }

func newPage(h *history) *page {
	info := h.about.info()
	p := &page{
		Name: printable(info.Name), ID: printable(info.ID), BaseModel: printable(info.BaseModel), Recipe: printable(info.Recipe), Start: printable(info.Start), Version: printable(info.Version),
		Mark: mark(info), Resolved: printableText(h.resolved), Logged: h.logged, Unreadable: h.unreadable,
	}
	switch p.Mark {
	case "stand-in":
		p.Note = standInNote(info)
	case "sandbox":
		p.Note = "trained on the built-in sandbox, not at the service"
	}
	p.Outcome, p.Class = outcome(h)
	_, p.Why, _ = strings.Cut(printable(h.outcome), ": ")
	if !h.last.IsZero() {
		p.AsOf = clock(h.last)
	}
	p.Tiles = tiles(h)
	p.Reward, p.Loss = rewardChart(h), lossChart(h)
	p.charts(h)
	p.evaluations(h)
	for _, s := range h.saves {
		kind, id, _ := strings.Cut(printable(s.text), " ")
		id, model, _ := strings.Cut(id, " registered as ")
		p.Saves = append(p.Saves, saveRow{Count(s.done), kind, id, model, s.abandoned})
		if kind == "inference" && !s.abandoned {
			p.Download = "trainer checkpoints download " + printable(h.dir) + " --out model"
		}
	}
	if h.about.Plan != nil {
		p.Plan = planFields(h.about.Plan)
	}
	p.provenance(h)
	p.events(h)
	return p
}

// outcome is the badge and its style.
func outcome(h *history) (text, class string) {
	kind, _, _ := strings.Cut(h.outcome, ":")
	switch {
	case h.outcome == "" && h.first.IsZero() && h.done == 0:
		return "not started", "open"
	case h.outcome == "":
		return "unfinished: still running, or killed", "open"
	case kind == "complete":
		return kind, "good"
	case kind == "failed":
		return kind, "bad"
	}
	return printable(kind), "open"
}

func tiles(h *history) []tile {
	var ts []tile
	steps := tile{"steps", Count(h.done), ""}
	if p := h.about.Plan; p != nil {
		steps.Detail = "of " + Count(len(p.Rates))
	}
	ts = append(ts, steps)
	if s := h.series[trainLoss]; len(s) > 0 {
		ts = append(ts, tile{"train/loss", lossText(s[len(s)-1]), "from " + lossText(s[0])})
	}
	if s := h.series[rewardMean]; len(s) > 0 {
		ts = append(ts, tile{rewardMean, lossText(s[len(s)-1]), "from " + lossText(s[0])})
	}
	if best, name, ok := bestEval(h.evals); ok {
		ts = append(ts, tile{name + ", best", Loss(best.metrics[name]), "at step " + Count(best.done)})
	}
	if s := h.series[trainedTokens]; len(s) > 0 {
		ts = append(ts, tile{"trained tokens", Short(s.sum()), ""})
	}
	if s := h.series[tokensPerSecond]; len(s) > 0 {
		ts = append(ts, tile{"tokens/s", Short(s.median()), "median step"})
	}
	if d := wall(h); d > 0 {
		ts = append(ts, tile{"time", Duration(d), "first event to last"})
	}
	if h.hasCost && (h.cost != 0 || h.about.USDPerH != 0) {
		t := tile{"cost", USD(h.cost), ""}
		if h.about.USDPerH > 0 {
			t.Detail = "at " + USD(h.about.USDPerH) + " an hour"
		}
		if s := h.series[costForecast]; len(s) > 0 && h.about.Plan != nil && h.done < len(h.about.Plan.Rates) {
			t.Detail = strings.TrimPrefix(t.Detail+", "+USD(s[len(s)-1].Y)+" forecast for all steps", ", ")
		}
		if mark(h.about.info()) != "" {
			t.Name = "cost, rehearsed"
		}
		ts = append(ts, t)
	}
	return ts
}

// lossText is a loss, or none where the step has no finite one.
func lossText(p point) string {
	if p.gap() {
		return "none"
	}
	return Loss(p.Y)
}

func wall(h *history) time.Duration { return h.last.Sub(h.first) }

// bestEval is the evaluation of the lineage with the lowest eval/loss, or, where completions are sampled, with the highest
// eval/reward; name is the metric.
func bestEval(evals []mile) (best mile, name string, ok bool) {
	for _, by := range []struct {
		name string
		sign float64 // -1: the highest
	}{{evalLoss, 1}, {evalReward, -1}} {
		for _, e := range evals {
			v, has := e.metrics[by.name]
			if has && !e.abandoned && !math.IsNaN(v) && (!ok || by.sign*v < by.sign*best.metrics[by.name]) {
				best, name, ok = e, by.name, true
			}
		}
		if ok {
			break
		}
	}
	return best, name, ok
}

func lossChart(h *history) chart {
	curves := withTrend(curve{name: "train/loss", class: "train", points: h.series[trainLoss]})
	curves = append(curves, curve{name: "eval/loss", class: "eval", points: held(h, evalLoss), dots: true})
	title := "Loss per trained token"
	if _, ok := h.series[rewardMargin]; ok {
		title = "Loss, the mean over pairs or rows"
	} else if _, ok := h.series[groups]; ok {
		title = "Loss, as the service returns it"
	}
	return newFigure(title, 1040, 360, Loss).draw(curves...)
}

// rewardChart is what a run that samples is followed by; the loss of such a run says little.
func rewardChart(h *history) chart {
	curves := withTrend(curve{name: rewardMean, class: "train", points: h.series[rewardMean]})
	curves = append(curves, curve{name: evalReward, class: "eval", points: held(h, evalReward), dots: true},
		curve{name: evalPass, class: "speed", points: held(h, evalPass), dots: true})
	return newFigure("Reward", 1040, 360, Loss).draw(curves...)
}

// held is a metric of the evaluations of the lineage.
func held(h *history, name string) series {
	var s series
	for _, e := range h.evals {
		if v, ok := e.metrics[name]; ok && !e.abandoned {
			s = s.add(point{e.done, v})
		}
	}
	return s
}

// withTrend draws a smoothed curve over a long one, which it makes faint.
func withTrend(c curve) []curve {
	window := len(c.points) / 40
	if window < 3 {
		return []curve{c}
	}
	trend := curve{name: fmt.Sprintf("smoothed over %d steps", window), class: c.class, points: c.points.smooth(window)}
	c.class += " faint"
	return []curve{c, trend}
}

// maxCharts bounds the small charts of a page.
const maxCharts = 24

// charts are the small ones: learning rate and speed, then every other metric by name, as the service sends them.
func (p *page) charts(h *history) {
	rates := h.series[learningRate]
	curves := []curve{{name: "learning_rate", class: "rate", points: rates}}
	if plan := h.about.Plan; plan != nil && len(plan.Rates) > len(rates) {
		planned := make(series, len(plan.Rates))
		for i, r := range plan.Rates {
			planned[i] = point{i + 1, r}
		}
		curves = append([]curve{{name: "planned", class: "rate faint", points: planned}}, curves...)
	}
	rate := smallFigure("Learning rate", Rate)
	rate.linear = true
	p.small(rate.draw(curves...))
	p.small(smallFigure("Tokens a second", Short).draw(withTrend(curve{name: "tokens/s", class: "speed", points: h.series[tokensPerSecond]})...))
	for _, name := range slices.Sorted(maps.Keys(h.series)) {
		if plainMetric(name) {
			format := func(v float64) string { return score(name, v) }
			p.small(smallFigure(printable(name), format).draw(withTrend(curve{name: printable(name), class: "other", points: h.series[name]})...))
		}
	}
}

func smallFigure(title string, format func(float64) string) *figure {
	return newFigure(title, 510, 220, format)
}

func (p *page) small(c chart) {
	switch {
	case c.Empty():
	case len(p.Charts) == maxCharts:
		p.MoreCharts++
	default:
		p.Charts = append(p.Charts, c)
	}
}

// plainMetric tells whether a metric gets a chart of its own: it is not shown elsewhere and is no mere counter.
func plainMetric(name string) bool {
	switch name {
	case trainLoss, rewardMean, learningRate, tokensPerSecond, elapsedSeconds, costUSD, costForecast, "epoch", "generation", "tokens", trainedTokens:
		return false
	}
	return !strings.HasPrefix(name, "eval/")
}

func (p *page) evaluations(h *history) {
	names := map[string]bool{}
	for _, e := range h.evals {
		for name := range e.metrics {
			names[name] = true
		}
	}
	columns := evalKeys(names)
	for _, name := range columns {
		p.EvalColumns = append(p.EvalColumns, printable(name))
	}
	best, _, ok := bestEval(h.evals)
	for _, e := range h.evals {
		row := evalRow{Step: Count(e.done), Abandoned: e.abandoned, Best: ok && !e.abandoned && e.done == best.done}
		for _, name := range columns {
			text := ""
			if v, has := e.metrics[name]; has {
				text = score(name, v)
			}
			row.Values = append(row.Values, text)
		}
		p.Evals = append(p.Evals, row)
	}
}

// provenance lists the lock, from lock.yaml or, without one, from the plan.
func (p *page) provenance(h *history) {
	if h.lock == "" && h.about.Plan != nil {
		for _, name := range slices.Sorted(maps.Keys(h.about.Plan.Lock)) {
			p.Lock = append(p.Lock, field{printable(name), printable(h.about.Plan.Lock[name])})
		}
		return
	}
	text := printableText(h.lock)
	fields, ok := plainMapping(text)
	if p.Lock = fields; !ok {
		p.LockText = text
	}
}

// plainMapping reads "name: value" lines, which is what a lock is; false for any other YAML, which is shown as it is.
func plainMapping(text string) ([]field, bool) {
	var fields []field
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n ")
		if line == "" || line[0] == '#' {
			continue
		}
		name, value, ok := strings.Cut(line, ": ")
		if !ok || strings.ContainsAny(line[:1], " \t-{[\"'") || value == "" || strings.ContainsAny(value[:1], "{[|>&*") {
			return nil, false
		}
		fields = append(fields, field{name, strings.Trim(value, `"'`)})
	}
	return fields, true
}

func (p *page) events(h *history) {
	for _, e := range slices.Backward(h.samples[max(0, len(h.samples)-samplesKept):]) {
		row := sampleRow{Count(e.Done + 1), printableText(e.Prompt), printableText(e.Text), "none", fmt.Sprintf("%.3g", e.Metrics["advantage"])}
		if v, ok := e.Metrics["reward"]; ok {
			row.Reward = fmt.Sprintf("%.3g", v)
		}
		p.Samples = append(p.Samples, row)
	}
	events := h.log[max(0, len(h.log)-logKept):]
	for _, e := range events {
		p.Log = append(p.Log, logRow{clock(e.Time), printable(string(e.Kind)), Count(e.Done), printable(e.Text)})
	}
}

func clock(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") }
