package runner

import "time"

// Plan says exactly how many, at which rate, for how much. It is plain data: it can be saved, and it goes stale when
// the inputs change, which Lock tells.
type Plan struct {
	Rates           []float64 // learning rate of each step, [steps]
	BatchesPerEpoch int
	Epochs          float64
	BatchSize       int   // rows a step
	Rows            int   // rows an epoch, after weights
	Held            int   // validation rows
	Tokens          int64 // of all steps
	Trained         int64 // of which carry a weight
	Warmup          int   // steps
	Lengths         Histogram
	Lock            Lock
	Cost            *Cost // nil without a price
}

// Histogram counts rows by their length in tokens: Counts[i] have at most Bounds[i] tokens and more than Bounds[i-1].
type Histogram struct {
	Bounds, Counts []int
	Longest        int
}

// Lock is the hashes of everything that decides the result, by name: recipe, dataset, tokenizer, template, rows, seeds.
type Lock map[string]string

// Cost is what a price makes of the plan; hours of training are not known before the first steps.
type Cost struct {
	USDPerHour  float64
	DeadMan     time.Duration // what a kill -9 can leave running: inactive_timeout plus a minute
	DeadManUSD  float64
	CurrencyISO string
}
