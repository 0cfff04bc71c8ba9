package rollout

import (
	"fmt"

	"trainer/loss"
)

// Request is a part of an optimiser step: its sequences, and the loss with the parameters that make the requests
// of the step add up to one request over all of it.
type Request struct {
	Loss loss.Loss
	Data []loss.Datum
}

// Split cuts a step into n requests of nearly equal numbers of sequences, 1 <= n <= len(step), and reduces it over the
// whole: however it is cut, the gradients of the requests add up to the same. The service joins the tokens of a request
// alone, so what its mean is over has to be made up for here:
//
//   - the losses that sum are given advantages over the tokens of the step (token_mean), or over those of their sequence and
//     over the sequences (sequence_mean); all of them but dro are homogeneous in the advantage, and dro is in the advantage
//     and beta together;
//   - grpo has its own mean over a request, so that advantages and beta are given in proportion to the request's share of
//     the tokens, or of the sequences. Under fixed_horizon what it divides by is the service's own, so it cannot be cut.
//
// step is not changed. An error says what cannot be reduced.
func Split(step []loss.Datum, l loss.Loss, reduction string, n int) ([]Request, error) {
	tokens := make([]int, len(step))
	total := 0
	for i, d := range step {
		for _, w := range d.Weights {
			if w != 0 {
				tokens[i]++
			}
		}
		total += tokens[i]
	}
	out := make([]Request, n)
	for p := range n {
		lo, hi := p*len(step)/n, (p+1)*len(step)/n
		part := 0
		for _, k := range tokens[lo:hi] {
			part += k
		}
		whole, each, err := shares(l, reduction, n, float64(part)/float64(total), float64(hi-lo)/float64(len(step)))
		if err != nil {
			return nil, err
		}
		switch reduction {
		case loss.TokenMean:
			whole = 1 / float64(total)
		case loss.SequenceMean:
			each = func(i int) float64 { return 1 / float64(tokens[i]) / float64(len(step)) }
		}
		out[p].Loss = withBeta(l, whole)
		for i := lo; i < hi; i++ {
			factor := whole
			if each != nil {
				factor = each(i)
			}
			out[p].Data = append(out[p].Data, scaled(step[i], factor))
		}
	}
	return out, nil
}

// shares is what the advantages of a request, and beta, are multiplied by. each, where it is not nil, is by sequence.
func shares(l loss.Loss, reduction string, n int, ofTokens, ofSequences float64) (whole float64, each func(int) float64, err error) {
	if g, ok := l.(*loss.GRPO); ok {
		switch {
		case n == 1:
			return 1, nil, nil
		case g.AggType == loss.TokenMean:
			return ofTokens, nil, nil
		case g.AggType == loss.SequenceMean:
			return ofSequences, nil, nil
		}
		return 0, nil, fmt.Errorf("%s is one request a step, and this step has %d: the horizon of a request is the service's own", g.AggType, n)
	}
	if _, ok := l.(*loss.DRO); ok && reduction == loss.SequenceMean {
		return 0, nil, fmt.Errorf("dro has no sequence_mean: its pull has one strength for all sequences; use sum or token_mean")
	}
	return 1, nil, nil
}

// withBeta is l with a beta of so many times its own; l itself where it has none, or factor is 1.
func withBeta(l loss.Loss, factor float64) loss.Loss {
	if factor == 1 {
		return l
	}
	switch l := l.(type) {
	case *loss.GRPO:
		c := *l
		c.Beta *= factor
		return &c
	case *loss.DRO:
		c := *l
		if l.Beta != nil {
			c.Beta = new(*l.Beta * factor)
		}
		return &c
	}
	return l
}

// scaled is d with its own advantages, factor times as large.
func scaled(d loss.Datum, factor float64) loss.Datum {
	if factor == 1 {
		return d
	}
	own := make([]float64, len(d.Advantages))
	for t, a := range d.Advantages {
		own[t] = a * factor
	}
	d.Advantages = own
	return d
}
