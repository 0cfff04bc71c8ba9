// Package rollout makes what reinforcement learns from: completions of prompts become groups, groups get rewards, rewards
// become advantages, and all of it becomes the sequences of optimiser steps.
//
// It owns the arithmetic between a sampled token and a trained one, and nothing else: it sends nothing and stores nothing.
// Token ids and log-probabilities pass through it exactly as they were sampled; text is never encoded a second time.
// Everything here is a function of its arguments, so that a life that reads stored samples trains on the same bits as the
// one that drew them.
package rollout
