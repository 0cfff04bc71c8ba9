package wire

import (
	"errors"
	"fmt"
	"strings"

	"trainer/loss"
)

// LossType is an enum.
type LossType string

// The losses that the service computes.
const (
	LossCrossEntropy       LossType = "LOSS_TYPE_CROSS_ENTROPY"
	LossGRPO               LossType = "LOSS_TYPE_GRPO"
	LossPPO                LossType = "LOSS_TYPE_PPO"
	LossCISPO              LossType = "LOSS_TYPE_CISPO"
	LossDRO                LossType = "LOSS_TYPE_DRO"
	LossDPPO               LossType = "LOSS_TYPE_DPPO"
	LossImportanceSampling LossType = "LOSS_TYPE_IMPORTANCE_SAMPLING"
)

// Prefixes of the enums among the parameters of GRPO; the words behind them are the recipe's in upper case. The aggregation
// has aggUnspecified too, which is the fixed horizon.
const (
	aggPrefix      = "GRPO_LOSS_AGGREGATION_TYPE_"
	ratioPrefix    = "GRPO_LOSS_RATIO_TYPE_"
	aggUnspecified = aggPrefix + "UNSPECIFIED"
)

// LossConfig is the loss of a forward-backward. A well-formed one has at most one object of parameters, that of its type;
// more were read as they stood.
type LossConfig struct {
	Type   LossType
	Params []LossParams
}

// LossParams is one object of parameters, as grpo_params. Which parameters a loss has, its row says; nil and empty take the
// service's default.
type LossParams struct {
	Of                                                             LossType
	ClipLowThreshold, ClipHighThreshold, Beta, DeltaLow, DeltaHigh *float64
	AggType, RatioType                                             string
}

// Invalid is a value of a body that breaks a rule.
type Invalid struct {
	Param   string // its place: loss.grpo_params.beta
	Message string
}

func (e *Invalid) Error() string { return e.Param + ": " + e.Message }

// lossRow is one loss that the service computes: the recipe's word for it, the name and the members of its parameters, and
// both ways between value and wire form.
type lossRow struct {
	name   string
	typ    LossType
	params []string
	to     func(loss.Loss) (LossParams, bool) // false: another loss
	from   func(LossParams) (loss.Loss, error)
}

// object is the name of the row's parameters in the JSON.
func (r *lossRow) object() string { return r.name + "_params" }

// number is where a numeric parameter is kept; nil for another name.
func (p *LossParams) number(name string) **float64 {
	switch name {
	case "clip_low_threshold":
		return &p.ClipLowThreshold
	case "clip_high_threshold":
		return &p.ClipHighThreshold
	case "beta":
		return &p.Beta
	case "delta_low":
		return &p.DeltaLow
	case "delta_high":
		return &p.DeltaHigh
	}
	return nil
}

// word is where a parameter that is an enum is kept; nil for another name.
func (p *LossParams) word(name string) *string {
	switch name {
	case "agg_type":
		return &p.AggType
	case "ratio_type":
		return &p.RatioType
	}
	return nil
}

var clips = []string{"clip_low_threshold", "clip_high_threshold"}

// lossRows is in the recipe's order. What a row's from takes for an absent parameter is the service's default.
var lossRows = []lossRow{
	{
		name: "cross_entropy", typ: LossCrossEntropy,
		to:   bare[*loss.CrossEntropy],
		from: func(LossParams) (loss.Loss, error) { return &loss.CrossEntropy{}, nil },
	},
	{
		name: "grpo", typ: LossGRPO, params: append([]string{"beta", "agg_type", "ratio_type"}, clips...),
		to: fromGRPO, from: toGRPO,
	},
	{
		name: "ppo", typ: LossPPO, params: clips,
		to: func(l loss.Loss) (LossParams, bool) {
			x, ok := l.(*loss.PPO)
			if !ok {
				return LossParams{}, false
			}
			return LossParams{ClipLowThreshold: &x.ClipLowThreshold, ClipHighThreshold: &x.ClipHighThreshold}, true
		},
		from: func(p LossParams) (loss.Loss, error) {
			return &loss.PPO{ClipLowThreshold: or(p.ClipLowThreshold, 0.8), ClipHighThreshold: or(p.ClipHighThreshold, 1.2)}, nil
		},
	},
	{
		name: "cispo", typ: LossCISPO, params: clips,
		to: func(l loss.Loss) (LossParams, bool) {
			x, ok := l.(*loss.CISPO)
			if !ok {
				return LossParams{}, false
			}
			return LossParams{ClipLowThreshold: &x.ClipLowThreshold, ClipHighThreshold: &x.ClipHighThreshold}, true
		},
		from: func(p LossParams) (loss.Loss, error) {
			return &loss.CISPO{ClipLowThreshold: or(p.ClipLowThreshold, 0), ClipHighThreshold: or(p.ClipHighThreshold, 4)}, nil
		},
	},
	{
		name: "dro", typ: LossDRO, params: []string{"beta"},
		to: func(l loss.Loss) (LossParams, bool) {
			x, ok := l.(*loss.DRO)
			if !ok {
				return LossParams{}, false
			}
			return LossParams{Beta: x.Beta}, true
		},
		from: func(p LossParams) (loss.Loss, error) { return &loss.DRO{Beta: p.Beta}, nil },
	},
	{
		name: "dppo", typ: LossDPPO, params: []string{"delta_low", "delta_high"},
		to: func(l loss.Loss) (LossParams, bool) {
			x, ok := l.(*loss.DPPO)
			if !ok {
				return LossParams{}, false
			}
			return LossParams{DeltaLow: &x.DeltaLow, DeltaHigh: &x.DeltaHigh}, true
		},
		from: func(p LossParams) (loss.Loss, error) {
			return &loss.DPPO{DeltaLow: or(p.DeltaLow, 0.15), DeltaHigh: or(p.DeltaHigh, 0.15)}, nil
		},
	},
	{
		name: "importance_sampling", typ: LossImportanceSampling,
		to:   bare[*loss.ImportanceSampling],
		from: func(LossParams) (loss.Loss, error) { return &loss.ImportanceSampling{}, nil },
	},
}

// bare is to of a loss without parameters.
func bare[L loss.Loss](l loss.Loss) (LossParams, bool) {
	_, ok := l.(L)
	return LossParams{}, ok
}

func or(p *float64, absent float64) float64 {
	if p == nil {
		return absent
	}
	return *p
}

func fromGRPO(l loss.Loss) (LossParams, bool) {
	x, ok := l.(*loss.GRPO)
	if !ok {
		return LossParams{}, false
	}
	return LossParams{
		ClipLowThreshold: &x.ClipLowThreshold, ClipHighThreshold: &x.ClipHighThreshold, Beta: &x.Beta,
		AggType: aggPrefix + strings.ToUpper(x.AggType), RatioType: ratioPrefix + strings.ToUpper(x.RatioType),
	}, true
}

func toGRPO(p LossParams) (loss.Loss, error) {
	l := &loss.GRPO{
		ClipLowThreshold: or(p.ClipLowThreshold, 0.8), ClipHighThreshold: or(p.ClipHighThreshold, 1.2), Beta: or(p.Beta, 0),
		AggType: loss.FixedHorizon, RatioType: loss.TokenRatio,
	}
	for _, e := range []struct {
		param, value, prefix string
		words                []string
		to                   *string
	}{
		{"agg_type", p.AggType, aggPrefix, []string{loss.FixedHorizon, loss.TokenMean, loss.SequenceMean}, &l.AggType},
		{"ratio_type", p.RatioType, ratioPrefix, []string{loss.TokenRatio, loss.SequenceRatio}, &l.RatioType},
	} {
		known := make([]string, len(e.words))
		found := e.value == "" || e.value == aggUnspecified && e.prefix == aggPrefix
		for i, word := range e.words {
			known[i] = e.prefix + strings.ToUpper(word)
			if e.value == known[i] {
				*e.to, found = word, true
			}
		}
		if !found {
			return nil, &loss.Fault{Key: e.param, Msg: fmt.Sprintf("%q is not one of %s", e.value, strings.Join(known, ", "))}
		}
	}
	return l, nil
}

// Losses returns the recipe's names of the losses that the service computes.
func Losses() []string {
	names := make([]string, len(lossRows))
	for i := range lossRows {
		names[i] = lossRows[i].name
	}
	return names
}

// FromLoss returns the wire form of l, every parameter written out; an error names a loss that the service does not
// compute, or what of it the wire can't say.
func FromLoss(l loss.Loss) (LossConfig, error) {
	if x, ok := l.(*loss.GRPO); ok && x.Horizon != 0 {
		return LossConfig{}, fmt.Errorf("encoding the loss: the service takes a horizon of its own, so %d can't be sent; scale the advantages", x.Horizon)
	}
	for i := range lossRows {
		row := &lossRows[i]
		p, ok := row.to(l)
		if !ok {
			continue
		}
		c := LossConfig{Type: row.typ}
		if len(row.params) > 0 {
			p.Of = row.typ
			c.Params = []LossParams{p}
		}
		return c, nil
	}
	return LossConfig{}, fmt.Errorf("encoding the loss: %T is not a loss that the service computes; it has %v", l, Losses())
}

// ToLoss is the inverse of FromLoss, with the service's default for every absent parameter. The error is an *Invalid: an
// unknown type, parameters of another loss, a parameter out of bounds or missing.
func ToLoss(c LossConfig) (loss.Loss, error) {
	var row *lossRow
	for i := range lossRows {
		if lossRows[i].typ == c.Type {
			row = &lossRows[i]
		}
	}
	if row == nil {
		return nil, &Invalid{"loss.type", fmt.Sprintf("%q is not a loss that is computed here; it has %s", string(c.Type), strings.Join(Losses(), ", "))}
	}
	var own LossParams
	for _, p := range c.Params {
		if p.Of != c.Type {
			return nil, &Invalid{"loss." + rowOf(p.Of).object(), fmt.Sprintf("is not of %s", c.Type)}
		}
		own = p
	}
	l, err := row.from(own)
	if check, ok := l.(loss.Checker); ok && err == nil {
		err = check.Check()
	}
	var f *loss.Fault
	if errors.As(err, &f) {
		return nil, &Invalid{"loss." + row.object() + "." + f.Key, f.Msg}
	}
	return l, err
}

// rowOf is the row of a type that is in the table.
func rowOf(t LossType) *lossRow {
	for i := range lossRows {
		if lossRows[i].typ == t {
			return &lossRows[i]
		}
	}
	return &lossRow{}
}
