package tokenizer

import "fmt"

// Bytes is the vocabulary of the sandbox's own models, 272 ids: 0 to 255 are bytes, 256 to 271 the control tokens
// <|begin|>, <|end|>, <|system|>, <|user|>, <|assistant|>, <|tool|> and <|reserved_0|> to <|reserved_9|>.
func Bytes() *Tokenizer {
	control := []string{"<|begin|>", "<|end|>", "<|system|>", "<|user|>", "<|assistant|>", "<|tool|>"}
	for i := range 10 {
		control = append(control, fmt.Sprintf("<|reserved_%d|>", i))
	}
	return &Tokenizer{name: "bytes", control: control}
}
