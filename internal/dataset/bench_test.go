package dataset

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"

	"trainer/recipe"
)

// chatLines are conversations of about 1 KB a row, with escapes and characters of several bytes.
func chatLines(rows int) []byte {
	said := strings.Repeat(`the quick \"brown\" fox jumps over the lazy dog, não é? 你好\n`, 4)
	var b bytes.Buffer
	for i := range rows {
		fmt.Fprintf(&b, `{"id": %d, "messages": [{"role": "user", "content": "%s"}, {"role": "assistant", "content": "%s"}, {"role": "user", "content": "and then?"}, {"role": "assistant", "content": "%s"}]}`+"\n", i, said, said, said)
	}
	return b.Bytes()
}

// BenchmarkOpen reads, checks and renders every row of a file.
func BenchmarkOpen(b *testing.B) {
	lines := chatLines(20000)
	list := append(append([]byte("["), bytes.ReplaceAll(bytes.TrimSpace(lines), []byte("\n"), []byte(",\n"))...), ']')
	for name, text := range map[string][]byte{"lines": lines, "list": list} {
		b.Run(name, func(b *testing.B) {
			f := newFixture(b, map[string]string{"rows": string(text)}, recipe.Source{Path: "rows"})
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				f.mustOpen(b)
			}
		})
	}
}

func BenchmarkSplit(b *testing.B) {
	lines := chatLines(20000)
	list := append(append([]byte("["), bytes.ReplaceAll(bytes.TrimSpace(lines), []byte("\n"), []byte(",\n"))...), ']')
	for name, text := range map[string][]byte{"lines": lines, "list": list} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				s, err := newSplitter(bytes.NewReader(text))
				var row []byte
				for err == nil {
					row, _, err = s.next(row[:0])
				}
				if err != io.EOF {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkCheck is the strict reader alone, beside what the standard library takes to tell whether a row is JSON.
func BenchmarkCheck(b *testing.B) {
	row := bytes.TrimSpace(chatLines(1))
	b.Run("ours", func(b *testing.B) {
		b.SetBytes(int64(len(row)))
		for b.Loop() {
			if err := check(row); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("json.Valid", func(b *testing.B) {
		b.SetBytes(int64(len(row)))
		for b.Loop() {
			if !json.Valid(row) {
				b.Fatal("not valid")
			}
		}
	})
}
