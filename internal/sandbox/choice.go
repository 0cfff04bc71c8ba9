package sandbox

import (
	"fmt"
	"slices"
	"strings"

	"trainer/internal/diag"
)

// Choice is a question that the contract leaves open, whose answer changes the results of a client.
type Choice string

// The choices.
const (
	GradNormalization Choice = "grad_normalization"
	FailedLeaves      Choice = "failed_leaves"
	ReusedKey         Choice = "reused_key"
	SampledLogprobs   Choice = "sampled_logprobs"
	StopToken         Choice = "stop_token"
)

// Values that the server asks for.
const (
	perValidToken    = "valid_tokens"
	keyOriginal      = "original"
	afterTemperature = "after_temperature"
	stopDropped      = "dropped"
)

// ChoiceInfo describes a choice. The first of Values is the default.
type ChoiceInfo struct {
	Choice Choice
	Values []string
	Does   string
}

// AllChoices lists every choice, in the order of documents.
func AllChoices() []ChoiceInfo {
	return []ChoiceInfo{
		{GradNormalization, []string{"none", perValidToken}, "optim-step takes the gathered gradient as it is, or divided by the number of trained positions that it was gathered from"},
		{FailedLeaves, []string{"nothing", "gradient"}, "a FAILED forward-backward adds nothing to the gathered gradient, or that of the first half of its samples, as far as it is finite"},
		{ReusedKey, []string{"refuse", keyOriginal}, "a known key with another body is refused (422), or answered with the operation that the key was first used for"},
		{SampledLogprobs, []string{"before_temperature", afterTemperature}, "logprobs of sampled tokens are of the model's own distribution, or of the one that was drawn from, after temperature and truncation"},
		{StopToken, []string{"kept", stopDropped}, "the stop token, or the tokens that a stop text is in, are part of a completion's tokens and logprobs, or not"},
	}
}

// Choices are the values chosen. A choice that is not in it has its default. Read-only once a server has it.
type Choices map[Choice]string

// Set takes NAME=VALUE. An error names the word that is wrong.
func (c Choices) Set(text string) error {
	name, value, ok := strings.Cut(text, "=")
	if !ok {
		return fmt.Errorf("%q is not NAME=VALUE", text)
	}
	all := AllChoices()
	i := slices.IndexFunc(all, func(i ChoiceInfo) bool { return string(i.Choice) == name })
	if i < 0 {
		var names []string
		for _, a := range all {
			names = append(names, string(a.Choice))
		}
		return fmt.Errorf("%q is not a choice%s; there are %s", name, diag.DidYouMean(name, names), strings.Join(names, ", "))
	}
	if !slices.Contains(all[i].Values, value) {
		return fmt.Errorf("%s: %q is not one of %s%s", name, value, strings.Join(all[i].Values, ", "), diag.DidYouMean(value, all[i].Values))
	}
	c[all[i].Choice] = value
	return nil
}

// choice is the value in force.
func (s *Server) choice(c Choice) string {
	if v, ok := s.options.Choices[c]; ok {
		return v
	}
	for _, i := range AllChoices() {
		if i.Choice == c {
			return i.Values[0]
		}
	}
	return ""
}
