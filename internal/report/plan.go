package report

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"trainer/runner"
)

// plotHeight is the rows of the learning-rate plot.
const plotHeight = 10

// Plan writes a plan as text for width columns (0 is 80): steps, rows and tokens, a histogram of lengths, the learning
// rate over the steps, the hashes of the lock, and what it costs where a price is known.
func Plan(w io.Writer, p *runner.Plan, width int) error {
	if width <= 0 {
		width = 80
	}
	blocks := [][]string{planFigures(p)}
	if h := histogram(p.Lengths, width); h != nil {
		blocks = append(blocks, append([]string{"row length in tokens"}, h...))
	}
	if len(p.Rates) > 0 {
		blocks = append(blocks, append([]string{"learning rate by step"}, plot(p.Rates, width, plotHeight, Rate)...))
	}
	if len(p.Lock) > 0 {
		blocks = append(blocks, append([]string{"lock"}, lockLines(p.Lock)...))
	}
	if p.Cost != nil {
		blocks = append(blocks, append([]string{"cost"}, costLines(p.Cost, p.Lock["backend"] == "sandbox")...))
	}
	var text strings.Builder
	for i, block := range blocks {
		if i > 0 {
			text.WriteByte('\n')
		}
		for _, line := range block {
			text.WriteString(line + "\n")
		}
	}
	if _, err := io.WriteString(w, text.String()); err != nil {
		return fmt.Errorf("writing the plan: %w", err)
	}
	return nil
}

func planFigures(p *runner.Plan) []string {
	var lines []string
	for _, f := range planFields(p) {
		lines = append(lines, fmt.Sprintf("%-14s %s", f.name, f.value))
	}
	return lines
}

// planFields are the figures of a plan, the same in text and on the page.
func planFields(p *runner.Plan) []field {
	fields := []field{
		{"steps", fmt.Sprintf("%s: %s of %s", Count(len(p.Rates)), plural(p.Epochs, "epoch", "epochs"), plural(float64(p.BatchesPerEpoch), "batch", "batches"))},
		{"batch", plural(float64(p.BatchSize), "row", "rows") + " a step"},
		{"rows", Count(p.Rows) + " an epoch, " + Count(p.Held) + " held out"},
		{"tokens", Count(p.Tokens) + " in all steps"},
		{"trained tokens", fmt.Sprintf("%s (%s)", Count(p.Trained), percent(p.Trained, p.Tokens))},
	}
	if p.GroupSize > 0 {
		fields[1] = field{"batch", fmt.Sprintf("%s of %s, %s", plural(float64(p.BatchSize), "prompt", "prompts"), plural(float64(p.GroupSize), "completion", "completions"), plural(float64(max(1, p.StepsPerBatch)), "step", "steps"))}
		fields[2].value = Count(p.Rows) + " prompts an epoch, " + Count(p.Held) + " held out"
		fields[3].value = Count(p.Tokens) + " of prompts in all steps, each once a completion"
		fields[4] = field{"sampled", "at most " + Count(p.Sampled) + " tokens"}
	}
	if p.Copies > 0 && p.GroupSize > 0 {
		fields[1].value += ", each sent up to " + Count(p.Copies) + " times"
		fields[3].value = Count(p.Tokens) + " of prompts in all steps, " + Count(p.Copies) + " times a completion"
	} else if p.Copies > 0 {
		fields[1].value += ", each sent up to " + Count(p.Copies) + " times"
	}
	if n := len(p.Rates); n > 0 {
		fields = append(fields,
			field{"learning rate", fmt.Sprintf("%s at the peak, %s at the last step", Rate(slices.Max(p.Rates)), Rate(p.Rates[n-1]))},
			field{"warm-up", plural(float64(p.Warmup), "step", "steps")})
	}
	return fields
}

// plural is a number with its noun: 1 epoch, 2.5 epochs, 3 batches.
func plural(n float64, one, many string) string {
	noun := many
	if n == 1 {
		noun = one
	}
	if n == float64(int64(n)) {
		return Count(int64(n)) + " " + noun
	}
	return fmt.Sprintf("%.4g %s", n, noun)
}

// histogram is one line a bin: bound, count, a bar of at most the rest of width.
func histogram(h runner.Histogram, width int) []string {
	bins := min(len(h.Bounds), len(h.Counts))
	most, longest := 0, 0
	for i := range bins {
		most, longest = max(most, h.Counts[i]), max(longest, len(Count(h.Bounds[i])), len(Count(h.Counts[i])))
	}
	if most == 0 {
		return nil
	}
	room := max(1, min(40, width-2*longest-6))
	lines := make([]string, 0, bins+1)
	for i := range bins {
		length := h.Counts[i] * room / most
		if h.Counts[i] > 0 {
			length = max(1, length)
		}
		line := fmt.Sprintf("<= %*s  %*s %s", longest, Count(h.Bounds[i]), longest, Count(h.Counts[i]), strings.Repeat("#", length))
		lines = append(lines, strings.TrimRight(line, " "))
	}
	return append(lines, "longest "+Count(h.Longest))
}

func lockLines(l runner.Lock) []string {
	longest := 0
	for name := range l {
		longest = max(longest, len(name))
	}
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(l)) {
		lines = append(lines, printable(fmt.Sprintf("%-*s  %s", longest, name, brief(l[name]))))
	}
	return lines
}

// brief is the start of a hash, enough to compare by eye; whole ones are in lock.yaml and in JSON. Else it is the value.
func brief(value string) string {
	const hash, kept = 64, 16
	if len(value) == hash {
		return value[:kept] + "…"
	}
	return value
}

func costLines(c *runner.Cost, sandbox bool) []string {
	if c.USDPerHour == 0 {
		return []string{"nothing: " + USD(0) + " an hour"}
	}
	lines := []string{USD(c.USDPerHour) + " for every hour that the GPUs are ready"}
	if c.TeacherUSD > 0 {
		lines = append(lines, fmt.Sprintf("of which %s for the teacher, which has a resource of its own", USD(c.TeacherUSD)))
	}
	if c.DeadMan > 0 {
		lines = append(lines, fmt.Sprintf("a kill -9 can leave them running for %s after the queued work: %s", Duration(c.DeadMan), USD(c.DeadManUSD)))
	}
	if sandbox {
		lines = append(lines, "a rehearsal: the sandbox charges nothing")
	}
	return lines
}
