package dataset

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"trainer/internal/hub"
	"trainer/loss"
	"trainer/recipe"
)

func TestFilesAtFault(t *testing.T) {
	for _, c := range []struct{ name, file, want string }{
		{"an empty file", "", "rows.jsonl: empty; there is no row in it"},
		{"a byte order mark alone", "\ufeff", "rows.jsonl: empty; there is no row in it"},
		{"blank lines", "\n \n\r\n", "rows.jsonl: empty; there is no row in it"},
		{"an empty list", "[ ]", "rows.jsonl: empty; there is no row in it"},
		{"a list without its end", "[" + pairRow, "rows.jsonl:2: the list ends without its ]; is the file whole?"},
		{"a list that ends in a row", "[\n{\"prompt\": \"q", "rows.jsonl:2: the row is not closed by the end of the file; is the file whole?"},
		{"a comma too few", "[" + pairRow + pairRow + "]", "rows.jsonl:2: a comma or ] is due behind a row of the list, not '{'"},
		{"a comma too many", "[" + pairRow + ",\n]", "rows.jsonl:3: a row is due in the list, not a comma or ]"},
		{"two lists", "[" + pairRow + "]\n[]", "rows.jsonl:3: '[' follows the end of the list"},
		{"UTF-16", "\xff\xfe{\x00", "rows.jsonl:1: UTF-16; save it as UTF-8"},
		{"UTF-32", "\xff\xfe\x00\x00{\x00\x00\x00", "rows.jsonl:1: UTF-32; save it as UTF-8"},
		{"UTF-32, the high byte first", "\x00\x00\xfe\xff\x00\x00\x00{", "rows.jsonl:1: UTF-32; save it as UTF-8"},
		{"a gzip file that is cut off", "\x1f\x8b\x08\x00", "rows.jsonl: the compressed file is cut off; is it whole?"},
		{"a zstd file that is none", "\x28\xb5\x2f\xfdabcdefgh", "rows.jsonl: the compressed file is damaged: unknown dictionary"},
		{"Parquet that is cut off", "PAR1.........", "rows.jsonl: cut off, or written over: the end of a Parquet file is not there"},
		{"a zip archive", "PK\x03\x04abc", "rows.jsonl:1: a zip archive; unpack it first"},
		{"bzip2", "BZh91AY", "rows.jsonl:1: compressed with bzip2; unpack it first, or pack it with gzip or zstd"},
		{"a file compressed twice", gzipped(gzipped(pairRow)), "rows.jsonl:1: compressed twice; unpack it once"},
		{"an empty compressed file", gzipped(""), "rows.jsonl: empty; there is no row in it"},
		{"a compressed list without its end", gzipped("[" + pairRow), "rows.jsonl:2: the list ends without its ]; is the file whole?"},
		{"no JSON at all", "Once upon a time\nthere was\n", "dataset.train.0.path: rows.jsonl: none of its 2 rows is left: 2 are bad and skipped, 0 overlong and dropped; " +
			"the first bad row: rows.jsonl:1: not JSON: byte 1: a value is due, not 'O'"},
		{"a table", "\nquestion,answer\n1,2\n", "rows.jsonl:2: it looks like a table, as in CSV, which is not read; this writes JSON lines of it: " +
			`python3 -c 'import csv,json,sys; [print(json.dumps(r)) for r in csv.DictReader(sys.stdin, delimiter=",")]'`},
		{"a table of tabs", "question\tanswer\n1, 2\t3\n", "rows.jsonl:1: it looks like a table, as in CSV, which is not read; this writes JSON lines of it: " +
			`python3 -c 'import csv,json,sys; [print(json.dumps(r)) for r in csv.DictReader(sys.stdin, delimiter="\t")]'`},
		{"a row over several lines", "{\n \"prompt\": \"a\"\n}\n", "rows.jsonl:1: a row over several lines; in JSON lines a row is one line, as `jq -c .` writes it: or make the file a list, [ … ]"},
		{"UTF-16 without a mark", "{\x00\"\x00", "rows.jsonl:1: UTF-16 or UTF-32 without a byte order mark; save it as UTF-8"},
		{"UTF-16 without a mark, the high byte first", "\x00{\x00\"", "rows.jsonl:1: UTF-16 or UTF-32 without a byte order mark; save it as UTF-8"},
		{"a pointer of Git LFS", "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n",
			"rows.jsonl:1: a pointer of Git LFS and not the file that it points to; `git lfs pull` fetches that"},
		{"a web page", "<!doctype html><html>", "rows.jsonl:1: a web page; was it downloaded as it should be? a refused download, or the page about a file, looks so"},
		{"a tar archive in gzip", gzipped("rows.jsonl" + strings.Repeat("\x00", 247) + "ustar\x00"), "rows.jsonl:1: a tar archive; unpack it first"},
		{"a hole", strings.Repeat("\x00", 100), "rows.jsonl:1: zero bytes; is the file whole?"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFixture(t, map[string]string{"rows.jsonl": c.file}, recipe.Source{Path: "rows.jsonl"})
			f.r.Dataset.OnBadRow = "skip" // a file is no row: nothing skips it
			if _, err := f.open(); err == nil || err.Error() != c.want {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
		})
	}
}

func TestSourcesAtFault(t *testing.T) {
	field := func(cols ...string) recipe.Field { return recipe.Field{Columns: cols} }
	zero := strings.Repeat("0", 64)
	for _, c := range []struct {
		name, row string
		source    recipe.Source
		want      string
	}{
		{"a missing file", pairRow, recipe.Source{Path: "row.jsonl"}, `dataset.train.0.path: row.jsonl: no such file; did you mean "rows.jsonl"?`},
		{"a glob without a match", pairRow, recipe.Source{Path: "*.json"}, "dataset.train.0.path: *.json: no file matches in DIR, which has rows.jsonl"},
		{"another hash", pairRow, recipe.Source{SHA256: &zero},
			"dataset.train.0.sha256: " + zero + " is due, but what is there has 9608c223db4884e052b626c4ae105fcf94015a3280620d0c7ce3d6e25483539e"},
		{"a subset of a file", pairRow, recipe.Source{Subset: ptr("x")}, `dataset.train.0.subset: "x": only an hf:// dataset has subsets; leave it out`},
		{"a first row without columns", "{}\n", recipe.Source{Path: "rows.jsonl"},
			"dataset.train.0.format: auto: no format is known by rows.jsonl:1, which has no column; give format, or leave the row out"},
		{"columns of no format", `{"a": 1, "b": 2}`, recipe.Source{},
			"dataset.train.0.format: auto: no format is known by the columns a, b of rows.jsonl:1; give format, and fields to map columns to it"},
		{"columns whose meaning is told by their names", `{"question": "q", "answer": "a"}`, recipe.Source{},
			"dataset.train.0.format: auto: no format is known by the columns question, answer of rows.jsonl:1; give format, and fields to map columns to it, such as fields: {prompt: question, completion: answer}"},
		{"a list that is none of messages", `{"prompt": "q", "instances": [{"input": "", "output": "a"}]}`, recipe.Source{Fields: map[string]recipe.Field{"completion": field("instances")}},
			"rows.jsonl:1: instances.0.output: not a key of a message (role, content, train, weight); a list is read as messages, and a text in it has a path, such as instances.0.output"},
		{"an empty conversation", `{"conversations": []}`, recipe.Source{}, "rows.jsonl:1: conversations: empty; a conversation needs a message"},
		{"pairs", `{"prompt": "q", "chosen": "a", "rejected": "b"}`, recipe.Source{},
			"dataset.train.0.format: preference rows do not go with this loss; it trains on messages, prompt_completion, text, tokens (told by the first row, rows.jsonl:1)"},
		{"pairs beside messages", `{"prompt": "q", "chosen": [], "rejected": [], "messages": []}`, recipe.Source{},
			"dataset.train.0.format: preference rows do not go with this loss; it trains on messages, prompt_completion, text, tokens (told by the first row, rows.jsonl:1); format: messages takes its messages, and leaves out the rest"},
		{"pairs by name", pairRow, recipe.Source{Format: "preference"}, "dataset.train.0.format: preference rows do not go with this loss; it trains on messages, prompt_completion, text, tokens"},
		{"prompts", `{"prompt": "q"}`, recipe.Source{},
			"dataset.train.0.format: prompts rows do not go with this loss; it trains on messages, prompt_completion, text, tokens (told by the first row, rows.jsonl:1)"},
		{"labels", `{"prompt": "q", "completion": "a", "label": false}`, recipe.Source{},
			"dataset.train.0.format: auto: rows.jsonl:1 has a label of true or false, so its rows may be good and bad ones (labelled), which this loss cannot tell apart; format: prompt_completion trains on all of them"},
		{"a field of no format", pairRow, recipe.Source{Fields: map[string]recipe.Field{"promt": field("prompt")}},
			`dataset.train.0.fields.promt: not a field of prompt_completion rows (prompt, completion, tools, documents); did you mean "prompt"? (told by the first row, rows.jsonl:1)`},
		{"a regex that is none", pairRow, recipe.Source{Fields: map[string]recipe.Field{"prompt": {Columns: []string{"prompt"}, Regex: "("}}},
			"dataset.train.0.fields.prompt: regex: error parsing regexp: missing closing ): `(`"},
		{"a list from a regex", `{"messages": []}`, recipe.Source{Fields: map[string]recipe.Field{"messages": {Columns: []string{"messages"}, Regex: "."}}},
			"dataset.train.0.fields.messages: messages is a list in the row; neither several columns nor a regex make one"},
		{"a regex that does not match", pairRow, recipe.Source{Fields: map[string]recipe.Field{"completion": {Columns: []string{"completion"}, Regex: "#### (.*)"}}},
			`rows.jsonl:1: completion: "a" does not match "#### (.*)"`},
		{"a joined column that no row has", pairRow, recipe.Source{Fields: map[string]recipe.Field{"prompt": field("prompt", "promt2")}},
			`dataset.train.0.fields.prompt: no row has the column promt2; did you mean "prompt"?; the rows have prompt, completion`},
		{"joined columns that are all empty", `{"a": "", "b": null, "completion": "c"}`, recipe.Source{Fields: map[string]recipe.Field{"prompt": field("a", "b")}},
			"rows.jsonl:1: a+b: all of these columns are empty or missing"},
		{"a weight that leaves nothing", pairRow, recipe.Source{Weight: 0.2}, "dataset.train.0.weight: 0.2 of 1 rows leaves none of them in an epoch"},
		{"a weight that fits no memory", pairRow, recipe.Source{Weight: 1e12}, "dataset.train.0.weight: 1e+12 times 1 rows make an epoch of more than 1073741824 rows"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.source.Path == "" {
				c.source.Path = "rows.jsonl"
			}
			f := newFixture(t, map[string]string{"rows.jsonl": c.row}, c.source)
			_, err := f.open()
			if want := strings.ReplaceAll(c.want, "DIR", f.dir); err == nil || err.Error() != want {
				t.Errorf("got  %v\nwant %s", err, want)
			}
		})
	}
	t.Run("rows of text without a tokenizer", func(t *testing.T) {
		f := newFixture(t, map[string]string{"rows.jsonl": pairRow}, recipe.Source{Path: "rows.jsonl"})
		f.tpl = nil
		want := "dataset.train.0.format: prompt_completion rows need a tokenizer, and this model's is not at hand; rows that are tokenised already (format: tokens) do without (told by the first row, rows.jsonl:1)"
		if _, err := f.open(); err == nil || err.Error() != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	})
	t.Run("a weight in validation", func(t *testing.T) {
		f := newFixture(t, map[string]string{"rows.jsonl": pairRow}, recipe.Source{Path: "rows.jsonl"})
		f.r.Dataset.Validation = f.sources("validation", []recipe.Source{{Path: "rows.jsonl", Weight: 2}})
		want := "dataset.validation.0.weight: 2: an evaluation sees every row once, so a weight has no effect here; leave it out"
		if _, err := f.open(); err == nil || err.Error() != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	})
}

// What fields map says what is meant, whatever other columns the rows have.
func TestMappedFieldsTellTheFormat(t *testing.T) {
	column := func(name string) recipe.Field { return recipe.Field{Columns: []string{name}} }
	row := `{"prompt": "q", "chosen": "a", "rejected": "b", "text": "t"}`
	for want, fields := range map[string]map[string]recipe.Field{
		"prompt_completion": {"completion": column("chosen")},
		"text":              {"text": column("rejected")},
	} {
		f := newFixture(t, map[string]string{"rows.jsonl": row}, recipe.Source{Path: "rows.jsonl", Fields: fields})
		if got := f.mustOpen(t).Train.Sources()[0].Format; got != want {
			t.Errorf("%v: the rows are %s, want %s", fields, got, want)
		}
	}
}

func TestEveryProblemAtOnceButTheRestIsCounted(t *testing.T) {
	f := newFixture(t, map[string]string{"a.jsonl": pairRow + strings.Repeat("x\n", 30), "b.jsonl": "x\n" + pairRow},
		recipe.Source{Path: "a.jsonl"}, recipe.Source{Path: "none.jsonl"}, recipe.Source{Path: "b.jsonl"})
	_, err := f.open()
	if err == nil {
		t.Fatal("no error")
	}
	lines := strings.Split(err.Error(), "\n")
	if len(lines) != 22 || lines[0] != "dataset.train.1.path: none.jsonl: no such file" || !strings.HasPrefix(lines[1], "a.jsonl:2: ") || !strings.HasPrefix(lines[20], "a.jsonl:21: ") ||
		lines[21] != "31 of 33 rows are at fault: 11 of them are not listed; dataset.on_bad_row: skip leaves bad rows out" {
		t.Errorf("got %d lines:\n%s", len(lines), err)
	}
}

func TestOverlongRows(t *testing.T) {
	// 10 ids each: <|begin|> <|user|> q <|end|> <|assistant|> a b c d <|end|>; the last five train.
	file := `{"prompt": "q", "completion": "abcd"}` + "\n" + `{"prompt": "q", "completion": "a"}`
	for _, c := range []struct {
		overlong     string
		max          int
		want         []string
		dropped, cut int
	}{
		{"drop", 10, []string{chatRow("q", "abcd"), chatRow("q", "a")}, 0, 0},
		{"drop", 9, []string{chatRow("q", "a")}, 1, 0},
		{"keep_start", 7, []string{"<|begin|><|user|>q<|end|><|assistant|>ab", chatRow("q", "a")}, 0, 1},
		{"keep_end", 7, []string{"<|end|><|assistant|>abcd<|end|>", chatRow("q", "a")}, 0, 1},
	} {
		t.Run(fmt.Sprintf("%s %d", c.overlong, c.max), func(t *testing.T) {
			f := newFixture(t, map[string]string{"rows.jsonl": file}, recipe.Source{Path: "rows.jsonl"})
			f.r.Dataset.Overlong, f.r.Dataset.MaxLength = c.overlong, c.max
			data := f.mustOpen(t)
			if got := f.rows(t, data.Train); !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
			if data.Dropped != c.dropped || data.Cut != c.cut || data.SkippedRows != 0 {
				t.Errorf("dropped %d, cut %d, want %d and %d", data.Dropped, data.Cut, c.dropped, c.cut)
			}
		})
	}
	t.Run("a cut that leaves nothing to train is a bad row", func(t *testing.T) {
		f := newFixture(t, map[string]string{"rows.jsonl": file}, recipe.Source{Path: "rows.jsonl"})
		f.r.Dataset.Overlong, f.r.Dataset.MaxLength = "keep_start", 5
		want := "rows.jsonl:1: 0 of 2 rows have trained tokens; first: rows.jsonl:1: no trained token is left of 10 when dataset.overlong: keep_start keeps 5"
		if _, err := f.open(); err == nil || err.Error() != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	})
}

func TestCountsAreOfWhatIsTrained(t *testing.T) {
	f := newFixture(t, map[string]string{"rows.jsonl": pairRow}, recipe.Source{Path: "rows.jsonl"})
	data := f.mustOpen(t)
	if tokens, trained := data.Train.Count(0); tokens != 7 || trained != 2 {
		t.Errorf("got %d tokens, %d trained, want 7 and the answer's 2", tokens, trained)
	}
	row, err := data.Train.Row(0)
	if err != nil {
		t.Fatal(err)
	}
	want := []loss.Datum{{Input: []int32{256, 259, 113, 257, 260, 97}, Targets: []int32{259, 113, 257, 260, 97, 257}, Weights: []float64{0, 0, 0, 0, 1, 1}}}
	if !reflect.DeepEqual(row.Data, want) {
		t.Errorf("got %v, want inputs, targets and weights shifted by one: %v", row.Data, want)
	}
}

func TestLimitIsOfTheFirstRowsInFileOrder(t *testing.T) {
	f := newFixture(t, map[string]string{"a.jsonl": numbered("a", 3), "b.jsonl": numbered("b", 3)}, recipe.Source{Path: "*.jsonl", Limit: ptr(4)})
	data := f.mustOpen(t)
	want := []string{chatRow("a0", "x"), chatRow("a1", "x"), chatRow("a2", "x"), chatRow("b0", "x")}
	if got := f.rows(t, data.Train); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if src := data.Train.Sources()[0]; src.Files != 2 || src.Rows != 4 {
		t.Errorf("got %+v, want 4 rows of 2 files", src)
	}
	f = newFixture(t, map[string]string{"a.jsonl": pairRow + "what is behind the limit is not looked at"}, recipe.Source{Path: "a.jsonl", Limit: ptr(1)})
	f.mustOpen(t)
}

func numbered(prefix string, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "{\"prompt\": \"%s%d\", \"completion\": \"x\"}\n", prefix, i)
	}
	return b.String()
}

func TestValidationSplit(t *testing.T) {
	for _, c := range []struct {
		name  string
		split recipe.Split
		held  int
	}{
		{"a share", recipe.Split{Share: 0.2}, 10},
		{"a share that rounds to none holds out one", recipe.Split{Share: 0.001}, 1},
		{"a number", recipe.Split{Rows: 7}, 7},
	} {
		t.Run(c.name, func(t *testing.T) {
			held := map[int64]string{}
			for _, seed := range []int64{1, 1, 2} {
				f := newFixture(t, map[string]string{"a.jsonl": numbered("a", 30), "b.jsonl": numbered("b", 20)}, recipe.Source{Path: "a.jsonl"}, recipe.Source{Path: "b.jsonl"})
				f.r.Seed, f.r.Dataset.ValidationSplit = seed, &c.split
				data := f.mustOpen(t)
				out, in := f.rows(t, data.Held), f.rows(t, data.Train)
				if len(out) != c.held || len(in)+len(out) != 50 {
					t.Fatalf("%d held out, %d trained, want %d of 50", len(out), len(in), c.held)
				}
				all := slices.Sorted(slices.Values(slices.Concat(in, out)))
				if len(slices.Compact(all)) != 50 {
					t.Errorf("a row is in both sets: %q", out)
				}
				if first, ok := held[seed]; ok && first != fmt.Sprint(out) {
					t.Errorf("seed %d held out %s, then %s", seed, first, out)
				}
				held[seed] = fmt.Sprint(out)
				if o := data.Held.Order(seed, 3); !slices.Equal(o, upTo(0, len(out))) {
					t.Errorf("held-out rows come in order %v, want file order", o)
				}
				if data.Held.Hash() == data.Train.Hash() {
					t.Error("both sets have one hash")
				}
			}
			if c.held > 1 && held[1] == held[2] {
				t.Error("two seeds held out the same rows")
			}
		})
	}
	f := newFixture(t, map[string]string{"a.jsonl": numbered("a", 5)}, recipe.Source{Path: "a.jsonl"})
	f.r.Dataset.ValidationSplit = &recipe.Split{Rows: 5}
	want := "dataset.validation_split: holds out 5 of 5 rows, which leaves none to train on"
	if _, err := f.open(); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestValidationOfItsOwn(t *testing.T) {
	f := newFixture(t, map[string]string{"a.jsonl": numbered("a", 3), "v.jsonl": `{"text": "v"}`}, recipe.Source{Path: "a.jsonl"})
	f.r.Dataset.Validation = f.sources("validation", []recipe.Source{{Path: "v.jsonl"}})
	data := f.mustOpen(t)
	if got := f.rows(t, data.Held); !slices.Equal(got, []string{"<|begin|>v<|end|>"}) || data.Train.Len() != 3 {
		t.Errorf("held %q beside %d rows", got, data.Train.Len())
	}
	f.r.Dataset.Validation = nil
	if data := f.mustOpen(t); data.Held != nil {
		t.Error("a held-out set that nobody asked for")
	}
}

func TestHashFollowsTheBytes(t *testing.T) {
	files := map[string]string{"a.jsonl": numbered("a", 3)}
	base := newFixture(t, files, recipe.Source{Path: "a.jsonl"})
	one, err := base.mustOpen(t).Train.Rendered()
	if err != nil {
		t.Fatal(err)
	}
	h := base.mustOpen(t).Train.Hash()
	if again := newFixture(t, files, recipe.Source{Path: "a.jsonl"}).mustOpen(t).Train.Hash(); again != h {
		t.Error("the hash depends on the folder")
	}
	if other := newFixture(t, files, recipe.Source{Path: "a.jsonl", Limit: ptr(2)}).mustOpen(t).Train.Hash(); other == h {
		t.Error("a limit leaves the hash as it is")
	}
	changed := newFixture(t, map[string]string{"a.jsonl": files["a.jsonl"] + "\n"}, recipe.Source{Path: "a.jsonl"}).mustOpen(t)
	if changed.Train.Hash() == h {
		t.Error("a byte more leaves the hash as it is")
	}
	two, err := changed.Train.Rendered()
	if err != nil || two != one {
		t.Errorf("a blank line changes the rendered rows: %s, %s, %v", one, two, err)
	}
	base.tpl = byteTemplate(t, recipe.Chat{TrainOn: "all_tokens"})
	if three, err := base.mustOpen(t).Train.Rendered(); err != nil || three == one {
		t.Errorf("other masks leave the rendered rows as they are (%v)", err)
	}
}

func TestAFileThatChangesUnderTheRunIsNoticed(t *testing.T) {
	f := newFixture(t, map[string]string{"a.jsonl": numbered("a", 3)}, recipe.Source{Path: "a.jsonl"})
	set := f.mustOpen(t).Train
	if err := os.WriteFile(filepath.Join(f.dir, "a.jsonl"), []byte(numbered("b", 2)), 0o600); err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"a.jsonl:1: the file has changed since it was checked; a run needs its rows unchanged", "",
		"a.jsonl:3: the file has changed since it was checked; a run needs its rows unchanged"} {
		if _, err := set.Row(i); err == nil || (want != "" && err.Error() != want) {
			t.Errorf("row %d: got %v, want %s", i, err, want)
		}
	}
	if err := os.Remove(filepath.Join(f.dir, "a.jsonl")); err != nil {
		t.Fatal(err)
	}
	if _, err := set.Row(0); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file that is gone: %v", err)
	}
}

func TestManyBlocksKeepFileOrder(t *testing.T) {
	const n = 3*blockRows + 17
	f := newFixture(t, map[string]string{"a.jsonl": numbered("a", n)}, recipe.Source{Path: "a.jsonl"})
	set := f.mustOpen(t).Train
	if set.Len() != n {
		t.Fatalf("%d rows, want %d", set.Len(), n)
	}
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for i := w; i < n; i += 997 {
				row, err := set.Row(i)
				if err != nil || row.At.Line != i+1 || len(row.Data[0].Input) != len(fmt.Sprint(i))+6 {
					t.Errorf("row %d is %v (%v)", i, row, err)
				}
			}
		})
	}
	wg.Wait()
}

func TestOpenStopsWithItsContext(t *testing.T) {
	f := newFixture(t, map[string]string{"a.jsonl": numbered("a", 3)}, recipe.Source{Path: "a.jsonl"})
	ctx, cancel := context.WithCancelCause(context.Background())
	cause := errors.New("enough")
	cancel(cause)
	if _, err := Open(ctx, f.r, f.tpl, &hub.Hub{}); !errors.Is(err, cause) {
		t.Errorf("got %v, want %v", err, cause)
	}
}
