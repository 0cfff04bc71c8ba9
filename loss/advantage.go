package loss

import (
	"fmt"
	"math"
	"slices"
)

// What a reward is compared with, and what the difference is divided by; the words of advantage.baseline and .scale.
const (
	GroupMean   = "group_mean"    // of the completions of its prompt
	LeaveOneOut = "leave_one_out" // of the other completions of its prompt
	BatchMean   = "batch_mean"    // of all completions, each as often as it has trained tokens
	GroupStd    = "group_std"     // of the completions of its prompt, of a sample
	BatchStd    = "batch_std"     // of all completions, each as often as it has trained tokens
	None        = "none"
)

// The additions that keep a scale from being 0: GroupEps to a deviation, as TRL and torchforge; BatchEps to a variance, as
// REINFORCE++.
const (
	GroupEps = 1e-4
	BatchEps = 1e-8
)

// Advantage turns rewards into advantages. group_mean by group_std is GRPO (Shao et al. 2024, arXiv 2402.03300), group_mean
// by none Dr. GRPO (Liu et al. 2025, arXiv 2503.20783), leave_one_out by none RLOO (Ahmadian et al. 2024, arXiv 2402.14740),
// batch_mean by batch_std REINFORCE++ without discount (Hu 2025, arXiv 2501.03262).
type Advantage struct {
	Baseline, Scale string
	Eps             float64 // added to a group's deviation; 0 is GroupEps
}

// Of returns the advantage of every completion, [groups][G]. rewards is [groups][G], finite, G >= 1, groups may differ in
// G. tokens, of the same shape, are the trained tokens of each completion, which statistics of the batch count by; nil
// counts each completion once. A group whose rewards are all equal has advantages of exactly 0 where baseline or scale is of
// the group, and so has one of a single completion; a batch alike. ErrInvalid for words that are none, and for shapes.
func (a Advantage) Of(rewards [][]float64, tokens [][]int) ([][]float64, error) {
	if err := a.check(rewards, tokens); err != nil {
		return nil, fmt.Errorf("turning rewards into advantages: %w", err)
	}
	mean, deviation := batchMoments(rewards, tokens)
	flatBatch := Flat(slices.Concat(rewards...))
	out := make([][]float64, len(rewards))
	for g, group := range rewards {
		out[g] = make([]float64, len(group))
		if a.ofGroup() && Flat(group) || a.ofBatch() && flatBatch {
			continue
		}
		m, s := moments(group)
		for i, reward := range group {
			v := reward
			switch a.Baseline {
			case GroupMean:
				v -= m
			case LeaveOneOut:
				v = float64((reward-m)*float64(len(group))) / float64(len(group)-1)
			case BatchMean:
				v -= mean
			}
			switch a.Scale {
			case GroupStd:
				v /= s + a.eps()
			case BatchStd:
				v /= deviation
			}
			out[g][i] = v
		}
	}
	return out, nil
}

func (a Advantage) ofGroup() bool {
	return a.Baseline == GroupMean || a.Baseline == LeaveOneOut || a.Scale == GroupStd
}

func (a Advantage) ofBatch() bool { return a.Baseline == BatchMean || a.Scale == BatchStd }

func (a Advantage) eps() float64 {
	if a.Eps == 0 {
		return GroupEps
	}
	return a.Eps
}

func (a Advantage) check(rewards [][]float64, tokens [][]int) error {
	if err := oneOf("baseline", a.Baseline, GroupMean, LeaveOneOut, BatchMean, None); err != nil {
		return err
	}
	if err := oneOf("scale", a.Scale, GroupStd, BatchStd, None); err != nil {
		return err
	}
	if err := atLeast("eps", a.Eps, 0); err != nil {
		return err
	}
	if tokens != nil && len(tokens) != len(rewards) {
		return fmt.Errorf("%d groups of rewards and %d of tokens: %w", len(rewards), len(tokens), ErrInvalid)
	}
	for g, group := range rewards {
		if len(group) == 0 {
			return fmt.Errorf("group %d is empty: %w", g, ErrInvalid)
		}
		if tokens != nil && len(tokens[g]) != len(group) {
			return fmt.Errorf("group %d: %d rewards and %d counts of tokens: %w", g, len(group), len(tokens[g]), ErrInvalid)
		}
		for i, v := range group {
			if beyondFloat32(v) {
				return fmt.Errorf("group %d, completion %d: reward %g, want a finite number: %w", g, i, v, ErrInvalid)
			}
			if tokens != nil && tokens[g][i] < 0 {
				return fmt.Errorf("group %d, completion %d: %d trained tokens: %w", g, i, tokens[g][i], ErrInvalid)
			}
		}
	}
	return nil
}

// Flat says that a group's rewards teach nothing: they are all equal, or there is one. It compares the ends and not the
// deviation, which rounding leaves above 0 for three times 0.1.
func Flat(group []float64) bool {
	return len(group) == 0 || slices.Max(group) == slices.Min(group)
}

// moments are the mean and the deviation of a sample; that of one value is 0.
func moments(x []float64) (mean, deviation float64) {
	for _, v := range x {
		mean += v
	}
	mean /= float64(len(x))
	squares := 0.0
	for _, v := range x {
		squares += float64((v - mean) * (v - mean))
	}
	return mean, math.Sqrt(squares / float64(max(len(x)-1, 1)))
}

// batchMoments are the mean of all rewards, and the root of their variance and BatchEps.
func batchMoments(rewards [][]float64, tokens [][]int) (mean, deviation float64) {
	count := func(g, i int) float64 {
		if tokens == nil {
			return 1
		}
		return float64(tokens[g][i])
	}
	sum, n := 0.0, 0.0
	for g, group := range rewards {
		for i, v := range group {
			sum += float64(count(g, i) * v)
			n += count(g, i)
		}
	}
	if n > 0 {
		mean = sum / n
	}
	squares := 0.0
	for g, group := range rewards {
		for i, v := range group {
			squares += float64(count(g, i) * float64((v-mean)*(v-mean)))
		}
	}
	return mean, math.Sqrt(squares/max(n-1, 1) + BatchEps)
}
