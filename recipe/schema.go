package recipe

import (
	_ "embed"
	"slices"
)

//go:generate go run ../internal/gen

//go:embed schema.json
var schema []byte

// Schema is the JSON Schema (draft 2020-12) of a recipe, for editors and other tools. It is made from the same structs as
// Load, which checks more: what one value asks of another, and what only a place can tell.
func Schema() []byte { return slices.Clone(schema) }
