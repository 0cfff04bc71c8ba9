package hub

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestTheFilesOfASplit(t *testing.T) {
	card := func(configs ...any) any { return map[string]any{"configs": configs} }
	type m = map[string]any
	two := card(
		m{"config_name": "en", "data_files": []any{m{"split": "train", "path": "en/train-*"}, m{"split": "test", "path": []string{"en/test.jsonl"}}}},
		m{"config_name": "de", "data_files": "de/*.jsonl"})
	files := []string{"en/train-1.jsonl", "en/train-2.jsonl", "en/test.jsonl", "de/a.jsonl", "README.md"}
	for _, c := range []struct {
		name, subset, split string
		card                any
		files, want         []string
		err                 string
	}{
		{name: "one file is train", files: []string{"data.jsonl", "README.md"}, want: []string{"data.jsonl"}},
		{name: "files by their names", files: []string{"my-train.jsonl", "test.jsonl"}, want: []string{"my-train.jsonl"}},
		{name: "another split by its other name", split: "validation", files: []string{"train.jsonl", "dev_1.jsonl"}, want: []string{"dev_1.jsonl"}},
		{name: "folders before files", files: []string{"training/test.jsonl", "testing/train.jsonl"}, want: []string{"training/test.jsonl"}},
		{name: "a word inside a word is none", files: []string{"trainable.jsonl", "contest.jsonl"}, want: []string{"contest.jsonl", "trainable.jsonl"}},
		{name: "shards before all", split: "sft", files: []string{"data/sft-00000-of-00002.parquet", "data/sft-00001-of-00002.parquet", "data/test-00000-of-00001.parquet", "train.parquet"},
			want: []string{"data/sft-00000-of-00002.parquet", "data/sft-00001-of-00002.parquet"}},
		{name: "compressed", files: []string{"train.jsonl.gz", "train-2.json.zst"}, err: "has files of several kinds, .json and .jsonl"},
		{name: "hidden files and cards are no rows", files: []string{".train.jsonl", "a/.b/train.jsonl", "dataset_infos.json", "x.jsonl"}, want: []string{"x.jsonl"}},
		{name: "nothing that can be read", files: []string{"train.csv"}, err: "has no file of rows that can be read (.jsonl, .parquet, .json, .ndjson); it has train.csv"},
		{name: "a split that is not there", split: "dev", files: []string{"train.jsonl", "dev.jsonl"}, err: `has no split "dev"; it has validation, train`},

		{name: "a subset of the card", subset: "en", card: two, files: files, want: []string{"en/train-1.jsonl", "en/train-2.jsonl"}},
		{name: "its list of paths", subset: "en", split: "test", card: two, files: files, want: []string{"en/test.jsonl"}},
		{name: "patterns without a split are train", subset: "de", card: two, files: files, want: []string{"de/a.jsonl"}},
		{name: "several subsets, none named", card: two, files: files, err: "has several subsets: name one of en, de with subset"},
		{name: "a subset that is not there", subset: "enn", card: two, files: files, err: `has no subset "enn"; it has en, de; did you mean "en"?`},
		{name: "a subset where there are none", subset: "en", files: files, err: "has no subsets; leave subset out"},
		{name: "the default of several", card: card(m{"config_name": "a", "data_files": "a.jsonl"}, m{"config_name": "b", "data_files": "b.jsonl", "default": true}), files: []string{"a.jsonl", "b.jsonl"}, want: []string{"b.jsonl"}},
		{name: "a folder of a subset", card: card(m{"config_name": "x", "data_dir": "./x/"}), files: []string{"x/train.jsonl", "x/test.jsonl", "train.jsonl"}, want: []string{"x/train.jsonl"}},
		{name: "patterns below a folder", card: card(m{"config_name": "x", "data_dir": "x", "data_files": "*.jsonl"}), files: []string{"x/a.jsonl", "a.jsonl"}, want: []string{"x/a.jsonl"}},
		{name: "folders of any depth", card: card(m{"config_name": "x", "data_files": "**/a*.jsonl"}), files: []string{"a.jsonl", "x/y/ab.jsonl", "x/b.jsonl"}, want: []string{"a.jsonl", "x/y/ab.jsonl"}},
		{name: "a pattern that fits nothing", card: card(m{"config_name": "x", "data_files": "b.jsonl"}), files: []string{"a.jsonl"}, err: "no file is b.jsonl; it has a.jsonl"},
		{name: "files elsewhere", card: card(m{"config_name": "x", "data_files": "https://example.org/a.jsonl"}), files: []string{"a.jsonl"}, err: `names files elsewhere, "https://example.org/a.jsonl"`},
		{name: "files above", card: card(m{"config_name": "x", "data_files": "../../a.jsonl"}), files: []string{"a.jsonl"}, err: "names files elsewhere"},
		{name: "a card that names no files", card: card(m{"config_name": "x"}), files: []string{"train.jsonl"}, want: []string{"train.jsonl"}},
		{name: "a card that is wrong", card: card(m{"config_name": "x", "data_files": 3}), files: []string{"train.jsonl"}, err: `its card: subset "x": data_files is neither`},
	} {
		t.Run(c.name, func(t *testing.T) {
			server, h := world(t)
			all := map[string]string{}
			for _, f := range c.files {
				all[f] = f
			}
			server.Add("datasets/a/b", all, c.card)
			got, err := h.Rows(context.Background(), Source{Name: "hf://datasets/a/b", Subset: c.subset, Split: c.split})
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) || !strings.HasPrefix(err.Error(), "hf://datasets/a/b: ") {
					t.Errorf("got %v, want %s", err, c.err)
				}
				return
			}
			var names []string
			for _, f := range got {
				names = append(names, strings.TrimPrefix(f.Name, "hf://datasets/a/b/"))
			}
			if err != nil || !slices.Equal(names, c.want) {
				t.Errorf("got %v, %v, want %v", names, err, c.want)
			}
		})
	}
}

func TestNamesOfTheHub(t *testing.T) {
	server, h := world(t)
	first := server.Add("datasets/a/b", map[string]string{"x/1.jsonl": "1", "x/2.jsonl": "2", "train.jsonl": "3"}, nil)
	server.Tag("datasets/a/b", "v1.0", first)
	server.Tag("datasets/a/b", "refs/convert/parquet", first)
	server.Add("models/a/m", map[string]string{"tokenizer.json": "{}"}, nil)
	for _, c := range []struct{ given, want string }{
		{"hf://datasets/a/b@v1.0", "hf://datasets/a/b@v1.0/train.jsonl"},
		{"hf://datasets/a/b@" + first, "hf://datasets/a/b@" + first + "/train.jsonl"},
		{"hf://datasets/a/b@refs/convert/parquet", "hf://datasets/a/b@refs/convert/parquet/train.jsonl"},
		{"hf://datasets/a/b/x/*.jsonl", "hf://datasets/a/b/x/1.jsonl hf://datasets/a/b/x/2.jsonl"},
		{"hf://datasets/a/b@v1.0/x/2.jsonl", "hf://datasets/a/b@v1.0/x/2.jsonl"},
		{"hf://datasets/a/b@v1", `hf://datasets/a/b@v1: has no revision "v1"; it has main, refs/convert/parquet, v1.0`},
		{"hf://datasets/a/c", "hf://datasets/a/c: the hub has no such dataset: check the name; one that is private needs HF_TOKEN"},
		{"hf://datasets/a/m", "hf://datasets/a/m: the hub has no such dataset: check the name; one that is private needs HF_TOKEN; there is a model of that name, hf://a/m"},
		{"hf://a/m", "hf://a/m: names a model; a dataset is hf://datasets/a/m"},
		{"hf://datasets/squad", "hf://datasets/squad: is no name on the hub; it is hf://datasets/org/name or hf://datasets/org/name@revision"},
		{"hf://datasets/../etc", "hf://datasets/../etc: is no name on the hub; it is hf://datasets/org/name or hf://datasets/org/name@revision"},
		{"hf://datasets/a/b@../x", "hf://datasets/a/b@../x: what follows @ is no revision: a branch, a tag or a commit is due, a / in it written %2F"},
		{"hf://spaces/a/b", "hf://spaces/a/b: only models and datasets of the hub can be named, as hf://org/name or hf://org/name@revision"},
	} {
		got, err := rows(t, h, c.given)
		var names []string
		for _, f := range got {
			names = append(names, f.Name)
		}
		text := strings.Join(names, " ")
		if err != nil {
			text = err.Error()
		}
		if text != c.want {
			t.Errorf("%s: got\n%s, want\n%s", c.given, text, c.want)
		}
	}
}

func TestUnsafeNamesOfFilesAreRefused(t *testing.T) {
	for _, p := range []string{"../x", "a/../../x", "/etc/passwd", `a\b`, "a//b", "./a", "a\x00b", "C:x", "a/", "a."} {
		if safe(p) {
			t.Errorf("%q passes", p)
		}
		body := []byte(`[{"type":"file","path":` + quoted(p) + `,"size":1,"oid":"` + strings.Repeat("0", 40) + `"}]`)
		if _, err := readTree(body); err == nil {
			t.Errorf("a listing with %q passes", p)
		}
	}
	for _, p := range []string{"a.jsonl", "data/train-00000-of-00001.parquet", "é/漢.json"} {
		if !safe(p) {
			t.Errorf("%q is refused", p)
		}
	}
}

func quoted(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, "\x00", `\u0000`).Replace(s) + `"`
}

func TestTheEnvironmentOfTheHub(t *testing.T) {
	dir := folder(t, "home/.cache/huggingface/token", "else/token")
	home := filepath.Join(dir, "home")
	saved := "home/.cache/huggingface/token" // folder writes names as contents
	for _, c := range []struct {
		name                   string
		env                    map[string]string
		cache, endpoint, token string
		offline                bool
	}{
		{"home alone", map[string]string{"HOME": home}, filepath.Join(home, ".cache", "trainer"), public, saved, false},
		{"XDG", map[string]string{"HOME": home, "XDG_CACHE_HOME": dir}, filepath.Join(dir, "trainer"), public, "", false},
		{"our own cache", map[string]string{"HOME": home, "TRAINER_CACHE": dir}, dir, public, saved, false},
		{"a token", map[string]string{"HOME": home, "HF_TOKEN": " hf_x\n"}, filepath.Join(home, ".cache", "trainer"), public, "hf_x", false},
		{"no saved token", map[string]string{"HOME": home, "HF_HUB_DISABLE_IMPLICIT_TOKEN": "1"}, filepath.Join(home, ".cache", "trainer"), public, "", false},
		{"a token elsewhere", map[string]string{"HF_TOKEN_PATH": filepath.Join(dir, "else", "token")}, "", public, "else/token", false},
		{"another hub, offline", map[string]string{"HF_ENDPOINT": "http://x/", "HF_HUB_OFFLINE": "true"}, "", "http://x", "", true},
		{"offline that is off", map[string]string{"HF_HUB_OFFLINE": "0"}, "", public, "", false},
	} {
		h := New(func(k string) string { return c.env[k] })
		if h.Cache != c.cache || h.Endpoint != c.endpoint || h.Token != c.token || (h.Offline != "") != c.offline {
			t.Errorf("%s: got %q %q %q %q", c.name, h.Cache, h.Endpoint, h.Token, h.Offline)
		}
	}
}
