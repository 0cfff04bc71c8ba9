// Package tokenizer turns text into token ids and back, as the model was trained to see it. Open reads what published models ship:
// tokenizer.json of the Hugging Face library, tiktoken ranks, Mistral's tekken.json. Ids are the reference's, to the last one, or the
// file is refused by name: what is not supported is never approximated.
//
// Text that happens to spell a control token stays text unless the caller asks otherwise: rows come from strangers, and a row must
// not be able to end its own turn. A token is one of control where its file flags it as special, or where it looks like
// <|…|> or <｜…｜>; other added tokens, such as Qwen's <think>, always count.
//
// Where the file's own pipeline is at odds with itself, the pipeline of tokenizer.json wins: transformers rebuilds that of some old
// classes (GPT2Tokenizer, LlamaTokenizer) from their names. Truncation and padding of a file are left out, as transformers leaves them.
package tokenizer

import (
	"bytes"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"
)

// Tokenizer is a vocabulary and the way from text to it. It is read-only and safe for concurrent use; the same text has the same
// tokens in every call.
type Tokenizer struct {
	name, hash string
	vocabulary vocabulary
	begin      []int32
	end        int32 // -1 for none
	config     []byte
	templates  map[string]string
}

// vocabulary is what differs from kind to kind.
type vocabulary interface {
	size() int
	append(dst []int32, text string, counts counter) []int32
	encode(known Encoded, from int, text string, counts counter) (ids []int32, ends []int)
	decode(ids []int32) string
	controlID(name string) (int32, bool)
	isControl(id int32) bool
	parts(id int32) bool // whether text behind this control token is encoded as if it stood alone, but for where it stands
	longest() int        // bytes of the longest added token
}

// Name says which vocabulary it is, as messages show it.
func (t *Tokenizer) Name() string { return t.name }

// Size is the number of ids: they are 0 to Size-1. An opened vocabulary may leave some of them out.
func (t *Tokenizer) Size() int { return t.vocabulary.size() }

// Encode returns the ids of text, [n], and for each the byte offset in text behind it, [n]. Offsets never go back, and a token
// of a part of a character ends where the character does. What spells a control token is encoded as the text it is. Where the
// vocabulary is an opened one, bytes that are no UTF-8 are read as U+FFFD, one for each maximal ill-formed part, and offsets are
// those of the text as it was given.
func (t *Tokenizer) Encode(text string) (ids []int32, ends []int) {
	return t.encode(text, counter{})
}

// Append appends the ids of text, as Encode gives them, to dst: for callers that need no offsets.
func (t *Tokenizer) Append(dst []int32, text string) []int32 {
	if !t.sound(text) {
		text, _ = repaired(text)
	}
	return t.vocabulary.append(dst, text, counter{})
}

// EncodeControl is Encode, but what spells a control token becomes that token, as in the library's encode with
// add_special_tokens=False.
func (t *Tokenizer) EncodeControl(text string) (ids []int32, ends []int) {
	return t.encode(text, counter{all: true})
}

// EncodeWhere is Encode of one whole text in which what spells a control token becomes that token where control says so of the
// bytes [from, to) at which it stands, and is split as text elsewhere, as if the vocabulary had no such token. It may be asked
// of several tokens at one place, and more than once.
func (t *Tokenizer) EncodeWhere(text string, control func(from, to int) bool) (ids []int32, ends []int) {
	return t.encode(text, counter{where: control})
}

func (t *Tokenizer) encode(text string, counts counter) ([]int32, []int) {
	if t.sound(text) {
		return t.vocabulary.encode(Encoded{}, 0, text, counts)
	}
	clean, places := repaired(text)
	if where := counts.where; where != nil {
		counts.where = func(from, to int) bool { return where(places[from], places[to]) }
	}
	ids, ends := t.vocabulary.encode(Encoded{}, 0, clean, counts)
	for i, at := range ends {
		ends[i] = places[at]
	}
	return ids, ends
}

// sound says that text is one that the vocabulary takes as it is.
func (t *Tokenizer) sound(text string) bool {
	_, raw := t.vocabulary.(byteVocabulary)
	return raw || utf8.ValidString(text)
}

// repaired is text with U+FFFD where it is no UTF-8, and for each offset in that the one in text, [len+1].
func repaired(text string) (clean string, places []int) {
	var out strings.Builder
	rest := []byte(text)
	note := func(n int, at int) {
		for range n {
			places = append(places, at)
		}
	}
	for at := 0; at < len(text); {
		n := 1
		if r, size := utf8.DecodeRune(rest[at:]); r != utf8.RuneError || size > 1 {
			n = size
			out.WriteString(text[at : at+n])
			note(n, at)
		} else {
			n = illFormed(rest[at:])
			out.WriteString("\ufffd")
			note(len("\ufffd"), at)
		}
		at += n
	}
	return out.String(), append(places, len(text))
}

// Decode returns the text of ids, with control tokens by their names, as the library's decode with skip_special_tokens=False:
// bytes that make up no character come back as U+FFFD, ids outside of the vocabulary are left out. (Bytes' own come back as they
// are, and show an unknown id.)
func (t *Tokenizer) Decode(ids []int32) string { return t.vocabulary.decode(ids) }

// Control returns the id of a control token by its name, as "<|end|>".
func (t *Tokenizer) Control(name string) (id int32, ok bool) { return t.vocabulary.controlID(name) }

// IsControl says whether id is a control token's.
func (t *Tokenizer) IsControl(id int32) bool { return t.vocabulary.isControl(id) }

// Begin is what the vocabulary's post-processor puts before a lone text, nil for nothing.
func (t *Tokenizer) Begin() []int32 { return slices.Clone(t.begin) }

// End is the token that ends a text, the eos_token of the vocabulary's configuration.
func (t *Tokenizer) End() (id int32, ok bool) { return t.end, t.end >= 0 }

// ConfigJSON is tokenizer_config.json as it was read, with the members of special_tokens_map.json that it lacks put behind its own;
// nil for neither.
func (t *Tokenizer) ConfigJSON() []byte { return bytes.Clone(t.config) }

// ChatTemplates is chat_template.jinja as "default" and additional_chat_templates/NAME.jinja as NAME; nil for none.
func (t *Tokenizer) ChatTemplates() map[string]string { return maps.Clone(t.templates) }

// Hash names the vocabulary by content, in lower-case hex: equal hashes encode every text alike.
func (t *Tokenizer) Hash() string { return t.hash }
