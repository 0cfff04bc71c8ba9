package hubtest

import "encoding/json"

// ChatML is the template of Tokenizer.
const ChatML = `{% for m in messages %}<|im_start|>{{ m.role }}
{{ m.content }}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}`

// Tokenizer is the files of a small published tokenizer, by name: byte-level pairs with a token for each byte and one merge, the two
// control tokens of ChatML behind them, and its template.
func Tokenizer() map[string]string {
	vocab := map[string]int{}
	other := rune(256) // what stands for a byte that is not printable
	for b := range rune(256) {
		c := b
		if b <= ' ' || b >= 0x7f && b <= 0xa0 || b == 0xad {
			c = other
			other++
		}
		vocab[string(c)] = len(vocab)
	}
	vocab["Ġt"] = len(vocab)
	type object = map[string]any
	control := func(id int, content string) object {
		return object{"id": id, "content": content, "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true}
	}
	const pattern = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	level := object{"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": false, "use_regex": false}
	return map[string]string{
		"tokenizer.json": text(object{
			"version": "1.0", "truncation": nil, "padding": nil, "normalizer": nil, "post_processor": nil, "decoder": level,
			"added_tokens":  []object{control(len(vocab), "<|im_start|>"), control(len(vocab)+1, "<|im_end|>")},
			"pre_tokenizer": object{"type": "Sequence", "pretokenizers": []object{{"type": "Split", "pattern": object{"Regex": pattern}, "behavior": "Isolated", "invert": false}, level}},
			"model": object{"type": "BPE", "dropout": nil, "unk_token": nil, "continuing_subword_prefix": "", "end_of_word_suffix": "", "fuse_unk": false,
				"byte_fallback": false, "ignore_merges": false, "vocab": vocab, "merges": [][2]string{{"Ġ", "t"}}},
		}),
		"tokenizer_config.json": text(object{"eos_token": "<|im_end|>", "pad_token": "<|im_end|>"}),
		"chat_template.jinja":   ChatML,
	}
}

func text(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // of a constant
	}
	return string(b)
}
