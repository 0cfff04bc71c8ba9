package hub

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// folder makes files, each holding its own name.
func folder(t *testing.T, names ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, n := range names {
		path := filepath.Join(dir, filepath.FromSlash(n))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(n), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestOpenFinds(t *testing.T) {
	for _, c := range []struct {
		name, given string
		there, want []string
	}{
		{"a file", "a.jsonl", []string{"a.jsonl", "b.jsonl"}, []string{"a.jsonl"}},
		{"a file in a folder", "data/a.jsonl", []string{"data/a.jsonl"}, []string{"data/a.jsonl"}},
		{"a file with another script in its name", "é 漢/数.jsonl", []string{"é 漢/数.jsonl"}, []string{"é 漢/数.jsonl"}},
		{"a glob, in order of name", "*.jsonl", []string{"b.jsonl", "a.jsonl", "c.txt"}, []string{"a.jsonl", "b.jsonl"}},
		{"a glob over folders", "d*/x.jsonl", []string{"d2/x.jsonl", "d1/x.jsonl", "e/x.jsonl"}, []string{"d1/x.jsonl", "d2/x.jsonl"}},
		{"a glob leaves folders out", "*", []string{"a", "sub/b"}, []string{"a"}},
		{"a glob leaves hidden files out", "*", []string{".DS_Store", "a"}, []string{"a"}},
		{"a glob that spells the dot finds hidden files", ".*", []string{".h", "a"}, []string{".h"}},
		{"a set of characters", "[ab].jsonl", []string{"a.jsonl", "b.jsonl", "c.jsonl"}, []string{"a.jsonl", "b.jsonl"}},
		{"a file whose name looks like a glob", "a[1].jsonl", []string{"a[1].jsonl", "a1.jsonl"}, []string{"a[1].jsonl"}},
		{"a glob behind a step up", "x/../*.jsonl", []string{"x/c", "a.jsonl"}, []string{"x/../a.jsonl"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := folder(t, c.there...)
			files, err := (&Hub{}).Open(context.Background(), filepath.FromSlash(c.given), dir)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, f := range files {
				got = append(got, filepath.ToSlash(f.Name))
				raw, err := os.ReadFile(f.Path)
				if err != nil || int64(len(raw)) != f.Size {
					t.Errorf("%s: %d bytes (%v), want %d", f.Path, len(raw), err, f.Size)
				}
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

func TestAWildcardInTheFolderOfTheRecipeIsNone(t *testing.T) {
	dir := folder(t, "run[1]/a.jsonl", "run1/b.jsonl")
	files, err := (&Hub{}).Open(context.Background(), "*.jsonl", filepath.Join(dir, "run[1]"))
	if err != nil || len(files) != 1 || files[0].Name != "a.jsonl" {
		t.Errorf("got %v, %v, want a.jsonl", files, err)
	}
}

func TestNamesCanBeOpenedFromWhereTheCommandRuns(t *testing.T) {
	t.Chdir(folder(t, "recipes/data/a.jsonl"))
	for _, name := range []string{"data/a.jsonl", "data/*.jsonl"} {
		files, err := (&Hub{}).Open(context.Background(), name, "recipes")
		if want := filepath.Join("recipes", "data", "a.jsonl"); err != nil || files[0].Name != want {
			t.Errorf("%s: got %v, %v, want %s", name, files, err, want)
		}
	}
	if files, err := (&Hub{}).Open(context.Background(), "recipes/data/a.jsonl", ""); err != nil || files[0].Name != filepath.Join("recipes", "data", "a.jsonl") {
		t.Errorf("without a folder: got %v, %v", files, err)
	}
}

func TestHashIsOfTheBytes(t *testing.T) {
	files, err := (&Hub{}).Open(context.Background(), "abc", folder(t, "abc"))
	// FIPS 180-2, appendix B.1.
	if want := "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"; err != nil || files[0].SHA256 != want {
		t.Errorf("got %v, %v, want %s", files, err, want)
	}
}

func TestOpenRefuses(t *testing.T) {
	for _, c := range []struct {
		name, given string
		there       []string
		want        string // DIR is the folder
	}{
		{"a missing file, with its neighbour", "tran.jsonl", []string{"train.jsonl"}, `tran.jsonl: no such file; did you mean "train.jsonl"?`},
		{"a missing file that resembles none", "x.jsonl", []string{"train.jsonl"}, "x.jsonl: no such file"},
		{"a missing folder", "other/train.jsonl", []string{"data/train.jsonl"}, `other/train.jsonl: no such file; the folder DIR/other is not there`},
		{"a missing folder, with its neighbour", "datas/train.jsonl", []string{"data/train.jsonl"}, `datas/train.jsonl: no such file; the folder DIR/datas is not there; did you mean "data"?`},
		{"a folder", "data", []string{"data/a"}, "data: is a folder; name a file, or data/*.jsonl for its files"},
		{"a glob that fits nothing", "*.json", []string{"b.jsonl", "a.jsonl"}, "*.json: no file matches in DIR, which has a.jsonl, b.jsonl"},
		{"a glob in an empty folder", "*.json", nil, "*.json: no file matches in DIR, which is empty"},
		{"a glob that fits a folder alone", "d*", []string{"data/a"}, "d*: no file matches in DIR, which has data"},
		{"a broken set", "[a", []string{"a"}, "[a: a [ without its ]; it opens a set of characters"},
		{"a double star", "**/a", []string{"x/a"}, "**/a: ** is not supported; * stays within one folder, so name each folder as a source of its own"},
		{"a step up behind a wildcard", "*/../a", []string{"x/a"}, "*/../a: .. cannot follow a wildcard"},
		{"nothing", "", nil, "empty; a file is due"},
		{"a NUL", "a\x00", nil, `"a\x00": a NUL is no part of a file name`},
		{"the hub of models", "hf://datasets/a/b@main", nil, "hf://datasets/a/b@main: a file of this machine is due; download it and give its path"},
		{"an address", "https://example.org/a.jsonl", nil, "https://example.org/a.jsonl: a file of this machine is due; download it and give its path"},
		{"an open address", "http://example.org/a", nil, "http://example.org/a: http:// can be changed on its way and is refused; download it and give the path of the file"},
		{"a file by address", "file:///a/b", nil, "file:///a/b: give the path without file://, as /a/b"},
		{"standard input", "-", nil, "-: standard input cannot be read more than once, as rows are; write it to a file first (./- is a file of that name)"},
		{"another scheme", "s3://a/b", nil, "s3://a/b: s3:// is not known; download it and give the path of the file"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := folder(t, c.there...)
			files, err := (&Hub{}).Open(context.Background(), c.given, dir)
			want := strings.ReplaceAll(c.want, "DIR", dir)
			if err == nil || err.Error() != want {
				t.Errorf("got %v, %v\nwant %s", files, err, want)
			}
		})
	}
}

func TestALinkToNothingIsNamed(t *testing.T) {
	dir := folder(t, "a.jsonl")
	if err := os.Symlink("gone.jsonl", filepath.Join(dir, "b.jsonl")); err != nil {
		t.Skip(err)
	}
	want := "b.jsonl: a link to gone.jsonl, which is not there"
	if _, err := (&Hub{}).Open(t.Context(), "b.jsonl", dir); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestOpenStopsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancelCause(context.Background())
	cause := errors.New("enough")
	cancel(cause)
	if _, err := (&Hub{}).Open(ctx, "a", folder(t, "a")); !errors.Is(err, cause) {
		t.Errorf("got %v, want %v", err, cause)
	}
}
