package probe

import (
	"errors"
	"fmt"

	"trainer/runner"
)

// The choices, by the names and values of the sandbox.
const (
	GradNormalization = "grad_normalization"
	FailedLeaves      = "failed_leaves"
	ReusedKey         = "reused_key"
	SampledLogprobs   = "sampled_logprobs"
	StopToken         = "stop_token"
)

// Unknown is the value of what could not be found out.
const Unknown = "unknown"

// Finding is one answer.
type Finding struct {
	Name  string `json:"name"`
	Value string `json:"value"` // of a choice, one of the sandbox's values, or Unknown
	How   string `json:"how"`   // it was seen; of an unknown one, why it was not
}

// Report is all that a probe found out, and what it cost. Every choice is in it, the unknown ones too.
type Report struct {
	Resource   string    `json:"resource"`
	BaseModel  string    `json:"base_model"`
	LoRA       bool      `json:"lora_enabled"`
	Optimizer  string    `json:"optimizer"` // adam, muon
	Generators int       `json:"num_generator_replicas"`
	Session    string    `json:"session"` // it has been stopped
	Choices    []Finding `json:"choices"`
	Facts      []Finding `json:"facts"`
	Operations int       `json:"operations"`
	Tokens     int       `json:"tokens"` // of what was sent, and sampled
}

// Known lists the choices that were found out as NAME=VALUE.
func (r *Report) Known() []string {
	known := []string{}
	for _, c := range r.Choices {
		if c.Value != Unknown {
			known = append(known, c.Name+"="+c.Value)
		}
	}
	return known
}

// inconclusive is why an experiment decides nothing; the others go on.
type inconclusive struct{ why string }

func (i *inconclusive) Error() string { return i.why }

func unknown(format string, a ...any) error { return &inconclusive{fmt.Sprintf(format, a...)} }

// failed is an operation that the service gave up; code has no prefix.
type failed struct {
	op            string
	code, message string
}

func (f *failed) Error() string { return fmt.Sprintf("%s: %s: %s", f.op, f.code, f.message) }

// reason is why err leaves a question open; "" where err ends the probe instead.
func reason(err error) string {
	var open *inconclusive
	var gaveUp *failed
	var refused *runner.Refused
	switch {
	case errors.As(err, &open):
		return open.why
	case errors.As(err, &gaveUp):
		return gaveUp.Error()
	case errors.As(err, &refused) && refused.Status != 401 && refused.Status != 403:
		return refused.Error()
	}
	return ""
}
