// Package grader turns a completion into a score: a file a kind, each a struct whose fields are its parameters in the recipe,
// and a Set that grades by all rewards of a recipe and adds them up. A grader is a pure function of the completion, without a
// clock, so the same completion has the same reward on every machine; the three kinds that ask outside (judge, command, http)
// do so through a Call that they are given. What can't be scored is never paid 0 instead: it is unscored, with a reason.
package grader

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strings"
)

// Completion is what is graded. A grader does not change it.
type Completion struct {
	// Sample names the completion, the same when it is asked again: b0.p2.m5.
	Sample string
	// Prompt is the prompt as it came in the row: a JSON list of messages, or a JSON string where the recipe has no template.
	Prompt json.RawMessage
	// Rendered is the prompt as the model saw it. Where it ends with the start of a reasoning block, less trailing blanks, the
	// completion begins inside the block. The prompt is never graded.
	Rendered string
	// Open says the same of a prompt that was not rendered.
	Open bool
	// Text is the completion as sampled: decoded with control tokens kept as text, less the stop token or stop string.
	Text string
	// Tokens are the sampled ids, without the stop token.
	Tokens []int32
	// StopReason is stop or length.
	StopReason string
	// Target is as in the row: a JSON string, number or boolean, a list of these, or nil for none.
	Target json.RawMessage
	// Row is all columns of the row, a JSON object.
	Row json.RawMessage
}

// Score is what a grader says of one completion: Value, finite, unless Unscored. Why says what a Value of 0 or the lack of
// one comes from: one of the words below, or what a stranger's grader gave.
type Score struct {
	Value    float64
	Unscored bool
	Why      string
	Info     json.RawMessage // kept with the sample; nil for none
}

// Why a score is 0.
const (
	NoAnswer      = "no_answer"
	Empty         = "empty"
	Unparsed      = "unparsed"
	TooLong       = "too_long"
	OpenReasoning = "open_reasoning"
	Wrong         = "wrong"
)

// Why there is no score.
const (
	NoTarget   = "no_target"
	BadTarget  = "undecidable_target"
	Null       = "null"
	Missing    = "missing"
	NotANumber = "not_a_number"
	NotFinite  = "not_finite"
	TimedOut   = "timeout"
	Died       = "died"
	Protocol   = "protocol"
	Failed     = "error"
	Skipped    = "all_skipped"
	BadReply   = "bad_reply"
)

// Reason is why as it stands in the name of a metric: one of the words above, or other. What a stranger's grader says may be new
// at every completion; it is kept with the sample.
func Reason(why string) string {
	switch why {
	case NoTarget, BadTarget, Null, Missing, NotANumber, NotFinite, TimedOut, Died, Protocol, Failed, Skipped, BadReply:
		return why
	}
	return "other"
}

// Grader is a struct whose fields are its parameters in the recipe: yaml tags are the keys, validate tags their bounds.
type Grader interface {
	// Grade scores one completion; it is safe for concurrent use. An error means that the run can't go on: the context is
	// done, or the grader said so itself. Whatever else goes wrong is an unscored Score.
	Grade(context.Context, Completion) (Score, error)
}

// Checker is a Grader whose parameters have rules beyond the bounds of one. Check returns nil or a Faults; it is asked before
// the first Grade.
type Checker interface{ Check() error }

// Opener is a Grader that reads a file: Open is called once, before the first Grade, with the folder that relative paths start
// in. Its error is a Fault where a parameter is to blame.
type Opener interface{ Open(dir string) error }

// Fault is a parameter that breaks a rule.
type Fault struct {
	Key string // as in the recipe: pattern
	Msg string
}

func (f *Fault) Error() string { return f.Key + ": " + f.Msg }

func fault(key, format string, a ...any) error { return &Fault{key, fmt.Sprintf(format, a...)} }

func paid(v float64) Score {
	if v == 0 {
		v = 0 // −0 becomes 0
	}
	return Score{Value: v}
}

func zero(why string) Score { return Score{Why: why} }

func unscored(why string) Score { return Score{Unscored: true, Why: why} }

// verdict pays 1 or says that the answer is wrong.
func verdict(right bool) Score {
	if right {
		return paid(1)
	}
	return zero(Wrong)
}

// finite holds a stranger's number to what can be trained on.
func finite(v float64) Score {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return unscored(NotFinite)
	}
	return paid(v)
}

// targets are the texts of a target: one, or those of a list; ok is false where there is none or one of them is blank.
func (c Completion) targets() (all []string, ok bool) {
	var list []json.RawMessage
	if json.Unmarshal(c.Target, &list) != nil {
		list = []json.RawMessage{c.Target}
	}
	for _, raw := range list {
		text, ok := targetText(raw)
		if !ok || strings.TrimSpace(text) == "" {
			return nil, false
		}
		all = append(all, text)
	}
	return all, len(all) > 0
}

// target is the only text of a target.
func (c Completion) target() (string, bool) {
	all, ok := c.targets()
	if !ok || len(all) != 1 {
		return "", false
	}
	return all[0], true
}

// targetText is a string, or a number or boolean as it is written.
func targetText(raw json.RawMessage) (string, bool) {
	var s string
	text := strings.TrimSpace(string(raw))
	switch {
	case text == "" || text == "null" || text[0] == '{' || text[0] == '[':
		return "", false
	case json.Unmarshal(raw, &s) == nil:
		return s, true
	}
	return text, json.Valid(raw)
}
