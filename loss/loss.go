// Package loss holds the value, the gradient and the knobs of each loss, on plain slices: nothing here knows a model, a
// wire or a file. The sandbox computes with it what the service computes, and the runner computes with it what the
// service does not offer, so there is one formula for both. All arithmetic is float64, summed in position order.
package loss

import "errors"

// Errors of Eval, for errors.Is.
var (
	// ErrInvalid: the inputs break a rule of the loss (unequal lengths, a negative weight, an empty step).
	ErrInvalid = errors.New("invalid input")
	// ErrNonFinite: the value or a gradient is NaN, infinite, or beyond float32.
	ErrNonFinite = errors.New("non-finite loss")
)

// Datum is one sequence as a loss sees it. Every slice is [T]; entry t speaks of predicting Targets[t] from Input[..t]. All
// log-probabilities are natural. A slice that the loss has no use for may be nil.
type Datum struct {
	Input, Targets []int32
	// Weights are >= 0, finite and never nil; 0 leaves t out, whatever lies under it. cross_entropy and the preference losses
	// multiply by them; the policy losses and reverse_kl ask only whether they are 0.
	Weights         []float64
	Advantages      []float64 // how much better than expected the token was; a constant
	OldLogprobs     []float64 // under the weights that sampled the sequence
	RefLogprobs     []float64 // under the frozen reference
	TeacherLogprobs []float64 // under the teacher
	// TopIDs and TopLogprobs are [T][<= 20]: the tokens that a teacher finds likeliest at each position, in any order.
	TopIDs      [][]int32
	TopLogprobs [][]float64
	// Group is the pair or the prompt that the sequence belongs to.
	Group int
	// Desirable is kto's label.
	Desirable bool
	// Mismatched marks a sequence of kto that pairs a prompt with another prompt's completion: it is scored for the KL term
	// alone, and gets no gradient.
	Mismatched bool
	// RoutedExperts is the key of the experts that sampling chose, which training then takes; empty: its own. No loss looks
	// at it.
	RoutedExperts string
}

// Result is of a whole optimiser step: Value is what is minimised, Grads is [B][T], the derivative of Value by each
// log-probability (0 where the loss leaves a position out), Metrics are the loss's own numbers by name.
type Result struct {
	Value   float64
	Grads   [][]float64
	Metrics map[string]float64
}

// Loss is a struct whose fields are its recipe parameters: yaml tags are the keys, validate tags their bounds.
type Loss interface {
	// Eval: now is [B][T], natural logs under the weights being trained; step is the whole optimiser step, [B].
	Eval(now [][]float64, step []Datum) (Result, error)
}

// Referenced is a Loss that may compare with the frozen reference: where UsesReference says so, its Datums have
// RefLogprobs.
type Referenced interface {
	Loss
	UsesReference() bool
}

// Accompanied is a Loss that is computed from more than the sequences it trains: Companions, made of those of a step, are
// scored with them, stand behind them in what Eval is given, and get no gradient. There may be none.
type Accompanied interface {
	Loss
	Companions(step []Datum) []Datum
}

// FromRows is a Loss of distillation that can learn from what rows say a teacher would: a recipe that has neither a rollout nor a
// teacher is then of RowsLoop.
type FromRows interface {
	Loss
	RowsLoop() Loop
}

// Loop is where a step's data come from; the loss type decides it.
type Loop string

// The loops.
const (
	Supervised    Loop = "supervised"
	Reinforcement Loop = "reinforcement"
	Preference    Loop = "preference"
	Distillation  Loop = "distillation"
)

// Kind is a row of the table of losses. New returns a pointer to a fresh struct with its defaults set. A kind that asks outside
// has a field Call, set by who may let it; nil means that it is not allowed. That of preferences is the loop of all that is
// computed from scores, so it is command's, whatever its rows are.
type Kind struct {
	Name string
	Loop Loop
	New  func() Loss
}

// In is the loop of a recipe with the kind's loss; asks says that it has a rollout or a teacher.
func (k Kind) In(asks bool) Loop {
	if l, ok := k.New().(FromRows); ok && !asks {
		return l.RowsLoop()
	}
	return k.Loop
}

// Kinds is the table; a new loss is one file and one row.
func Kinds() []Kind {
	return []Kind{
		{"cross_entropy", Supervised, func() Loss { return &CrossEntropy{} }},
		{"grpo", Reinforcement, func() Loss { return newGRPO() }},
		{"ppo", Reinforcement, func() Loss { return newPPO() }},
		{"cispo", Reinforcement, func() Loss { return newCISPO() }},
		{"dro", Reinforcement, func() Loss { return &DRO{} }},
		{"dppo", Reinforcement, func() Loss { return newDPPO() }},
		{"importance_sampling", Reinforcement, func() Loss { return &ImportanceSampling{} }},
		{"dpo", Preference, func() Loss { return newDPO() }},
		{"ipo", Preference, func() Loss { return newIPO() }},
		{"hinge", Preference, func() Loss { return newHinge() }},
		{"simpo", Preference, func() Loss { return newSimPO() }},
		{"orpo", Preference, func() Loss { return newORPO() }},
		{"kto", Preference, func() Loss { return newKTO() }},
		{"slic", Preference, func() Loss { return newSLiC() }},
		{"reverse_kl", Distillation, func() Loss { return newReverseKL() }},
		{"forward_kl", Distillation, func() Loss { return newForwardKL() }},
		{"command", Preference, func() Loss { return newCommand() }},
	}
}
