// Package recipe reads the file that says what a run is: one YAML file, its parents and the --set values on top, decoded
// strictly, filled with the defaults of its loop and checked as a whole. Every fault found is a problem with its place,
// and all are reported together, in file order. A Recipe that Load returned needs no further checking against this
// room's rules, and remembers where each of its values came from.
//
// The supervised recipe in full is longer than most need to be: base_model, dataset.train and loss.type are required,
// the rest has defaults.
//
//	base_model: sandbox/bytes-tiny
//	dataset:
//	  train: data/quickstart.jsonl
//	  validation_split: 0.1
//	  max_length: 256
//	loss: {type: cross_entropy}
//	lora_config: {rank: 8, alpha: 16}
//	optimizer: {learning_rate: 2.0e-3}
//	lr_schedule: {type: cosine, warmup_ratio: 0.05, min_lr_ratio: 0.1}
//	train: {epochs: 3, batch_size: 16}
//	eval: {every: 10}
//	test: {steps: 20, expect: {"train/loss": "< 4.0"}}
//
// The structs in recipe.go are the schema: yaml tags are the keys, default and validate tags the defaults and bounds,
// loop and type tags say where a key has an effect, comments are its documentation. Keys gives them as a tree, from which
// Load, Resolved, the JSON Schema and the reference page are all made, so that they cannot disagree.
package recipe
