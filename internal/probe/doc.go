// Package probe finds out from the outside what a server of the post-training API does where the API's contract is silent:
// the state of each of the sandbox's choices, and a few facts beside them. It asks by experiments, a file each, in a
// throwaway session of a resource that somebody else made, and knows nothing but the public API, so that the sandbox and
// the service are asked alike.
//
// An experiment compares what its hypotheses predict, and is made so that they are far apart: answers in the service's
// precision, which differ a little from one time to the next, must not decide. What decides neither way is Unknown, with the
// reason. No experiment reads text, so no tokenizer is needed: prompts are ids that every vocabulary has.
//
// Gradients are seen through Adam made linear: with both betas 0 and an eps far above every gradient, a step moves a weight
// by rate·g/eps, so twice the gradient is twice the step, and no gradient is no step.
package probe
