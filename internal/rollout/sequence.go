package rollout

// Sequence is one completion, as it was sampled.
type Sequence struct {
	Tokens   []int32   // [T], the token that ended it included where the service returns that
	Logprobs []float64 // [T], natural logs under the weights that sampled
	Stop     Stop
	// RoutedExperts is the key of the experts that sampling chose, opaque; empty: none was given.
	RoutedExperts string
}

// Stop is why a completion ended.
type Stop string

// The ways to end.
const (
	Stopped Stop = "stop"   // by a stop token or text
	Cut     Stop = "length" // by max_tokens
)

// Samples are the completions of one prompt. Segments say which version of the weights sampled, from which token on.
type Samples struct {
	Sequences []Sequence
	Segments  []Segment
	// Where it was asked for, what the weights make of the prompt's own tokens, one entry each, of which the first says nothing:
	// their log-probabilities, and the ids that are likeliest in their place with the log-probabilities of those, natural logs.
	Scores      []float64   `json:",omitempty"`
	TopIDs      [][]int32   `json:",omitempty"`
	TopLogprobs [][]float64 `json:",omitempty"`
}

// Segment is a stretch of tokens under one version of the weights; versions count as the service counts them.
type Segment struct {
	Version int64
	Start   int
}
