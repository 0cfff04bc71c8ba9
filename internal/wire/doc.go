// Package wire is the API's JSON, field for field: what the client sends and reads, and what the sandbox reads and
// answers. It knows spellings, not meanings: no HTTP, no policy, and no defaults but those of a loss's parameters. Members that
// are optional are pointers or left out when empty; an unknown member is skipped, null is the same as absent.
//
// Small bodies go through encoding/json. Those that grow with a batch, the bodies of forward-backward and custom-forward-backward and the answer, are
// written by appending and read by a streaming scanner, without reflection: they are most of what a run sends, and the
// exact text of their numbers is decided here. Their samples have had two shapes, which are one value here: Shape.
package wire

// Paths of the API. An operation lives under PathSessions/{id}/operations/{kind}.
const (
	PathModels      = "/v1/rl/supported-models"
	PathResources   = "/v1/rl/model-resources"
	PathSessions    = "/v1/rl/training-sessions"
	PathCheckpoints = "/v1/rl/checkpoints"
)

// KeyHeader carries the idempotency key of an operation.
const KeyHeader = "Idempotency-Key"

// InlineLimit is the size in bytes of a compact body above which it is uploaded instead of being sent inline.
const InlineLimit = 524288

// ShortLength is how many numbers of each list the inline body keeps when the full one was uploaded.
const ShortLength = 8
