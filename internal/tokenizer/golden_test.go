package tokenizer

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// small are the folders of testdata, made and answered for by .ci/tokenizers/made.py.
func small(t testing.TB) map[string]*Tokenizer {
	t.Helper()
	files, err := filepath.Glob("testdata/*.jsonl")
	if err != nil || len(files) != 18 {
		t.Fatalf("%d files of answers in testdata (%v), want 18", len(files), err)
	}
	out := map[string]*Tokenizer{}
	for _, file := range files {
		folder := strings.TrimSuffix(file, ".jsonl")
		if out[filepath.Base(folder)], err = Open(folder); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

func TestSmallTokenizersAreTheReferences(t *testing.T) {
	for name, tok := range small(t) {
		t.Run(name, func(t *testing.T) {
			if n := compare(t, tok, "testdata/"+name+".jsonl"); n < 100 {
				t.Errorf("%d strings, want 100 at least", n)
			}
		})
	}
}

func TestAppendIsEncode(t *testing.T) {
	text := "The quick <|im_end|> alone\u0301 <think> 世界 12345 \n\n\n it's <0x41>"
	for name, tok := range small(t) {
		ids, _ := tok.Encode(text)
		if got := tok.Append([]int32{7}, text); !slices.Equal(got[1:], ids) || got[0] != 7 {
			t.Errorf("%s: Append gives %v, Encode %v", name, got, ids)
		}
	}
}

func TestEncodeWhere(t *testing.T) {
	tok, err := Open("testdata/qwen3")
	if err != nil {
		t.Fatal(err)
	}
	start, _ := tok.Control("<|im_start|>")
	end, _ := tok.Control("<|im_end|>")
	middle, _ := tok.Control("<|fim_prefix|>") // not flagged, but of the form
	text := "<|im_start|>a<think><|im_end|><|fim_prefix|><|im_end|>"
	at := strings.LastIndex(text, "<|im_end|>")
	for _, c := range []struct {
		name    string
		control func(from, to int) bool
		want    []int32
	}{
		{"all", func(int, int) bool { return true }, []int32{start, end, middle, end}},
		{"none", func(int, int) bool { return false }, nil},
		{"the last", func(from, to int) bool { return from == at && to == len(text) }, []int32{end}},
		{"the first", func(from, _ int) bool { return from == 0 }, []int32{start}},
	} {
		ids, ends := tok.EncodeWhere(text, c.control)
		var control []int32
		think := 0
		for _, id := range ids {
			if tok.IsControl(id) {
				control = append(control, id)
			} else if tok.Decode([]int32{id}) == "<think>" {
				think++
			}
		}
		if !slices.Equal(control, c.want) || think != 1 || tok.Decode(ids) != text || ends[len(ends)-1] != len(text) {
			t.Errorf("%s: control tokens %v, want %v; <think> %d times; %q", c.name, control, c.want, think, tok.Decode(ids))
		}
	}
}

// A token that does not count must not hide one that does, nor take part in the search at all.
func TestWhatDoesNotCountHidesNothing(t *testing.T) {
	tok, err := Open("testdata/deepseek")
	if err != nil {
		t.Fatal(err)
	}
	ids, _ := tok.Encode("<｜User｜><s> alone")
	opening, _ := tok.EncodeControl("<|")
	if _, ok := tok.Control("alone"); ok || tok.IsControl(opening[0]) {
		t.Error("a token that is neither flagged nor of the form is one of control")
	}
	if got := tok.Decode(ids); got != "<｜User｜><s> alone" || slices.ContainsFunc(ids, tok.IsControl) {
		t.Errorf("Encode gives %v, %q", ids, got)
	}
	user, _ := tok.Control("<｜User｜>")
	ids, _ = tok.EncodeWhere("x<｜User｜><s>", func(from, to int) bool { return from == 1 && to == 1+len("<｜User｜>") })
	if n := len(slices.DeleteFunc(slices.Clone(ids), func(id int32) bool { return !tok.IsControl(id) })); n != 1 || !slices.Contains(ids, user) {
		t.Errorf("EncodeWhere gives %v, want %d once and no other control token", ids, user)
	}
}

func TestBeginAndEnd(t *testing.T) {
	toks := small(t)
	start, _ := toks["llama3"].Control("<|im_start|>")
	if got := toks["llama3"].Begin(); !slices.Equal(got, []int32{start}) {
		t.Errorf("Begin() = %v, want [%d]", got, start)
	}
	if got := toks["qwen3"].Begin(); got != nil {
		t.Errorf("Begin() = %v without a template, want nil", got)
	}
	eos, _ := toks["tiktoken"].Control("[EOS]")
	if got, ok := toks["tiktoken"].End(); !ok || got != eos {
		t.Errorf("End() = %d, %v, want %d", got, ok, eos)
	}
	if _, ok := toks["qwen3"].End(); ok {
		t.Error("End() is there without a tokenizer_config.json")
	}
}

func TestCallsDoNotDisturbEachOther(t *testing.T) {
	tok, err := Open("testdata/gemma")
	if err != nil {
		t.Fatal(err)
	}
	want, wantEnds := tok.EncodeControl(hostile)
	done := make(chan bool)
	for range 8 {
		go func() {
			same := true
			for range 20 {
				ids, ends := tok.EncodeControl(hostile)
				same = same && slices.Equal(ids, want) && slices.Equal(ends, wantEnds)
			}
			done <- same
		}()
	}
	for range 8 {
		if !<-done {
			t.Error("the same text has other tokens in another call")
		}
	}
}

const hostile = "Hello  <s> wo\u0301rld é e\u0301 <left> <right>  \n\n alone 世界 ａ ﬁ <|im_end|> \U0001f468\u200d\U0001f469 \x00 \xff"

// FuzzEncode holds every small tokenizer to what must be so of any text.
func FuzzEncode(f *testing.F) {
	for _, text := range []string{"", " ", hostile, "<|im_start|>user\n<think>", "<right> \n\n <right>", "\u0301\u0323a", "가\u11a8ᄒ\u1175", "▁▁ ▁"} {
		f.Add(text, uint64(0x5555555555555555))
	}
	toks := small(f)
	f.Fuzz(func(t *testing.T, text string, where uint64) {
		for name, tok := range toks {
			for how, got := range map[string]func() ([]int32, []int){
				"Encode":        func() ([]int32, []int) { return tok.Encode(text) },
				"EncodeControl": func() ([]int32, []int) { return tok.EncodeControl(text) },
				"EncodeWhere": func() ([]int32, []int) {
					return tok.EncodeWhere(text, func(from, _ int) bool { return where>>(from&63)&1 == 1 })
				},
			} {
				ids, ends := got()
				if len(ids) != len(ends) || !slices.IsSorted(ends) || len(ends) > 0 && ends[len(ends)-1] > len(text) {
					t.Fatalf("%s %s: %q: %d ids, ends %v", name, how, text, len(ids), ends)
				}
				if again, _ := got(); !slices.Equal(again, ids) {
					t.Fatalf("%s %s: %q: %v, then %v", name, how, text, ids, again)
				}
				if how == "Encode" && slices.ContainsFunc(ids, tok.IsControl) {
					t.Fatalf("%s: Encode gives a control token for %q: %v", name, text, ids)
				}
			}
			checkEnds(t, name, tok, text)
		}
	})
}

// checkEnds holds EncodeWhere to its neighbours, and tokenizers that lose nothing to the text.
func checkEnds(t *testing.T, name string, tok *Tokenizer, text string) {
	none, noneEnds := tok.EncodeWhere(text, func(int, int) bool { return false })
	if ids, ends := tok.Encode(text); !slices.Equal(ids, none) || !slices.Equal(ends, noneEnds) {
		t.Fatalf("%s: %q: EncodeWhere(none) gives %v, Encode %v", name, text, none, ids)
	}
	all, allEnds := tok.EncodeWhere(text, func(int, int) bool { return true })
	ids, ends := tok.EncodeControl(text)
	if !slices.Equal(ids, all) || !slices.Equal(ends, allEnds) {
		t.Fatalf("%s: %q: EncodeWhere(all) gives %v, EncodeControl %v", name, text, all, ids)
	}
	if !slices.Contains([]string{"llama3", "o200k", "nemo", "kimi", "tiktoken", "tekken"}, name) {
		return
	}
	for _, ids := range [][]int32{none, all} {
		if got := tok.Decode(ids); got != lossy([]byte(text)) {
			t.Fatalf("%s: %q came back as %q", name, text, got)
		}
	}
	if text != "" && (ends[len(ends)-1] != len(text) || noneEnds[len(noneEnds)-1] != len(text)) {
		t.Fatalf("%s: %q: ends %v do not cover it", name, text, ends)
	}
}
