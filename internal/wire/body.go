package wire

// ForwardBackward is the body of forward-backward. The flags belong to the POST alone: an uploaded body has only Loss
// and Samples, and the POST that names it by PayloadID has them shortened.
type ForwardBackward struct {
	Shape Shape // that it was read in, or is written in

	Loss          LossConfig
	Samples       []Sample
	ForwardOnly   bool // scores without gradients
	ReturnOutputs bool // return_loss_fn_outputs: the log-probabilities come back
	PayloadID     string
}

// CustomForwardBackward is the body of custom-forward-backward: the derivative of a loss by the log-probability of each
// target, [B][T], used as it is. An uploaded body has only Samples and Gradients. The answer's output is empty.
type CustomForwardBackward struct {
	Shape     Shape
	Samples   []Sample
	Gradients [][]float64 // values of a float32
	PayloadID string
}

// Sample is one sequence. Every slice is [T]; entry t speaks of predicting Targets[t]. Floats are values of a float32; nil
// is absent.
type Sample struct {
	Tokens      []int32   // model_input: one chunk is written, the chunks that were read are joined
	Targets     []int32   // loss_fn_inputs.target_tokens, int64 on the wire
	Weights     []float64 // loss_fn_inputs.weights; 0 leaves a position out
	Mask        []float64 // loss_fn_inputs.mask, instead of Weights
	Logprobs    []float64 // loss_fn_inputs.logprobs, under the weights that sampled
	Advantages  []float64 // loss_fn_inputs.advantages
	RefLogprobs []float64 // loss_fn_inputs.reference_logprobs

	Experts          *RoutedExperts // routed_experts, of the shape April2026 alone
	RoutedExpertsKey string         // that of the sampled sequence; empty: none
}

// tensor is a float tensor of a sample. Counts of positions may be integers on the wire, the others are float32 always.
type tensor struct {
	name   string
	counts bool
	of     func(*Sample) *[]float64
}

// tensors are in the order in which they are written.
var tensors = []tensor{
	{"weights", true, func(s *Sample) *[]float64 { return &s.Weights }},
	{"mask", true, func(s *Sample) *[]float64 { return &s.Mask }},
	{"logprobs", false, func(s *Sample) *[]float64 { return &s.Logprobs }},
	{"advantages", false, func(s *Sample) *[]float64 { return &s.Advantages }},
	{"reference_logprobs", false, func(s *Sample) *[]float64 { return &s.RefLogprobs }},
}

// tensorNamed is nil for a name that is none of theirs.
func tensorNamed(name string) *tensor {
	for i := range tensors {
		if tensors[i].name == name {
			return &tensors[i]
		}
	}
	return nil
}

// Shortened is the body that goes with an upload: payloadID, and the first ShortLength numbers of every list. It shares
// the slices of f.
func (f *ForwardBackward) Shortened(payloadID string) *ForwardBackward {
	s := *f
	s.PayloadID = payloadID
	s.Samples = shortened(f.Samples)
	return &s
}

// Shortened is as that of ForwardBackward.
func (f *CustomForwardBackward) Shortened(payloadID string) *CustomForwardBackward {
	s := &CustomForwardBackward{Shape: f.Shape, Samples: shortened(f.Samples), Gradients: make([][]float64, len(f.Gradients)), PayloadID: payloadID}
	for i, g := range f.Gradients {
		s.Gradients[i] = first(g)
	}
	return s
}

// shortened leaves out routed experts, which are of the whole sample.
func shortened(samples []Sample) []Sample {
	out := make([]Sample, len(samples))
	for i := range samples {
		x := samples[i]
		out[i] = Sample{Tokens: first(x.Tokens), Targets: first(x.Targets)}
		for _, t := range tensors {
			*t.of(&out[i]) = first(*t.of(&x))
		}
	}
	return out
}

func first[T any](list []T) []T { return list[:min(len(list), ShortLength)] }
