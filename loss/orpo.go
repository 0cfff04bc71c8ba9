package loss

import "math"

// ORPO is the likelihood of the chosen side and the odds ratio of the two in one loss, −a_c − β·logσ(o), a = S/n,
// o = log odds(a_c) − log odds(a_r), without a reference. Source: Hong et al. 2024 (arXiv 2403.07691), eq. 6 and 7.
type ORPO struct {
	// Beta is the weight of the odds ratio, the paper's lambda.
	Beta float64 `yaml:"beta" validate:"gt=0"`
}

func newORPO() *ORPO { return &ORPO{Beta: 0.1} }

// Check implements Checker.
func (l *ORPO) Check() error { return above("beta", l.Beta, 0) }

// Eval implements Loss; step is pairs, chosen before rejected, without a reference. Metrics as DPO.Eval with orpo_loss,
// rewards being β·S/n, and the means nll_loss (−a_c), log_odds_ratio (logσ(o)) and log_odds_chosen (o). Errors as DPO.Eval.
func (l *ORPO) Eval(now [][]float64, step []Datum) (Result, error) {
	return pairs("orpo", l, now, step, nil, func(c, r side, sums map[string]float64) verdict {
		oddsC, slopeC := logOdds(c.mean())
		oddsR, slopeR := logOdds(r.mean())
		o := oddsC - oddsR
		sums["nll_loss"] -= c.mean()
		sums["log_odds_ratio"] += logSigmoid(o)
		sums["log_odds_chosen"] += o
		g := l.Beta * sigmoid(-o)
		return verdict{
			-c.mean() - float64(l.Beta*logSigmoid(o)), (-1 - float64(g*slopeC)) / c.weight, g * slopeR / r.weight,
			l.Beta * c.mean(), l.Beta * r.mean(),
		}
	})
}

// mostCertain is the highest mean log-probability whose odds are taken: those of certainty are infinite.
const mostCertain = -1e-7

// logOdds is log(p / (1 − p)) of a = log p, and its derivative by a, 1 / (1 − p).
func logOdds(a float64) (odds, slope float64) {
	a = min(a, mostCertain)
	against := -math.Expm1(a)
	return a - math.Log(against), 1 / against
}
