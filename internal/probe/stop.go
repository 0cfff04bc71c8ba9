package probe

import (
	"context"
	"fmt"

	"trainer/internal/wire"
)

// commonest are texts that many tokens of any real vocabulary have in them. The token taught is a space in a vocabulary of
// bytes, and an A in those that begin with the printable characters.
func commonest() []string { return []string{" ", "e", "a", "A"} }

const taught = 32

// stopToken samples completions of one token under stop texts that are in many tokens. One that stopped is of one token
// where the stop is kept, and of none where it is dropped. Where none stops, as with weights that were never trained, the
// session is taught to begin with a token that has such a text.
func (p *probe) stopToken(ctx context.Context) (Finding, error) {
	if p.generators() == 0 {
		return Finding{}, errNoGenerators
	}
	for round := 0; ; round++ {
		kept, dropped, all, err := p.stopped(ctx)
		seen := fmt.Sprintf("of %d completions of one token at most, %d stopped with it and %d without it", all, kept, dropped)
		switch {
		case err != nil:
			return Finding{}, err
		case kept > 0 && dropped == 0:
			return Finding{Value: "kept", How: seen}, nil
		case dropped > 0 && kept == 0:
			return Finding{Value: "dropped", How: seen}, nil
		case kept > 0:
			return Finding{}, unknown("%s", seen)
		case round == 3:
			return Finding{}, unknown("none of %d completions of one token was stopped by one of %q", all, commonest())
		}
		if err := p.teach(ctx); err != nil {
			return Finding{}, err
		}
	}
}

func starts() (prompts [][]int32) {
	for i := range 8 {
		prompts = append(prompts, row(8, 10+i).Tokens)
	}
	return prompts
}

// stopped counts completions that ended at a stop, with and without a token.
func (p *probe) stopped(ctx context.Context) (kept, dropped, all int, err error) {
	results, err := p.first(ctx, sampleBody{Samples: 16, Params: samplingParams{Temperature: 1, Stop: commonest()}}, starts()...)
	for _, r := range results {
		for _, s := range r.Sequences {
			all++
			switch {
			case s.StopReason != wire.StopStop:
			case len(s.Tokens) == 0:
				dropped++
			case len(s.Tokens) == 1:
				kept++
			}
		}
	}
	return kept, dropped, all, err
}

// teach trains the session to go on with the taught token, and publishes.
func (p *probe) teach(ctx context.Context) error {
	var rows []wire.Sample
	for _, tokens := range starts() {
		r := wire.Sample{Tokens: tokens, Targets: make([]int32, len(tokens)), Weights: make([]float64, len(tokens))}
		copy(r.Targets, tokens[1:])
		r.Targets[len(tokens)-1], r.Weights[len(tokens)-1] = taught, 1
		rows = append(rows, r)
	}
	const rate = 0.02
	adam := wire.AdamParams{LearningRate: new(rate), Beta1: new(0.9), Beta2: new(0.95), Eps: new(1e-8), WeightDecay: new(0.0), GradClipNorm: new(0.0)}
	step, err := p.optimStep(adam, rate)
	if err != nil {
		return err
	}
	for range 4 {
		if _, err := p.loss(ctx, false, rows...); err != nil {
			return err
		}
		if err := p.do(ctx, wire.KindOptimStep, step, 0, &wire.OptimStepOutput{}); err != nil {
			return err
		}
	}
	p.rig = rig{noise: p.rig.noise} // the weights are others now
	return p.sync(ctx, wire.SyncSynchronous)
}
