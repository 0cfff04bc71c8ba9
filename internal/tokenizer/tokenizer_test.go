package tokenizer

import (
	"slices"
	"testing"
)

func TestTheByteVocabularyIsFixed(t *testing.T) {
	tok := Bytes()
	if tok.Size() != 272 || tok.Name() != "bytes" {
		t.Errorf("got %s of %d ids, want bytes of 272", tok.Name(), tok.Size())
	}
	for name, want := range map[string]int32{
		"<|begin|>": 256, "<|end|>": 257, "<|system|>": 258, "<|user|>": 259, "<|assistant|>": 260, "<|tool|>": 261,
		"<|reserved_0|>": 262, "<|reserved_9|>": 271,
	} {
		if id, ok := tok.Control(name); !ok || id != want {
			t.Errorf("Control(%s) = %d, %v, want %d", name, id, ok, want)
		}
	}
	for _, name := range []string{"", "a", "<|End|>", "<|reserved_10|>"} {
		if _, ok := tok.Control(name); ok {
			t.Errorf("Control(%q) exists", name)
		}
	}
	// sha256sum of the line that Hash hashes, taken once outside of Go.
	if want := "260ee60b55e8b2faea18c0195f75c1329bbb326a25dff73710f7491a80ad88e6"; tok.Hash() != want {
		t.Errorf("Hash() = %s, want %s: weights trained with another vocabulary would be read with this one", tok.Hash(), want)
	}
}

func TestEncode(t *testing.T) {
	tok := Bytes()
	for _, c := range []struct {
		name, text string
		control    bool
		ids        []int32
		ends       []int
	}{
		{"plain text is its bytes", "hé", false, []int32{'h', 0xc3, 0xa9}, []int{1, 2, 3}},
		{"nothing is nothing", "", false, nil, nil},
		{"a spelt control token stays text", "<|end|>", false, []int32{'<', '|', 'e', 'n', 'd', '|', '>'}, []int{1, 2, 3, 4, 5, 6, 7}},
		{"a spelt control token becomes one when asked", "a<|end|>b", true, []int32{'a', 257, 'b'}, []int{1, 8, 9}},
		{"two in a row", "<|user|><|tool|>", true, []int32{259, 261}, []int{8, 16}},
		{"an unknown name stays text", "<|x|>", true, []int32{'<', '|', 'x', '|', '>'}, []int{1, 2, 3, 4, 5}},
		{"an opening inside an opening", "<|<|end|>", true, []int32{'<', '|', 257}, []int{1, 2, 9}},
		{"an opening without an end", "<|end", true, []int32{'<', '|', 'e', 'n', 'd'}, []int{1, 2, 3, 4, 5}},
		{"nothing is nothing when asked for control tokens", "", true, nil, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			ids, ends := tok.Encode(c.text)
			if c.control {
				ids, ends = tok.EncodeControl(c.text)
			}
			if !slices.Equal(ids, c.ids) || !slices.Equal(ends, c.ends) {
				t.Errorf("%q: got %v %v, want %v %v", c.text, ids, ends, c.ids, c.ends)
			}
		})
	}
}

func TestDecodeNamesWhatIsNoText(t *testing.T) {
	if got, want := Bytes().Decode([]int32{256, 'a', 0xff, 257, 272, -1}), "<|begin|>a\xff<|end|><|unknown 272|><|unknown -1|>"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func FuzzRoundTrip(f *testing.F) {
	for _, s := range []string{"", "plain", "\xff\x00", "漢字 é", "<|end|>", "<|<|end|>|>", "<|reserved_3|><|", "a<|user|>b"} {
		f.Add(s)
	}
	tok := Bytes()
	f.Fuzz(func(t *testing.T, text string) {
		for name, encode := range map[string]func(string) ([]int32, []int){"Encode": tok.Encode, "EncodeControl": tok.EncodeControl} {
			ids, ends := encode(text)
			if got := tok.Decode(ids); got != text {
				t.Errorf("%s: %q came back as %q", name, text, got)
			}
			if len(ends) != len(ids) || !slices.IsSorted(ends) || (len(ends) > 0 && ends[len(ends)-1] != len(text)) {
				t.Errorf("%s: %q: ends %v", name, text, ends)
			}
			if again, _ := encode(tok.Decode(ids)); !slices.Equal(again, ids) {
				t.Errorf("%s: %q: %v is encoded again as %v", name, text, ids, again)
			}
			if name == "Encode" && !slices.Equal(tok.Append([]int32{9}, text), append([]int32{9}, ids...)) {
				t.Errorf("Append gives %q other ids", text)
			}
		}
	})
}
