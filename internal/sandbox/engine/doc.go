// Package engine is the small real model behind the sandbox: a decoder-only transformer (RMSNorm, rotary positions, causal
// attention, SwiGLU, tied embeddings) with a forward and a backward pass written by hand, full or LoRA training, Adam and Muon.
//
// Training has one way in and one way out: Logprobs gives the log-probability of every target, Backward takes the derivative
// of any loss by those numbers. Every loss is arithmetic between the two calls. Publish makes an immutable copy, whose Sample
// completes prompts; a sampled token has the very log-probability that Logprobs gives for it under the same weights.
//
// Its bits are a contract, so that a resumed run can be compared with an unbroken one. They depend on the model, the batches
// and the order of calls, never on the machine, the instruction set, the number of threads or the neighbours in a batch:
//   - all sums run in index order through package kernel, without fused multiply-add (see there);
//   - a batch is cut into shardCount runs of sequences with about equal tokens, each with a gradient of its own; these are
//     added in order. The count is a constant, stored in checkpoints, and has nothing to do with the number of threads;
//   - within a shard, groups of at most groupTokens tokens follow each other, which bounds memory;
//   - random numbers are functions of what they are for, never of what was drawn before: see stream and Sample.
//
// A change that alters a bit for the same calls needs another Version; a test holds the hash of weights after some steps.
//
// Vocabularies up to 1,024 ids have one softmax. Larger ones are two-level: id = high·L + low, and
// log p(id) = log softmax(E_high·h)[high] + log softmax(E_low·(h + C[high]))[low], a true distribution over all ids.
package engine

// Version names the arithmetic. Checkpoints of another version are refused: their continuation would have other bits.
const Version = "sandbox-engine/1"

// shardCount is part of the bits: see the package comment.
const shardCount = 2

// groupTokens is the most tokens that go through the layers together; a longer sequence is a group by itself.
const groupTokens = 512
