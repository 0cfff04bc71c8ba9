package chat

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"trainer/internal/chat/jinja"
	"trainer/internal/tokenizer"
	"trainer/recipe"
)

var update = flag.Bool("update", false, "write the golden masks anew")

// family is a template as models are published with it, and the tokens of those models that it writes.
type family struct {
	name     string
	bos, eos string
	control  []string // beside bos and eos
	plain    []string // tokens that are no control tokens
	args     map[string]any
	date     bool // it writes one
	begins   bool // the tokenizer puts bos before a lone text
}

func families() []family {
	chatML := []string{"<|im_start|>"}
	think := []string{"<think>", "</think>", "<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>"}
	return []family{
		{name: "qwen2_5", eos: "<|im_end|>", control: chatML, plain: think[2:]},
		{name: "qwen3", eos: "<|im_end|>", control: chatML, plain: think},
		{name: "qwen3_training", eos: "<|im_end|>", control: chatML, plain: think},
		{name: "qwen3_5", eos: "<|im_end|>", control: chatML, plain: think},
		{name: "gptoss", bos: "<|startoftext|>", eos: "<|return|>", date: true, control: []string{"<|start|>", "<|end|>", "<|message|>", "<|channel|>", "<|call|>", "<|constrain|>"}},
		{name: "llama3_1", begins: true, bos: "<|begin_of_text|>", eos: "<|eot_id|>", control: []string{"<|start_header_id|>", "<|end_header_id|>", "<|eom_id|>", "<|python_tag|>"}},
		{name: "deepseek_v3", bos: "<｜begin▁of▁sentence｜>", eos: "<｜end▁of▁sentence｜>", control: deepSeek()},
		{name: "deepseek_r1", bos: "<｜begin▁of▁sentence｜>", eos: "<｜end▁of▁sentence｜>", control: deepSeek(), plain: think[:2]},
		{name: "gemma3", bos: "<bos>", eos: "<eos>", control: []string{"<start_of_turn>", "<end_of_turn>"}},
		{name: "mistral_nemo", bos: "<s>", eos: "</s>", control: []string{"[INST]", "[/INST]", "[TOOL_CALLS]", "[AVAILABLE_TOOLS]", "[/AVAILABLE_TOOLS]", "[TOOL_RESULTS]", "[/TOOL_RESULTS]"}},
		{name: "kimi_k2", bos: "[BOS]", eos: "<|im_end|>", control: []string{"<|im_system|>", "<|im_user|>", "<|im_assistant|>", "<|im_middle|>", "<|tool_calls_section_begin|>", "<|tool_calls_section_end|>", "<|tool_call_begin|>", "<|tool_call_argument_begin|>", "<|tool_call_end|>"}},
		{name: "glm4", eos: "<|endoftext|>", control: []string{"[gMASK]", "<sop>", "<|system|>", "<|user|>", "<|assistant|>", "<|observation|>"}, plain: think},
		{name: "minimax_m2", eos: "[e~[", control: []string{"]~b]", "]~!b["}, plain: think[:2]},
	}
}

func deepSeek() []string {
	return []string{"<｜User｜>", "<｜Assistant｜>", "<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>", "<｜tool▁call▁begin｜>", "<｜tool▁call▁end｜>", "<｜tool▁sep｜>",
		"<｜tool▁outputs▁begin｜>", "<｜tool▁outputs▁end｜>", "<｜tool▁output▁begin｜>", "<｜tool▁output▁end｜>"}
}

// open writes a small tokenizer with the family's tokens beside the template, and opens both as a model's.
func (f family) open(t testing.TB, change ...func(*recipe.Chat)) *Template {
	t.Helper()
	dir := t.TempDir()
	writeTokenizer(t, dir, f)
	text, err := os.ReadFile(filepath.Join("testdata/families", f.name+".jinja"))
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "chat_template.jinja"), string(text))
	tok, err := tokenizer.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	section := recipe.Chat{Template: "auto", TrainOn: "all_assistant_messages", Args: f.args}
	if f.date {
		section.Date = ptr("2026-01-31")
	}
	for _, c := range change {
		c(&section)
	}
	tpl, err := New(section, tok, Source{})
	if err != nil {
		t.Fatalf("%s: %v", f.name, err)
	}
	return tpl
}

// writeTokenizer writes a byte-level vocabulary: a token a byte, one for a blank line, one for a space and "a", and the
// family's.
func writeTokenizer(t testing.TB, dir string, f family) {
	t.Helper()
	vocab, at := map[string]int{}, 0
	add := func(s string) { vocab[s] = at; at++ }
	extra := 256
	for b := range 256 {
		switch {
		case b >= '!' && b <= '~', b >= 0xa1 && b <= 0xac, b >= 0xae:
			add(string(rune(b)))
		default:
			add(string(rune(extra)))
			extra++
		}
	}
	add("ĊĊ")
	add("Ġa")
	var added []map[string]any
	for _, s := range slices.Concat([]string{f.bos, f.eos}, f.control, f.plain) {
		if s == "" {
			continue
		}
		added = append(added, map[string]any{"id": at, "content": s, "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": !slices.Contains(f.plain, s)})
		at++
	}
	var post any
	if f.begins {
		id := added[0]["id"]
		one := []any{map[string]any{"SpecialToken": map[string]any{"id": f.bos, "type_id": 0}}, map[string]any{"Sequence": map[string]any{"id": "A", "type_id": 0}}}
		post = map[string]any{"type": "TemplateProcessing", "single": one, "pair": append(one, map[string]any{"Sequence": map[string]any{"id": "B", "type_id": 1}}),
			"special_tokens": map[string]any{f.bos: map[string]any{"id": f.bos, "ids": []any{id}, "tokens": []any{f.bos}}}}
	}
	tok := map[string]any{
		"version": "1.0", "truncation": nil, "padding": nil, "added_tokens": added, "normalizer": nil,
		"pre_tokenizer": map[string]any{"type": "Sequence", "pretokenizers": []any{
			map[string]any{"type": "Split", "pattern": map[string]any{"Regex": `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`}, "behavior": "Isolated", "invert": false},
			map[string]any{"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": false, "use_regex": false}}},
		"post_processor": post, "decoder": map[string]any{"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": true},
		"model": map[string]any{"type": "BPE", "dropout": nil, "unk_token": nil, "continuing_subword_prefix": nil, "end_of_word_suffix": nil, "fuse_unk": false, "byte_fallback": false,
			"ignore_merges": false, "vocab": vocab, "merges": []any{[]string{"Ċ", "Ċ"}, []string{"Ġ", "a"}}},
	}
	config := map[string]any{"eos_token": f.eos, "pad_token": f.eos}
	if f.bos != "" {
		config["bos_token"] = f.bos
	}
	for name, v := range map[string]any{"tokenizer.json": tok, "tokenizer_config.json": config} {
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, name), string(b))
	}
}

func write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// parse reads a conversation as the rows of a dataset have it.
func parse(t testing.TB, text string) Conversation {
	t.Helper()
	v, err := jinja.Decode([]byte(text))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	var c Conversation
	ms, _ := v.(*jinja.Dict).Get("messages")
	for _, m := range ms.(*jinja.List).Items {
		fields := m.(*jinja.Dict)
		role, _ := fields.Get("role")
		content, _ := fields.Get("content")
		words, _ := content.(string)
		c.Messages = append(c.Messages, Message{Role: role.(string), Content: words, Fields: fields})
	}
	if tools, ok := v.(*jinja.Dict).Get("tools"); ok {
		for _, tool := range tools.(*jinja.List).Items {
			c.Tools = append(c.Tools, tool.(*jinja.Dict))
		}
	}
	return c
}

const weatherTool = `"tools":[{"type":"function","function":{"name":"weather","description":"The weather of a city","parameters":{"type":"object","properties":{"city":{"type":"string","description":"Where"}},"required":["city"]}}}]`

func weatherCall(id, city string) string {
	return fmt.Sprintf(`{"id":%q,"type":"function","function":{"name":"weather","arguments":{"city":%q}}}`, id, city)
}

func shapes() []struct{ name, row string } {
	return []struct{ name, row string }{
		{"single", `{"messages":[{"role":"user","content":"Hi"},{"role":"assistant","content":"Hello"}]}`},
		{"multi-turn", `{"messages":[{"role":"user","content":"u1"},{"role":"assistant","content":"a1"},{"role":"user","content":"u2"},{"role":"assistant","content":"a2"}]}`},
		{"system", `{"messages":[{"role":"system","content":"Be brief"},{"role":"user","content":"Hi"},{"role":"assistant","content":"Hello"}]}`},
		{"thinking", `{"messages":[{"role":"user","content":"2+2"},{"role":"assistant","reasoning_content":"two twice","content":"4"},{"role":"user","content":"3+3"},{"role":"assistant","reasoning_content":"three twice","content":"6"}]}`},
		{"tools", `{` + weatherTool + `,"messages":[{"role":"user","content":"Paris?"},{"role":"assistant","content":"","tool_calls":[` + weatherCall("call00001", "Paris") + `]},{"role":"tool","tool_call_id":"call00001","name":"weather","content":"sunny"},{"role":"assistant","content":"It is sunny"}]}`},
		{"parallel tool calls", `{` + weatherTool + `,"messages":[{"role":"user","content":"Paris, Rome?"},{"role":"assistant","content":"","tool_calls":[` + weatherCall("call00001", "Paris") + `,` + weatherCall("call00002", "Rome") + `]},{"role":"tool","tool_call_id":"call00001","name":"weather","content":"sunny"},{"role":"tool","tool_call_id":"call00002","name":"weather","content":"rainy"},{"role":"assistant","content":"Go to Paris"}]}`},
		{"no reasoning, said", `{"messages":[{"role":"user","content":"Hi"},{"role":"assistant","reasoning_content":"","content":"Hello"}]}`},
		{"reasoning in the content", `{"messages":[{"role":"user","content":"2+2"},{"role":"assistant","content":"<think>\ntwo twice\n</think>\n\n4"}]}`},
		{"spelt control tokens", `{"messages":[{"role":"user","content":"what is EOS and <|im_start|>?"},{"role":"assistant","content":"EOS ends"}]}`},
	}
}

// The masks of every family on every shape of conversation are what a person has looked at.
func TestFamilies(t *testing.T) {
	for _, f := range families() {
		t.Run(f.name, func(t *testing.T) {
			tpl := f.open(t)
			var out strings.Builder
			for _, s := range shapes() {
				fmt.Fprintf(&out, "== %s\n", s.name)
				exs, err := tpl.Encode(parse(t, strings.ReplaceAll(s.row, "EOS", f.eos)))
				if err != nil {
					fmt.Fprintf(&out, "refused: %v\n", err)
				}
				for i, ex := range exs {
					fmt.Fprintf(&out, "-- example %d\n%s\n", i+1, shown(tpl.Tokenizer(), ex))
				}
			}
			path := filepath.Join("testdata/families", f.name+".golden")
			if *update {
				write(t, path, out.String())
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if out.String() != string(want) {
				t.Errorf("got\n%s\nwant\n%s", out.String(), want)
			}
		})
	}
}

// shown is the text of an example, what trains in ⟦ ⟧.
func shown(tok *tokenizer.Tokenizer, ex Example) string {
	var b strings.Builder
	start := 0
	for i := range ex.IDs {
		if i+1 < len(ex.IDs) && (ex.Weights[i+1] > 0) == (ex.Weights[i] > 0) {
			continue
		}
		text := tok.Decode(ex.IDs[start : i+1])
		if ex.Weights[i] > 0 {
			text = "⟦" + text + "⟧"
		}
		b.WriteString(text)
		start = i + 1
	}
	return b.String()
}

// What stands before a trained turn is, id for id, what sampling is given; none of it trains that only the prompt supplies,
// and the turn ends with one token that ends it.
func TestTrainedTurnsAreSeenAsSampled(t *testing.T) {
	texts := []string{"plain", "\nline", "  a \n", "a\n\nb", "é日本🤖", "{{ x }}", "EOS", "<|im_start|>user", "a</think>b", "\"quoted\" \\", "0"}
	for _, f := range families() {
		for _, args := range []map[string]any{nil, {"enable_thinking": false}} {
			if args != nil && !slices.Contains([]string{"qwen3", "qwen3_5", "glm4"}, f.name) {
				continue
			}
			f.args = args
			tpl := f.open(t)
			turns, refusals := 0, 0
			for i, q := range texts {
				for _, thought := range []string{"", "hm, " + q} {
					c := dialogue(texts, i, thought)
					for k := range c.Messages {
						c.Messages[k] = swapped(c.Messages[k], f.eos)
					}
					exs, err := tpl.Encode(c)
					if err != nil {
						refusals++
						continue
					}
					turns += checkTurns(t, tpl, f.name, c, exs)
				}
			}
			if turns == 0 {
				t.Errorf("%s: all %d conversations are refused", f.name, refusals)
			}
			t.Logf("%s %v: %d turns, %d conversations refused", f.name, args, turns, refusals)
		}
	}
}

func dialogue(texts []string, at int, thought string) Conversation {
	var c Conversation
	for k := range 3 {
		text := func(n int) string { return texts[(at+2*k+n)%len(texts)] }
		answer := jinja.NewDict("role", "assistant", "content", "so: "+text(1))
		if thought != "" {
			answer.Set("reasoning_content", thought)
		}
		c.Messages = append(c.Messages, Message{Role: "user", Content: text(0)}, Message{Role: "assistant", Content: "so: " + text(1), Fields: answer})
	}
	return c
}

func swapped(m Message, eos string) Message {
	m.Content = strings.ReplaceAll(m.Content, "EOS", eos)
	if m.Fields != nil {
		d := jinja.NewDict()
		for k, v := range m.Fields.All() {
			d.Set(k, strings.ReplaceAll(v.(string), "EOS", eos))
		}
		m.Fields = d
	}
	return m
}

// checkTurns looks for each of the assistant's turns in the examples, and returns how many there are.
func checkTurns(t *testing.T, tpl *Template, name string, c Conversation, exs []Example) int {
	t.Helper()
	runs := 0
	for _, ex := range exs {
		for i := range ex.Weights {
			if ex.Weights[i] > 0 && (i == 0 || ex.Weights[i-1] == 0) {
				runs++
			}
		}
	}
	turns := 0
	for i, m := range c.Messages {
		if m.Role != "assistant" {
			continue
		}
		turns++
		prompt, err := tpl.Prompt(Conversation{Messages: c.Messages[:i], Tools: c.Tools})
		if err != nil {
			t.Errorf("%s: message %d: %v", name, i, err)
			continue
		}
		n := len(prompt)
		k := slices.IndexFunc(exs, func(ex Example) bool {
			return len(ex.IDs) > n && slices.Equal(ex.IDs[:n], prompt) && ex.Weights[n] == 1 && ex.Weights[n-1] == 0
		})
		if k < 0 {
			t.Errorf("%s: message %d trains in no example behind its prompt %q", name, i, tpl.Tokenizer().Decode(prompt))
			continue
		}
		end := n
		for end < len(exs[k].IDs) && exs[k].Weights[end] == 1 {
			end++
		}
		if last := exs[k].IDs[end-1]; !tpl.Tokenizer().IsControl(last) {
			t.Errorf("%s: message %d ends with %q, which ends no turn", name, i, tpl.Tokenizer().Decode([]int32{last}))
		}
	}
	if runs != turns {
		t.Errorf("%s: %d stretches train, want the %d turns", name, runs, turns)
	}
	return turns
}
