package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"trainer/runner"
)

// board is what Progress shows, as text: one live line, and lines that stay above it. It has no clock and no terminal.
// Before the first step the live line is the stage with its time, then a bar with the headlines.
type board struct {
	*course
	color bool
	stage string    // as the last stage event has it
	since time.Time // when the stage began; a queue position is no new stage
	steps bool      // a step of this life is done
	ended bool
}

func newBoard(r runner.RunInfo, color bool, now time.Time) *board {
	return &board{course: newCourse(r), color: color, stage: "starting", since: now}
}

// opening is what stays at the top.
func (b *board) opening() []string {
	lines := []string{opening(b.run)}
	if b.run.StandIn {
		lines = append(lines, b.paint(yellow, standInNote(b.run)))
	}
	return lines
}

// add takes an event and returns the lines that it leaves above the live line; an end leaves none, it is said by final.
func (b *board) add(e runner.Event) []string {
	b.course.add(e)
	switch e.Kind {
	case runner.StageEvent:
		return b.enter(e.Text, e.Time)
	case runner.StepEvent:
		b.steps = true
		return b.enter(training, e.Time)
	case runner.EndEvent:
		b.ended = true
	case runner.EvalEvent:
		line := b.sentence(e)
		for _, f := range evalFields(e.Metrics) {
			line += "  " + printable(f.name) + " " + f.value
		}
		return []string{line}
	case runner.SaveEvent: // its registered name, which files and the end of the run have, would break the line
		line, _, _ := strings.Cut(b.sentence(e), " registered as ")
		return []string{line}
	case runner.WarnEvent:
		return []string{b.paint(yellow, "warning: "+b.sentence(e))}
	case runner.RetryEvent, runner.SampleEvent:
		return []string{b.paint(dim, b.sentence(e))}
	default:
		return []string{b.sentence(e)}
	}
	return nil
}

// enter begins a stage and tells how long the one before took, where that is worth a line.
func (b *board) enter(stage string, now time.Time) []string {
	before, since := b.stage, b.since
	b.stage = printable(stage)
	if head(before) == head(b.stage) {
		return nil
	}
	b.since = now
	if took := now.Sub(since); took >= time.Second && before != training && before != "starting" {
		return []string{b.paint(dim, head(before)+" took "+Duration(took))}
	}
	return nil
}

// training is the stage that the bar itself shows.
const training = "training"

// head is a stage without what changes within it: "queued (position 3)" is "queued".
func head(stage string) string {
	h, _, _ := strings.Cut(stage, " (")
	return h
}

// live is the line at the bottom, at most width columns wide.
func (b *board) live(width int, now time.Time) string {
	if !b.steps && !b.ended {
		return b.paint(cyan, spinner(now)) + fit(" "+b.stage+" "+Duration(now.Sub(b.since)), width-1)
	}
	left := fmt.Sprintf("%*s ", len(Count(b.total))*2+1, b.progress()) // of one width from the first step to the last
	right := b.status(now, max(0, width-utf8.RuneCountInString(left)-leastBar-1))
	columns := min(mostBar, width-utf8.RuneCountInString(left)-utf8.RuneCountInString(right)-1)
	if columns < leastBar {
		return strings.TrimRight(fit(left+right, width), " ")
	}
	full, rest := bar(columns, b.done, b.total)
	return strings.TrimRight(left+b.paint(cyan, full)+b.paint(dim, rest)+" "+right, " ")
}

// final is the line under the bar.
func (b *board) final(e runner.Event) string {
	line := b.sentence(e)
	for _, f := range b.endFields() {
		line += ", " + f.name + " " + f.value
	}
	return b.paint([...]string{note: green, caution: yellow, fault: red}[severityOf(e)], line)
}

const (
	leastBar = 8
	mostBar  = 40
)

// part is a piece of the status that leaves when there is no room: the highest rank first.
type part struct {
	text string
	rank int
}

// status is the headlines, as many as fit into width columns.
func (b *board) status(now time.Time, width int) string {
	parts := b.parts(now)
	for {
		texts := make([]string, len(parts))
		for i, p := range parts {
			texts[i] = p.text
		}
		line := strings.Join(texts, "  ")
		if utf8.RuneCountInString(line) <= width || len(parts) == 0 {
			return line
		}
		least := slices.MaxFunc(parts, func(x, y part) int { return cmp.Compare(x.rank, y.rank) })
		parts = slices.DeleteFunc(parts, func(p part) bool { return p.rank == least.rank })
	}
}

func (b *board) parts(now time.Time) []part {
	var parts []part // of steady widths, so that the bar does not jump
	for _, h := range headlines {
		if shown(b.run, b.last, h.key) {
			parts = append(parts, part{strings.Replace(h.text, "%s", fmt.Sprintf("%5s", h.format(b.last[h.key])), 1), h.rank})
		}
	}
	if d, ok := b.eta.left(now); ok && !b.ended {
		parts = append(parts, part{fmt.Sprintf("eta %-6s", Duration(d)), 3})
	}
	if b.stage != training && b.stage != "starting" && !b.ended {
		parts = append(parts, part{b.stage, 7})
	}
	if m := mark(b.run); m != "" {
		parts = append(parts, part{"[" + m + "]", 0})
	}
	return parts
}

// bar is the filled and the empty part of columns, in eighths of one.
func bar(columns, done, total int) (full, rest string) {
	eighths := 0
	if total > 0 {
		eighths = int(float64(columns*8) * min(1, max(0, float64(done)/float64(total))))
	}
	full = strings.Repeat("█", eighths/8)
	if part := eighths % 8; part > 0 {
		full += string([]rune("▏▎▍▌▋▊▉")[part-1])
	}
	return full, strings.Repeat("░", columns-utf8.RuneCountInString(full))
}

// spinner turns with the clock, so that a waiting terminal is seen to live.
func spinner(now time.Time) string {
	frames := []rune("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏")
	return string(frames[uint64(now.UnixMilli())/150%uint64(len(frames))])
}

// fit cuts s to width columns.
func fit(s string, width int) string {
	runes := []rune(s)
	if len(runes) <= width {
		return s
	}
	return string(runes[:max(0, width)])
}

// The colours, as select graphic rendition codes.
const (
	dim    = "2"
	red    = "31"
	green  = "32"
	yellow = "33"
	cyan   = "36"
)

func (b *board) paint(code, s string) string {
	if !b.color || s == "" {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}
