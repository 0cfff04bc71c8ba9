package tokenizer

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// tiny is a tokenizer.json that opens; cases change one place of it.
const tiny = `{"version": "1.0", "added_tokens": [{"id": 3, "content": "<s>", "special": true}],
 "normalizer": {"type": "NFC"},
 "pre_tokenizer": {"type": "Split", "pattern": {"String": " "}, "behavior": "Isolated", "invert": false},
 "post_processor": {"type": "ByteLevel"},
 "decoder": {"type": "Fuse"},
 "model": {"type": "BPE", "dropout": null, "unk_token": "a", "continuing_subword_prefix": null, "byte_fallback": false,
  "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": ["a b"]}}
`

func TestWhatIsNotSupportedIsRefusedByName(t *testing.T) {
	for _, c := range []struct{ name, old, new, want string }{
		{"a model", `"type": "BPE"`, `"type": "Unigram"`, `tokenizer.json:6:20: model.type: "Unigram" is not supported: it would have to be exact, and only these are: models: BPE; rows that its own program has turned into ids need no tokenizer here (dataset.format: tokens)`},
		{"a normalizer", `"NFC"`, `"Lowercase"`, `tokenizer.json:2:25: normalizer.type: "Lowercase" is not supported`},
		{"a normalizer of several", `{"type": "NFC"}`, `{"type": "Sequence", "normalizers": [{"type": "NFC"}, {"type": "Nmt"}]}`, `normalizer.normalizers[1].type: "Nmt" is not supported`},
		{"a normalizer's pattern", `{"type": "NFC"}`, `{"type": "Replace", "pattern": {"Regex": "a+"}, "content": ""}`, `normalizer.pattern: only a pattern String`},
		{"a bomb", `{"type": "NFC"}`, `{"type": "Sequence", "normalizers": [` + strings.Repeat(`{"type": "Replace", "pattern": {"String": "a"}, "content": "aaaa"}, `, 4) + `{"type": "NFC"}]}`, `normalizer.normalizers[3].content: makes texts more than 64 times longer`},
		{"a pre-tokenizer", `"type": "Split"`, `"type": "Whitespace"`, `pre_tokenizer.type: "Whitespace" is not supported`},
		{"a pattern", `"String": " "`, `"Regex": "\\w+"`, `tokenizer.json:3:58: pre_tokenizer.pattern.Regex: "\\w+" is not supported`},
		{"a pattern that is empty", `"String": " "`, `"String": ""`, `pre_tokenizer.pattern: only a pattern String that is not empty`},
		{"a behavior", `"Isolated"`, `"Shaken"`, `pre_tokenizer.behavior: "Shaken" is none of`},
		{"what follows ByteLevel", `{"type": "Split", "pattern": {"String": " "}, "behavior": "Isolated", "invert": false}`, `{"type": "Sequence", "pretokenizers": [{"type": "ByteLevel"}, {"type": "Digits"}]}`, `pretokenizers[1]: a pre-tokenizer behind ByteLevel`},
		{"a decoder", `"Fuse"`, `"CTC"`, `decoder.type: "CTC" is not supported`},
		{"a post-processor", `"post_processor": {"type": "ByteLevel"}`, `"post_processor": {"type": "RobertaProcessing"}`, `post_processor.type: "RobertaProcessing" is not supported`},
		{"dropout", `"dropout": null`, `"dropout": 0.1`, `model.dropout: 0.1 is not supported`},
		{"a prefix of pieces", `"continuing_subword_prefix": null`, `"continuing_subword_prefix": "##"`, `model.continuing_subword_prefix: "##" is not supported`},
		{"a suffix of words", `"dropout": null`, `"end_of_word_suffix": "</w>"`, `model.end_of_word_suffix: "</w>" is not supported`},
		{"fallback to bytes that nobody has is none", `"byte_fallback": false,`, `"byte_fallback": true,`, ``},
		{"some of the bytes", `"byte_fallback": false,
  "vocab": {"a": 0, "b": 1`, `"byte_fallback": true, "vocab": {"<0x41>": 0, "a": 4, "b": 1`, `model.byte_fallback: true, but the vocabulary has no <0x00>`},
		{"an unknown token that is none", `"unk_token": "a"`, `"unk_token": "?"`, `model.unk_token: "?" is not in the vocabulary`},
		{"a merge of strangers", `"a b"`, `"a c"`, `tokenizer.json:7:50: model.merges[0]: "a" and "c" make "ac"`},
		{"a merge of three", `"a b"`, `"a b c"`, `a merge is two tokens`},
		{"two tokens of one id", `"b": 1`, `"b": 0`, `model.vocab: id 0 is of "a" and of "b"`},
		{"two ids of one token", `"b": 1`, `"a": 1`, `model.vocab: "a" has two ids`},
		{"an id past all reason", `"b": 1`, `"b": 99999999`, `an id should be here, from 0 to 4194303`},
		{"an added token of another id", `"id": 3`, `"id": 9`, `tokenizer.json:1:44: added_tokens[0].id: 9, where the reference gives "<s>" the id 3`},
		{"a file that is cut", `"merges": ["a b"]}}`, `"merges": ["a b"`, `the file ends where a comma or ] should be`},
		{"half a surrogate pair", `"content": "<s>"`, `"content": "\ud800"`, `half a surrogate pair`},
		{"what is no JSON", `"version": "1.0"`, `"version": nil`, `no value of JSON`},
		{"no model", `"model"`, `"modell"`, `model: missing`},
		{"what follows", "}}\n", "}} x\n", `something follows the end of the object`},
		{"depth", `"NFC"`, strings.Repeat("[", 9000), `nested deeper than 128`},
	} {
		src := strings.Replace(tiny, c.old, c.new, 1)
		if src == tiny {
			t.Errorf("%s: nothing was changed", c.name)
		}
		_, err := parse("tokenizer.json", src, companions{})
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: got %v, want %s", c.name, err, c.want)
		}
	}
}

func TestWhatIsBesideIsRead(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "model")
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("tokenizer.json", tiny)
	bare, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if bare.ConfigJSON() != nil || bare.ChatTemplates() != nil || bare.Size() != 4 || bare.Name() != "model" {
		t.Errorf("%s of %d: config %s, templates %v", bare.Name(), bare.Size(), bare.ConfigJSON(), bare.ChatTemplates())
	}
	write("tokenizer_config.json", `{"eos_token": {"content": "<e>"}, "added_tokens_decoder": {"3": {"content": "<s>", "special": true}, "4": {"content": "<e>", "special": true}}}`+"\n")
	write("special_tokens_map.json", `{"eos_token": "<s>", "pad_token": "<s>"}`)
	write("chat_template.jinja", "{{ messages }}")
	write("additional_chat_templates/tool_use.jinja", "{{ tools }}")
	write("added_tokens.json", `{"<other>": 9}`)
	tok, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	end, ok := tok.End()
	if id, _ := tok.Control("<e>"); !ok || end != 4 || id != 4 || tok.Size() != 5 {
		t.Errorf("End() = %d, %v; <e> is %d; %d ids", end, ok, id, tok.Size())
	}
	if got, want := string(tok.ConfigJSON()), `"content": "<e>", "special": true}},"pad_token": "<s>"}`; !strings.HasSuffix(got, want) {
		t.Errorf("ConfigJSON() = %s, want it to end in %s", got, want)
	}
	if got := tok.ChatTemplates(); len(got) != 2 || got["default"] != "{{ messages }}" || got["tool_use"] != "{{ tools }}" {
		t.Errorf("ChatTemplates() = %v", got)
	}
	if tok.Hash() == bare.Hash() {
		t.Error("a token more has the same hash")
	}
	again, err := Open(filepath.Join(dir, "tokenizer.json"))
	if err != nil || again.Hash() != bare.Hash() || again.Size() != 4 {
		t.Errorf("a file alone: %v, %d ids", err, again.Size())
	}
	write("tokenizer_config.json", `{"eos_token": "<nobody>"}`)
	write("added_tokens.json", `{"<other>": 4}`)
	if _, err := Open(dir); err == nil || !strings.Contains(err.Error(), `eos_token: "<nobody>" is no token`) {
		t.Errorf("an eos_token that is none: %v", err)
	}
}

func TestOpenSaysWhatIsMissing(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "ranks"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "ranks", "x.tiktoken"), []byte("AA== 0\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	pointer := filepath.Join(dir, "tokenizer.json")
	if err := os.WriteFile(pointer, []byte("version https://git-lfs.github.com/spec/v1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	other := func(name string) string {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, name), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	pieces := other("spiece.model")
	for path, want := range map[string]string{
		other("tokenizer.model"):              "tokenizer.model: a vocabulary of SentencePiece, which is not read as it is; bring the tokenizer.json that AutoTokenizer",
		filepath.Join(pieces, "spiece.model"): "spiece.model: a vocabulary of SentencePiece",
		other("vocab.txt"):                    "vocab.txt: a vocabulary of WordPiece, which is not supported; rows that its own program has turned into ids",
		pointer:                               "a pointer of Git LFS",
		filepath.Join(dir, "nowhere"):         "no such file",
		t.TempDir():                           "no tokenizer.json, tiktoken.model, *.tiktoken or tekken.json",
		filepath.Join(dir, "ranks"):           "ranks do not say how to split a text",
		"refuse_test.go":                      "a tokenizer is tokenizer.json",
	} {
		if _, err := Open(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", path, err, want)
		}
	}
}

func TestRanksAreRefusedByLine(t *testing.T) {
	data, err := os.ReadFile("testdata/tiktoken/tiktoken.model")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ old, new, want string }{
		{"AQ== 1\n", "AQ==\n", "tiktoken.model:2: a line is a token in base64"},
		{"AQ== 1\n", "?? 1\n", "tiktoken.model:2: a line is a token in base64"},
		{"AQ== 1\n", "AQ== 7\n", "tiktoken.model:2: rank 7 where 1 should be"},
		{"AQ== 1\n", "AA== 1\n", `rank 1 is "\x00", which is empty or has a rank already`},
	} {
		order := strings.Split(string(data), "\n")
		src := strings.Join(order, "\n")
		lines := "AA== 0\nAQ== 1\n" + strings.Join(order[2:], "\n")
		_, err := tiktoken("tiktoken.model", strings.Replace(lines, c.old, c.new, 1), tiktokenKind{pattern: kimiPattern})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: got %v, want %s", c.new, err, c.want)
		}
		if _, err := tiktoken("tiktoken.model", src, tiktokenKind{pattern: "x"}); err == nil {
			t.Error("a pattern that nobody knows is taken")
		}
	}
}

// FuzzOpen reads what strangers made; what opens must encode.
func FuzzOpen(f *testing.F) {
	f.Add("tokenizer.json", tiny)
	for _, path := range []string{"testdata/llama2/tokenizer.json", "testdata/tekken/tekken.json", "testdata/tiktoken/tiktoken.model", "testdata/nfkd/tokenizer.json"} {
		data, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(filepath.Base(path), string(data))
	}
	f.Fuzz(func(t *testing.T, name, data string) {
		tok, err := parse(name, data, companions{class: "TikTokenTokenizer"})
		if err != nil {
			return
		}
		for _, text := range []string{"", hostile} {
			ids, ends := tok.EncodeControl(text)
			if len(ids) != len(ends) {
				t.Fatalf("%d ids, %d ends", len(ids), len(ends))
			}
			tok.Decode(append(append(ids, -1, 1<<30), tok.Begin()...))
		}
	})
}
