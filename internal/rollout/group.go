package rollout

import (
	"fmt"

	"trainer/loss"
	"trainer/recipe"
)

// Group is the completions of one prompt.
type Group struct {
	Row     int     // of the prompt in its set
	Prompt  []int32 // [P], P >= 1
	Taught  []int32 // [P'], P' >= 1: what a teacher is given in place of Prompt; nil: the same
	Members []Member
	// Dropped says why nothing of the group is trained; empty where something may be.
	Dropped Drop
}

// Drop is why a group is not trained.
type Drop string

// The reasons to drop a group.
const (
	Kept         Drop = ""
	ZeroVariance Drop = "zero_variance" // its rewards are all equal, so that they compare nothing
	TooFew       Drop = "too_few"       // fewer scored members than rollout.on_error.min_group_size
	Surplus      Drop = "surplus"       // dynamic sampling has found enough before it
	Unsampled    Drop = "unsampled"     // the service failed to sample it, as often as it was asked
)

// Member is a completion with what it earned.
type Member struct {
	Sequence
	Text    string // as graders read it
	Version int64  // of the weights that sampled its first token, as the service counts
	// Reward is the total, with what Truncated adds; meaningless where Unscored says why there is none.
	Reward    float64
	Unscored  string
	Parts     []Part
	Advantage float64
	Teacher   []float64 // [T], natural logs of Tokens under a teacher's weights; nil where there is none
	// TopIDs and TopLogprobs are [T][<= 20]: what a teacher finds likeliest in place of Tokens; nil where none was asked.
	TopIDs      [][]int32
	TopLogprobs [][]float64
	Trained     bool      // it is in the loss
	Ref         []float64 // [T], natural logs of its tokens under the reference; nil: there is none
	// Prompt is what an environment began with, [P]; nil: the group's.
	Prompt []int32
	// Observed are the stretches of Tokens that an environment wrote, in order: they are not trained, and have no Logprobs.
	Observed []Span
}

// Span is the tokens [From, To) of a completion.
type Span struct{ From, To int }

// Sampled is how many tokens the model wrote.
func (m *Member) Sampled() int {
	n := len(m.Tokens)
	for _, s := range m.Observed {
		n -= s.To - s.From
	}
	return n
}

// Turns are the stretches of Tokens that the model wrote, in order.
func (m *Member) Turns() []Span {
	var out []Span
	at := 0
	for _, s := range m.Observed {
		out = append(out, Span{at, s.From})
		at = s.To
	}
	return append(out, Span{at, len(m.Tokens)})
}

// Part is what one grader gave, before clip and weight; Why where it gave nothing, or says more.
type Part struct {
	Name   string
	Value  float64
	Scored bool
	Why    string
}

// Penalise adds to the rewards, in place and once, what rollout.truncated: penalise takes off long completions.
func Penalise(groups []Group, r *recipe.Rollout) {
	if r.Truncated != "penalise" {
		return
	}
	for _, g := range groups {
		for j := range g.Members {
			m := &g.Members[j]
			m.Reward += loss.OverlongPenalty(len(m.Tokens), r.SamplingParams.MaxTokens, r.TruncatedBuffer)
		}
	}
}

// Weigh turns the rewards of a rollout batch into advantages and says what is trained, in place. A member without a reward is in no mean and is not trained; a group with too
// few others is dropped, and one whose rewards are all equal where they are compared within the group, unless the recipe
// keeps it. Statistics of the batch are over the groups that are left.
func Weigh(groups []Group, r *recipe.Rollout, a *recipe.Advantage) error {
	within := a.Baseline == loss.GroupMean || a.Baseline == loss.LeaveOneOut || a.Scale == loss.GroupStd
	var rewards [][]float64
	var tokens [][]int
	var kept []*Group
	for i := range groups {
		g := &groups[i]
		var earned []float64
		var counts []int
		for j := range g.Members {
			m := &g.Members[j]
			m.Advantage, m.Trained = 0, false
			if m.Unscored != "" {
				continue
			}
			earned = append(earned, m.Reward)
			counts = append(counts, trainable(m, r))
		}
		switch {
		case g.Dropped == Unsampled || g.Dropped == Surplus:
		case len(earned) < max(1, r.OnError.MinGroupSize):
			g.Dropped = TooFew
		case within && a.ZeroVariance == "drop" && loss.Flat(earned):
			g.Dropped = ZeroVariance
		default:
			g.Dropped = Kept
			rewards, tokens, kept = append(rewards, earned), append(tokens, counts), append(kept, g)
		}
	}
	if len(kept) == 0 {
		return nil
	}
	advantages, err := loss.Advantage{Baseline: a.Baseline, Scale: a.Scale}.Of(rewards, tokens)
	if err != nil {
		return fmt.Errorf("advantages of the rollout batch: %w", err)
	}
	for i, g := range kept {
		n := 0
		for j := range g.Members {
			m := &g.Members[j]
			if m.Unscored != "" {
				continue
			}
			m.Advantage, m.Trained = advantages[i][n], tokens[i][n] > 0
			n++
		}
	}
	return nil
}

// trainable is how many tokens of a completion are trained: none where it was cut and the recipe masks those.
func trainable(m *Member, r *recipe.Rollout) int {
	if r.Truncated == "mask" && m.Stop == Cut {
		return 0
	}
	return m.Sampled()
}
