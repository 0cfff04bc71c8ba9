package rollout

import (
	"bytes"
	"context"
	"encoding/json"
	"math"
	"strconv"

	"trainer/internal/grader"
)

// Env is what a model acts in: it answers each turn of the assistant with messages and rewards, until it says that the
// conversation is done. It is safe for concurrent use.
type Env interface {
	// Reset begins an episode. attempt counts how often it has begun before, since what it was played with had died. The
	// error is an *Unplayed, or one that the run can't go on after.
	Reset(ctx context.Context, o Opening, attempt int) (Scene, Episode, error)
}

// Episode is one conversation with an environment. It is used by one goroutine.
type Episode interface {
	// Step answers a turn. The error is as that of Reset.
	Step(ctx context.Context, t Turn) (Reply, error)
	// Close follows every end, whoever made it.
	Close()
}

// Opening is what an environment is told of an episode.
type Opening struct {
	Episode string          `json:"episode"` // the same when it begins anew: b0.p2.m5
	Seed    int64           `json:"seed"`    // in [0, 2^53), the same when it begins anew
	Row     json.RawMessage `json:"row"`
	Target  json.RawMessage `json:"target"`
	Prompt  json.RawMessage `json:"prompt"`
}

// Scene is how an episode begins.
type Scene struct {
	Messages json.RawMessage // replace those of the prompt; nil: they do not
	Tools    json.RawMessage // definitions for the template; nil for none
	Done     bool            // no turn is played
}

// Turn is one of the assistant, from 0 on.
type Turn struct {
	Episode    string    `json:"episode"`
	Turn       int       `json:"turn"`
	Last       bool      `json:"last"` // the episode ends with the reply, whatever that says
	Message    Assistant `json:"message"`
	Text       string    `json:"text"`   // as sampled, without the end token
	Tokens     int       `json:"tokens"` // how many were sampled
	StopReason Stop      `json:"stop_reason"`
	ParseError string    `json:"parse_error,omitempty"` // what looks like a call and is not read stays in the content
}

// Assistant is a turn, taken apart.
type Assistant struct {
	Role      string     `json:"role"`
	Content   string     `json:"content"`
	Reasoning string     `json:"reasoning,omitempty"`
	ToolCalls []ToolCall `json:"tool_calls"`
}

// ToolCall is one of a turn.
type ToolCall struct {
	ID       string   `json:"id"`
	Type     string   `json:"type"`
	Function Function `json:"function"`
}

// Function is what is called; Arguments is JSON text.
type Function struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// Reply is the answer to a turn.
type Reply struct {
	Messages json.RawMessage // a list of the roles tool and user, not empty unless Done
	Reward   *float64        // of the turn, finite; nil for none
	Done     bool
}

// Unplayed is an episode without an end: its trajectory has no reward and is not trained.
type Unplayed struct {
	Why string // a word of package grader's, or one of those below
	// Again: the episode is lost with what remembered it, and may begin anew.
	Again bool
}

func (u *Unplayed) Error() string { return u.Why }

// Why an episode has no reward, beside the words of package grader.
const (
	NoMessages = "no_messages" // a reply that is not done has nothing to answer
	BadRole    = "bad_role"    // only the model speaks as the assistant
	NoReward   = "no_reward"   // no turn had one
	NoTurns    = "no_turns"    // it was done before the first
	Unfit      = "template"    // the template refuses what the environment says
)

// SceneOf reads the reply to a reset, a JSON object. The error is an *Unplayed.
func SceneOf(reply []byte) (Scene, error) {
	var r struct {
		Messages json.RawMessage `json:"messages"`
		Tools    json.RawMessage `json:"tools"`
		Done     bool            `json:"done"`
		Error    json.RawMessage `json:"error"`
	}
	switch err := json.Unmarshal(reply, &r); {
	case err != nil:
		return Scene{}, &Unplayed{Why: grader.BadReply}
	case given(r.Error):
		return Scene{}, &Unplayed{Why: grader.Failed}
	}
	s := Scene{Done: r.Done}
	if given(r.Messages) {
		s.Messages = r.Messages
	}
	if given(r.Tools) {
		s.Tools = r.Tools
	}
	return s, nil
}

// ReplyOf reads the reply to a step, a JSON object; with last the episode is done, whatever it says. The error is an *Unplayed.
func ReplyOf(reply []byte, last bool) (Reply, error) {
	var r struct {
		Messages json.RawMessage `json:"messages"`
		Reward   json.RawMessage `json:"reward"`
		Done     *bool           `json:"done"`
		Error    json.RawMessage `json:"error"`
	}
	switch err := json.Unmarshal(reply, &r); {
	case err != nil:
		return Reply{}, &Unplayed{Why: grader.BadReply}
	case given(r.Error):
		return Reply{}, &Unplayed{Why: grader.Failed}
	case r.Done == nil:
		return Reply{}, &Unplayed{Why: grader.Missing}
	}
	out := Reply{Messages: r.Messages, Done: *r.Done || last}
	reward, why := rewardOf(r.Reward)
	if why == "" && !out.Done {
		why = unanswerable(r.Messages)
	}
	if why != "" {
		return Reply{}, &Unplayed{Why: why}
	}
	out.Reward = reward
	return out, nil
}

func given(raw json.RawMessage) bool { return len(raw) > 0 && !bytes.Equal(raw, []byte("null")) }

// rewardOf is a finite number, nil where there is none; why says what is wrong with anything else.
func rewardOf(raw json.RawMessage) (reward *float64, why string) {
	switch {
	case len(raw) == 0:
		return nil, ""
	case !given(raw):
		return nil, grader.Null
	case raw[0] != '-' && (raw[0] < '0' || raw[0] > '9'):
		return nil, grader.NotANumber
	}
	v, _ := strconv.ParseFloat(string(raw), 64) // JSON is a number of Go's; one that overflows is infinite
	if math.IsInf(v, 0) {
		return nil, grader.NotFinite
	}
	return &v, ""
}

// unanswerable says why no turn can follow messages.
func unanswerable(raw json.RawMessage) string {
	var messages []struct {
		Role string `json:"role"`
	}
	if !given(raw) {
		return NoMessages
	}
	if json.Unmarshal(raw, &messages) != nil {
		return grader.BadReply
	}
	if len(messages) == 0 {
		return NoMessages
	}
	for _, m := range messages {
		if m.Role != "tool" && m.Role != "user" {
			return BadRole
		}
	}
	return ""
}
