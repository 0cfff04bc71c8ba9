package loss

// token is one trained position as a policy loss sees it.
type token struct {
	now, old  float64 // log-probabilities under the weights now, and under those that sampled
	advantage float64
	ratio     float64 // e^(now − old), maybe clamped; maybe +Inf
}

// logRatio is log p(now) − log p(sampled).
func (x token) logRatio() float64 { return x.now - x.old }

// clipped: a step in the direction of the advantage would take the ratio further out of [low, high]. On a bound it is not.
func (x token) clipped(low, high float64) bool {
	return x.advantage > 0 && x.ratio > high || x.advantage < 0 && x.ratio < low
}

// weighted is −advantage·ratio: the value of an unclipped token, and its derivative by now. Nothing comes of an advantage
// of 0, whatever the ratio. The conversions here round each product, so that no platform fuses it with the sum that it goes
// into and gives other bits.
func (x token) weighted() float64 {
	if x.advantage == 0 {
		return 0
	}
	return -float64(x.advantage * x.ratio)
}

// surrogate is the clipped value max(−advantage·ratio, −advantage·clamp(ratio)) and its derivative by now.
// Source: Schulman et al. 2017 (arXiv 1707.06347), eq. 7; separate bounds after Yu et al. 2025 (arXiv 2503.14476).
func (x token) surrogate(low, high float64) (value, grad float64) {
	if x.clipped(low, high) {
		return -float64(x.advantage * clamp(x.ratio, low, high)), 0
	}
	return x.weighted(), x.weighted()
}

// ratios are the metrics that the summed policy losses share, as they are gathered.
type ratios struct {
	tokens                    int
	sum, least, most, kl, nll float64
}

func (m *ratios) add(x token) {
	if m.tokens == 0 {
		m.least, m.most = x.ratio, x.ratio
	}
	m.tokens++
	m.sum += x.ratio
	m.least, m.most = min(m.least, x.ratio), max(m.most, x.ratio)
	m.kl += k3(x.logRatio())
	m.nll -= x.old
}

func (m *ratios) metrics() map[string]float64 {
	out := map[string]float64{
		"valid_tokens":       float64(m.tokens),
		"ratio_mean":         share(m.sum, m.tokens),
		"kl_sample_train_k3": share(m.kl, m.tokens),
		"entropy_sample":     share(m.nll, m.tokens),
	}
	if m.tokens > 0 {
		out["ratio_min"], out["ratio_max"] = m.least, m.most
	}
	return out
}

// policy sums a loss of single tokens over the trained positions of a step, in order. ratio makes a token's ratio of its
// log-ratio, and of its value and its derivative by the log-probability now. The result's metrics are those of ratios.
func policy(l Loss, now [][]float64, step []Datum, ratio func(float64) float64, of func(token) (value, grad float64)) (Result, error) {
	if err := ready(l, now, step, old, advantages); err != nil {
		return Result{}, err
	}
	var m ratios
	r := Result{Grads: zeros(step)}
	for i, d := range step {
		for t, w := range d.Weights {
			if w == 0 {
				continue
			}
			x := token{now: now[i][t], old: d.OldLogprobs[t], advantage: d.Advantages[t]}
			x.ratio = ratio(x.logRatio())
			m.add(x)
			value, grad := of(x)
			r.Value += value
			r.Grads[i][t] = grad
		}
	}
	r.Metrics = m.metrics()
	return r, nil
}

// fraction adds a metric that counts trained positions, as a share of them.
func (r Result) fraction(name string, count int) {
	r.Metrics[name] = share(float64(count), int(r.Metrics["valid_tokens"]))
}
