package hub

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
)

func FuzzNamesStayInTheCache(f *testing.F) {
	for _, s := range []string{"hf://a/b", "hf://datasets/a/b@v1/x/*.jsonl", "hf://a/b@refs/pr/1", "hf://../..@..", "hf://a/b@%2e%2e%2fx", "hf://datasets/a", "hf://a/b@%zz", "hf://a/b@\x00"} {
		f.Add(s)
	}
	h := &Hub{Cache: "cache", Endpoint: "http://127.0.0.1:1"}
	f.Fuzz(func(t *testing.T, given string) {
		n, err := parse(given)
		if err != nil {
			return
		}
		for _, p := range []string{h.repoDir(n), h.refFile(n), h.listFile(n, strings.Repeat("a", 40))} {
			if !strings.HasPrefix(filepath.Clean(p), filepath.Join("cache", "127.0.0.1_1", n.kind)+string(filepath.Separator)) {
				t.Errorf("%q is kept at %s", given, p)
			}
		}
		if n.path == "" && Ref(n.ref()) != n.ref() {
			t.Errorf("%q is known as %s, and that as %s", given, n.ref(), Ref(n.ref()))
		}
	})
}

func FuzzWhatTheHubAnswers(f *testing.F) {
	f.Add([]byte(`[{"type":"file","path":"a/b","size":1,"oid":"0000000000000000000000000000000000000000"}]`), []byte(`[{"config_name":"x","data_files":"**/[!a]*.jsonl"}]`))
	f.Add([]byte(`[{"type":"file","path":"../b","size":-1,"lfs":{"oid":"x"}}]`), []byte(`[{"data_dir":"x","data_files":[{"split":"train","path":["[","[]a]"]}]}]`))
	f.Add([]byte(`{}`), []byte(`null`))
	f.Fuzz(func(t *testing.T, tree, card []byte) {
		files, err := readTree(tree)
		if err != nil {
			files = []entry{{Path: "train.jsonl"}}
		}
		for _, e := range files {
			if !filepath.IsLocal(filepath.FromSlash(e.Path)) {
				t.Errorf("%q passes", e.Path)
			}
		}
		configs, err := readConfigs(json.RawMessage(card))
		if err != nil {
			return
		}
		s := &snapshot{Files: files, Configs: configs}
		for _, c := range append(configs, config{}) {
			got, err := s.choose(c.Name, "train")
			if err == nil && len(got) == 0 {
				t.Errorf("subset %q has no files, and no error", c.Name)
			}
		}
	})
}
