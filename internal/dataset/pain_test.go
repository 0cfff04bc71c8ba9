package dataset

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"trainer/recipe"
)

// What has gone wrong for others, each held here.

func TestNamesOfAnyAlphabet(t *testing.T) {
	for _, name := range []string{"données.jsonl", "数据 1.jsonl", "ü.gz", "[1].jsonl"} {
		file := pairRow + "x\n"
		if strings.HasSuffix(name, ".gz") {
			file = gzipped(file)
		}
		f := newFixture(t, map[string]string{name: file}, recipe.Source{Path: name})
		_, err := f.open()
		if want := name + ":2: not JSON: byte 1: a value is due, not 'x'"; err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// Sources whose rows do not fill the last batch are seen whole, each row once.
func TestRaggedSourcesAreSeenWhole(t *testing.T) {
	f := newFixture(t, map[string]string{"a.jsonl": numbered("a", 5), "b.jsonl": numbered("b", 3)}, recipe.Source{Path: "a.jsonl"}, recipe.Source{Path: "b.jsonl"})
	set := f.mustOpen(t).Train
	for epoch := range 3 {
		order := set.Order(42, epoch)
		if slices.Sort(order); !slices.Equal(order, upTo(0, 8)) {
			t.Errorf("epoch %d sees %v, want each of 8 rows once", epoch, order)
		}
	}
}

// A file that is edited is unpacked anew: a copy is named by the bytes that it was made of, not by the file's name.
func TestAnEditedFileIsUnpackedAnew(t *testing.T) {
	f := newFixture(t, map[string]string{"a.gz": gzipped(numbered("a", 2))}, recipe.Source{Path: "a.gz"})
	f.mustOpen(t)
	if err := os.WriteFile(filepath.Join(f.dir, "a.gz"), []byte(gzipped(numbered("b", 2))), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, want := f.rows(t, f.mustOpen(t).Train), []string{chatRow("b0", "x"), chatRow("b1", "x")}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// The answer behind #### is kept as it is written: what its commas mean is for a grader to say. A row without one is named.
func TestAnswersBehindAMark(t *testing.T) {
	answer := recipe.Field{Columns: []string{"answer"}, Regex: `#### (\S+)`}
	rows := []string{`so\n#### 72`, `<<1+1=2>>\n#### 1,450`, `#### -3.5%`, `#### $70,000`, `#### 5 and #### 6`}
	var file strings.Builder
	for _, r := range rows {
		fmt.Fprintf(&file, `{"question": "q", "answer": "%s"}`+"\n", r)
	}
	source := recipe.Source{Path: "a.jsonl", Fields: map[string]recipe.Field{"prompt": {Columns: []string{"question"}}, "completion": answer}}
	f := newFixture(t, map[string]string{"a.jsonl": file.String()}, source)
	var want []string
	for _, a := range []string{"72", "1,450", "-3.5%", "$70,000", "5"} {
		want = append(want, chatRow("q", a))
	}
	if got := f.rows(t, f.mustOpen(t).Train); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	f = newFixture(t, map[string]string{"a.jsonl": file.String() + `{"question": "q", "answer": "I do not know"}`}, source)
	wrong := `a.jsonl:6: answer: "I do not know" does not match "#### (\\S+)"`
	if _, err := f.open(); err == nil || err.Error() != wrong {
		t.Errorf("got %v, want %s", err, wrong)
	}
}

// Under Parquet's one schema every struct has every key: those that a row does not have are not there, and in no tokens.
func TestNoNullIsMadeUp(t *testing.T) {
	file, err := os.ReadFile("parquet/testdata/plain.parquet")
	if err != nil {
		t.Fatal(err)
	}
	f := newFixture(t, map[string]string{"a.parquet": string(file)})
	files, err := f.hub.Open(t.Context(), "a.parquet", f.dir)
	if err != nil {
		t.Fatal(err)
	}
	got, err := unpacker{f.hub.Cache}.find(t.Context(), files[0], -1)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(got.path)
	if err != nil {
		t.Fatal(err)
	}
	second := trimmed([]byte(strings.Split(string(text), "\n")[1]))
	if v := lookup(second, "messages.0.tool_calls.0.arguments"); string(v) != `{"city":"Bern"}` {
		t.Errorf("arguments are %s", v)
	}
	first := trimmed([]byte(strings.Split(string(text), "\n")[0]))
	if v := lookup(first, "tags"); string(v) != `["x",null,"y"]` {
		t.Errorf("a list with a null is %s", v)
	}
}

func TestBinaryColumnsAreRefusedWhereAFieldNamesThem(t *testing.T) {
	file, err := os.ReadFile("parquet/testdata/scalars.parquet")
	if err != nil {
		t.Fatal(err)
	}
	column := func(name string) map[string]recipe.Field {
		return map[string]recipe.Field{"text": {Columns: []string{name}}}
	}
	f := newFixture(t, map[string]string{"a.parquet": string(file)}, recipe.Source{Path: "a.parquet", Fields: column("day")})
	f.r.Dataset.OnBadRow = "skip" // the third day is null
	f.mustOpen(t)
	f.r.Dataset.OnBadRow, f.r.Dataset.Train[0].Fields = "error", column("bytes")
	if _, err := f.open(); err == nil || !strings.HasPrefix(err.Error(), "a.parquet:1: bytes: binary where text is due\na.parquet:2: bytes: null where text is due\n") {
		t.Errorf("got %v", err)
	}
	f.r.Dataset.Train[0].Fields = map[string]recipe.Field{"prompt": {Columns: []string{"bytes"}}, "completion": {Columns: []string{"day"}}}
	if _, err := f.open(); err == nil || !strings.HasPrefix(err.Error(), "a.parquet:1: bytes: binary where ") {
		t.Errorf("as a prompt: %v", err)
	}
}
