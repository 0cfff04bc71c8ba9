package chat

import (
	"bufio"
	"encoding/json"
	"flag"
	"os"
	"slices"
	"strings"
	"testing"

	"trainer/internal/tokenizer"
	"trainer/recipe"
)

var masksFile = flag.String("masks", "", "conversations encoded with real tokenizers, as .ci/masks/masks.py writes them")

// encoded is a line of that file.
type encoded struct {
	Model, Name, Template string
	Messages, Tools       json.RawMessage
	IDs, Prompt           []int32
	Mask                  []int
}

// With the vocabularies of real models, conversations and prompts have the ids that transformers gives them, and what trains
// is what a template says that has generation blocks.
func TestRealModels(t *testing.T) {
	if *masksFile == "" {
		t.Skip("real vocabularies are not in the repository: .ci/masks/run brings them")
	}
	f, err := os.Open(*masksFile)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<26)
	toks, tpls := map[string]*tokenizer.Tokenizer{}, map[string]*Template{}
	counts := map[string]*struct{ rows, refused, split, apart, masks int }{}
	for lines.Scan() {
		var e encoded
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			t.Fatal(err)
		}
		if tpls[e.Name] == nil {
			if toks[e.Model] == nil {
				if toks[e.Model], err = tokenizer.Open(e.Model); err != nil {
					t.Fatal(err)
				}
			}
			section := recipe.Chat{Template: "file.jinja", TrainOn: "all_assistant_messages"}
			if strings.Contains(e.Template, "strftime_now") {
				section.Date = ptr("2026-07-04")
			}
			if tpls[e.Name], err = New(section, toks[e.Model], Source{e.Name, e.Template}); err != nil {
				t.Fatalf("%s: %v", e.Name, err)
			}
			counts[e.Name] = &struct{ rows, refused, split, apart, masks int }{}
		}
		tpl, n := tpls[e.Name], counts[e.Name]
		text, _ := json.Marshal(map[string]any{"messages": e.Messages, "tools": e.Tools})
		c := parse(t, strings.Replace(string(text), `,"tools":null`, "", 1))
		n.rows++
		exs, err := tpl.Encode(c)
		if err != nil {
			n.refused++
			continue
		}
		prompt, err := tpl.Prompt(Conversation{Messages: c.Messages[:len(c.Messages)-1], Tools: c.Tools})
		if err != nil || !slices.Equal(prompt, e.Prompt) {
			t.Errorf("%s: %s: the prompt is %q, %v, want %q", e.Name, e.Messages, tpl.tok.Decode(prompt), err, tpl.tok.Decode(e.Prompt))
		}
		ex := exs[len(exs)-1]
		if len(exs) > 1 {
			n.split++
		}
		if n := len(prompt); !slices.Equal(ex.IDs, e.IDs) && tpl.tok.Decode(ex.IDs) == tpl.tok.Decode(e.IDs) && slices.Equal(ex.IDs[:n], prompt) && !slices.Equal(e.IDs[:n], prompt) {
			counts[e.Name].apart++ // in the text as a whole a token reaches over the end of the prompt
			continue
		}
		if !slices.Equal(ex.IDs, e.IDs) {
			t.Errorf("%s: %s\n got %q\nwant %q", e.Name, e.Messages, tpl.tok.Decode(ex.IDs), tpl.tok.Decode(e.IDs))
			continue
		}
		if e.Mask == nil || len(exs) > 1 {
			continue
		}
		n.masks++
		for i, w := range ex.Weights {
			if want := e.Mask[i] == 1; (w > 0) != want && !(want && (behindEnd(tpl.tok, ex, i) || supplied(ex, e.Mask, i))) {
				t.Errorf("%s: %s: token %d, %q, weighs %v, and the template's block says %v", e.Name, e.Messages, i, tpl.tok.Decode(ex.IDs[i:i+1]), w, want)
			}
		}
	}
	for name, n := range counts {
		t.Logf("%s: %d conversations as transformers has them, %d in several examples, %d but for a token over the end of the prompt, %d masks; %d refused", name, n.rows-n.refused, n.split, n.apart, n.masks, n.refused)
		if n.refused*2 > n.rows {
			t.Errorf("%s: %d of %d are refused", name, n.refused, n.rows)
		}
	}
	if len(counts) == 0 {
		t.Error("no conversations")
	}
}

// behindEnd tells whether token i is space behind the end token of a turn: some templates have it in their blocks, and no
// model is asked for it.
func behindEnd(tok *tokenizer.Tokenizer, ex Example, i int) bool {
	return i > 0 && ex.Weights[i-1] > 0 && tok.IsControl(ex.IDs[i-1]) && strings.TrimSpace(tok.Decode(ex.IDs[i:i+1])) == ""
}

// supplied tells whether token i is of the header that sampling is given: the blocks of some templates begin within it.
func supplied(ex Example, mask []int, i int) bool {
	for ; i < len(mask) && mask[i] == 1; i++ {
		if ex.Weights[i] > 0 {
			return true
		}
	}
	return false
}
