package wire

// ForwardBackward is the body of forward-backward. The flags belong to the POST alone: an uploaded body has only Loss
// and Samples, and the POST that names it by PayloadID has them shortened.
type ForwardBackward struct {
	Loss          LossConfig
	Samples       []Sample
	ForwardOnly   bool // scores without gradients
	ReturnOutputs bool // return_loss_fn_outputs: the log-probabilities come back
	PayloadID     string
}

// Sample is one sequence. Every slice is [T]; entry t speaks of predicting Targets[t].
type Sample struct {
	Tokens  []int32   // model_input: one chunk is written, the chunks that were read are joined
	Targets []int32   // loss_fn_inputs.target_tokens, int64 on the wire; nil: absent
	Weights []float64 // loss_fn_inputs.weights, values of a float32; nil: absent
}

// Shortened is the body that goes with an upload: payloadID, and the first ShortLength numbers of every list. It shares
// the slices of f.
func (f *ForwardBackward) Shortened(payloadID string) *ForwardBackward {
	s := *f
	s.PayloadID = payloadID
	s.Samples = make([]Sample, len(f.Samples))
	for i, x := range f.Samples {
		s.Samples[i] = Sample{Tokens: first(x.Tokens), Targets: first(x.Targets), Weights: first(x.Weights)}
	}
	return &s
}

func first[T any](list []T) []T { return list[:min(len(list), ShortLength)] }
