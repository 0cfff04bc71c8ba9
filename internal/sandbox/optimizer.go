package sandbox

import (
	"math"

	"trainer/internal/sandbox/engine"
	"trainer/internal/wire"
)

// The defaults are the contract's; a learning rate has none there, and gets the one of the oldest specification.
const (
	defaultRate = 1e-4
	defaultClip = 1
)

// readOptimStep reads a step of the resource's optimizer: Adam where muon is empty.
func readOptimStep(body []byte, muon wire.MuonScalingStrategy) (*work, error) {
	var in wire.OptimStep
	if len(body) > 0 {
		if err := decode(body, &in); err != nil {
			return nil, err
		}
	}
	if muon == "" {
		if in.MuonParams != nil {
			return nil, invalid("muon_params", "muon_params: the model resource's optimizer is Adam; send adam_params")
		}
		a, err := adamOf("adam_params", in.AdamParams)
		return &work{adam: a}, err
	}
	if in.AdamParams != nil {
		return nil, invalid("adam_params", "adam_params: the model resource's optimizer is Muon; send muon_params, "+
			"whose member adam is for the parameters that Muon leaves to Adam")
	}
	mu, err := muonOf(in.MuonParams, muon)
	return &work{muon: mu}, err
}

// number is a member that replaces a default, and its range [least, below).
type number struct {
	name         string
	from, to     *float64
	least, below float64
}

func setNumbers(place string, all ...number) error {
	for _, f := range all {
		if f.from == nil {
			continue
		}
		if v := *f.from; !(v >= f.least && v < f.below) {
			return invalid(place+"."+f.name, "%s.%s: %v is out of range", place, f.name, v)
		}
		*f.to = *f.from
	}
	return nil
}

func adamOf(place string, p *wire.AdamParams) (engine.Adam, error) {
	a := engine.Adam{Rate: defaultRate, Beta1: 0.9, Beta2: 0.95, Eps: 1e-8, ClipNorm: defaultClip}
	if p == nil {
		return a, nil
	}
	return a, setNumbers(place,
		number{"learning_rate", p.LearningRate, &a.Rate, 0, math.Inf(1)},
		number{"beta1", p.Beta1, &a.Beta1, 0, 1},
		number{"beta2", p.Beta2, &a.Beta2, 0, 1},
		number{"eps", p.Eps, &a.Eps, math.SmallestNonzeroFloat64, math.Inf(1)},
		number{"weight_decay", p.WeightDecay, &a.WeightDecay, 0, math.Inf(1)},
		number{"grad_clip_norm", p.GradClipNorm, &a.ClipNorm, 0, math.Inf(1)},
	)
}

// maxNewtonSchulz is far more than an update needs.
const maxNewtonSchulz = 20

// muonOf reads Muon's numbers. The gradient is clipped as a whole, by muon_params.grad_clip_norm; that of the member adam
// has nothing left to clip.
func muonOf(p *wire.MuonParams, strategy wire.MuonScalingStrategy) (*engine.Muon, error) {
	const place = "muon_params"
	if p == nil {
		p = &wire.MuonParams{}
	}
	mu := &engine.Muon{Rate: defaultRate, Momentum: 0.95, Steps: 5, ClipNorm: defaultClip, Original: strategy == wire.MuonOriginal}
	var err error
	if mu.Adam, err = adamOf(place+".adam", p.Adam); err != nil {
		return nil, err
	}
	if n := p.NewtonSchulzSteps; n != nil {
		if mu.Steps = *n; *n < 1 || *n > maxNewtonSchulz {
			return nil, invalid(place+".newton_schulz_steps", "%s.newton_schulz_steps: %d is not a number from 1 to %d", place, *n, maxNewtonSchulz)
		}
	}
	return mu, setNumbers(place,
		number{"learning_rate", p.LearningRate, &mu.Rate, 0, math.Inf(1)},
		number{"momentum", p.Momentum, &mu.Momentum, 0, 1},
		number{"weight_decay", p.WeightDecay, &mu.WeightDecay, 0, math.Inf(1)},
		number{"grad_clip_norm", p.GradClipNorm, &mu.ClipNorm, 0, math.Inf(1)},
	)
}
