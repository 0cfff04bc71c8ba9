package tokenizer

import (
	"encoding/base64"
	"fmt"
)

// tekkenTokens are the control tokens of files that list none, from id 0 on: so the library of Mistral has them.
var tekkenTokens = []string{"<unk>", "<s>", "</s>", "[INST]", "[/INST]", "[AVAILABLE_TOOLS]", "[/AVAILABLE_TOOLS]", "[TOOL_RESULTS]", "[/TOOL_RESULTS]",
	"[TOOL_CALLS]", "[IMG]", "<pad>", "[IMG_BREAK]", "[IMG_END]", "[PREFIX]", "[MIDDLE]", "[SUFFIX]", "[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]", "[TOOL_CONTENT]"}

// tekken reads Mistral's tekken.json: ranks, of which as many count as leave room for the control tokens before them.
func tekken(file, src string) (*pipeline, error) {
	s := &scanner{file: file, src: src}
	top, err := s.fields("tekken")
	if err == nil {
		err = s.finish()
	}
	if err != nil {
		return nil, err
	}
	config, ok, err := top.part("config")
	if err != nil || !ok {
		return nil, orMissing(err, top, "config")
	}
	pattern, err := config.string("pattern")
	if err != nil {
		return nil, err
	}
	next := knownPattern(pattern)
	if next == nil {
		return nil, config.refuse("pattern", "%q is not supported: only the patterns of published tokenizers are, by their exact text", pattern)
	}
	size, err := config.number("default_vocab_size", 0)
	if err != nil {
		return nil, err
	}
	special, err := config.number("default_num_special_tokens", 0)
	if err != nil {
		return nil, err
	}
	if special >= size {
		return nil, config.refuse("default_num_special_tokens", "%d leave no room for others in default_vocab_size %d", special, size)
	}
	tokens, err := tekkenControl(top, special)
	if err != nil {
		return nil, err
	}
	texts, err := tekkenTexts(top, size-special)
	if err != nil {
		return nil, err
	}
	p, err := ranked{texts: texts, shift: int32(special)}.pipeline(next, tokens)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return p, nil
}

// orMissing is err, or that a member is not there.
func orMissing(err error, f fields, name string) error {
	if err != nil {
		return err
	}
	return f.refuse(name, "missing")
}

// tekkenControl is the tokens before the ranks, and names for the ids that have none.
func tekkenControl(top fields, n int) ([]added, error) {
	out := make([]added, n)
	for i := range out {
		name := fmt.Sprintf("<SPECIAL_%d>", i)
		if i < len(tekkenTokens) {
			name = tekkenTokens[i]
		}
		out[i] = added{id: int32(i), content: name, special: true, control: true}
	}
	if _, ok := top.value("special_tokens"); !ok {
		return out, nil
	}
	return out, top.each("special_tokens", func(f fields) error {
		rank, err := f.number("rank", -1)
		if err != nil {
			return err
		}
		if rank < 0 || rank >= n {
			return f.refuse("rank", "should be from 0 to %d", n-1)
		}
		name, err := f.string("token_str")
		if err != nil {
			return err
		}
		control, err := f.flag("is_control", true)
		out[rank] = added{id: int32(rank), content: name, special: control, control: isControl(name, control)}
		return err
	})
}

// tekkenTexts is the bytes of the first n tokens.
func tekkenTexts(top fields, n int) ([]string, error) {
	var out []string
	err := top.each("vocab", func(f fields) error {
		if len(out) == n {
			return nil
		}
		rank, err := f.number("rank", -1)
		if err != nil {
			return err
		}
		if rank != len(out) {
			return f.refuse("rank", "should be %d: ranks that are not in order are not supported", len(out))
		}
		text, err := f.string("token_bytes")
		if err != nil {
			return err
		}
		raw, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			return f.refuse("token_bytes", "%q is not base64", text)
		}
		out = append(out, string(raw))
		return nil
	})
	if err == nil && len(out) < n {
		err = top.refuse("vocab", "%d tokens, and default_vocab_size asks for %d", len(out), n)
	}
	return out, err
}
