// Package hf renders a conversation through a chat template as apply_chat_template of Hugging Face transformers 5.24 does:
// it reads the templates and special tokens that a model's tokenizer_config.json brings, prepares the messages, and says
// of the rendered text which bytes are whose. The language of the templates is jinja's; what stands here is what the
// library does around it, without which one rendering in a hundred is another text.
//
//	c, err := hf.ReadConfig(data)              // of tokenizer_config.json
//	source, err := c.Template("", hasTools)
//	t, err := hf.Parse(source)                 // once
//	out, err := t.Render(conversation, hf.Options{SpecialTokens: c.SpecialTokens})
//
// A template that renders in Python gives the same text here, and one that refuses a conversation refuses it here. The checks
// of this repository hold it to that, with the library itself, on the templates that models are published with.
package hf
