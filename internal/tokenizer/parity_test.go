package tokenizer

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// golden is a line of .ci/tokenizers/reference.py: what the Python library made of a string.
type golden struct {
	Text    string
	Base64  []byte
	IDs     []int32
	Ends    []int
	Decoded *string
}

func (g golden) text() string {
	if g.Base64 != nil {
		return string(g.Base64)
	}
	return g.Text
}

// decoded is the text that the library made of the ids: that of the string, where the line says nothing.
func (g golden) decoded() string {
	if g.Decoded != nil {
		return *g.Decoded
	}
	if g.Base64 != nil {
		return lossy(g.Base64)
	}
	return g.Text
}

// TestParity compares with the answers of the Python library in the folder TRAINER_TOKENIZERS, as .ci/tokenizers/run makes it:
// NAME.path holds the path of a tokenizer, NAME.jsonl the answers.
func TestParity(t *testing.T) {
	folder := os.Getenv("TRAINER_TOKENIZERS")
	if folder == "" {
		t.Skip("TRAINER_TOKENIZERS names no folder: .ci/tokenizers/run makes one")
	}
	paths, err := filepath.Glob(filepath.Join(folder, "*.path"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("%s: no NAME.path (%v)", folder, err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".path"), func(t *testing.T) {
			target, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			tok, err := Open(strings.TrimSpace(string(target)))
			if err != nil {
				t.Fatal(err)
			}
			t.Log(compare(t, tok, strings.TrimSuffix(path, ".path")+".jsonl"), "strings")
		})
	}
}

// compare holds tok to the answers of a file, and says how many there were.
func compare(t *testing.T, tok *Tokenizer, file string) int {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	in := json.NewDecoder(bufio.NewReaderSize(f, 1<<20))
	n, wrong := 0, 0
	for ; ; n++ {
		var g golden
		if err := in.Decode(&g); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if problem := differs(tok, g); problem != "" {
			if wrong++; wrong <= 5 {
				t.Errorf("%.300q (base64 %s):\n%s", g.text(), base64.StdEncoding.EncodeToString([]byte(g.text()[:min(300, len(g.text()))])), problem)
			}
		}
	}
	if wrong > 0 || n == 0 {
		t.Errorf("%d of %d strings are wrong", wrong, n)
	}
	return n
}

// differs says what is not as in g, "" for nothing.
func differs(tok *Tokenizer, g golden) string {
	ids, ends := tok.EncodeControl(g.text())
	switch {
	case !slices.Equal(ids, g.IDs):
		at := 0
		for at < min(len(ids), len(g.IDs)) && ids[at] == g.IDs[at] {
			at++
		}
		return "ids differ from " + itoa(at) + " on: got " + shown(ids[at:]) + ", want " + shown(g.IDs[at:])
	case g.Ends != nil && !slices.Equal(ends, g.Ends): // of ranks the reference gives none
		return "ends: got " + shown(ends) + ", want " + shown(g.Ends)
	case tok.Decode(ids) != g.decoded():
		return "decoded: got " + tok.Decode(ids) + ", want " + g.decoded()
	}
	return ""
}

func shown[T any](list []T) string {
	text, _ := json.Marshal(list[:min(len(list), 40)])
	return string(text)
}
