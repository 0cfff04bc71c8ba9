package runner

import (
	"fmt"
	"slices"
	"sort"
	"strings"

	"trainer/internal/rollout"
	"trainer/internal/tokenizer"
)

// withoutStops says whether a sample failed because its model takes no stop texts, and leaves them out of op: completions are
// then cut here. A key of experts is of the whole completion, so it goes with none that is cut.
func (r *run) withoutStops(op *Sample, err error) bool {
	if len(op.Params.Stop) == 0 || op.RoutedExperts || failureOf(err) != invalid {
		return false
	}
	op.Params.Stop = nil
	if r.cutsStops.CompareAndSwap(false, true) {
		r.tell(Event{Kind: WarnEvent, Done: r.doneSteps(), Text: fmt.Sprintf("a sample with stop texts is refused (%v): sampled without, and cut at them here", err)})
	}
	return true
}

// cutAt ends completions behind the first token with which one of the stop texts is complete, as a service that takes them does.
// The names of control tokens are no text.
func cutAt(all []rollout.Sequence, stops []string, tok *tokenizer.Tokenizer) {
	for i := range all {
		s := &all[i]
		holds := func(n int) bool {
			text := tok.Decode(slices.DeleteFunc(slices.Clone(s.Tokens[:n]), tok.IsControl))
			for _, stop := range stops {
				if strings.Contains(text, stop) {
					return true
				}
			}
			return false
		}
		if n := sort.Search(len(s.Tokens), func(n int) bool { return holds(n + 1) }) + 1; n <= len(s.Tokens) {
			s.Tokens, s.Logprobs, s.Stop = s.Tokens[:n], s.Logprobs[:n], rollout.Stopped
		}
	}
}
