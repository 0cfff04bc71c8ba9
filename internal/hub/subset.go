package hub

import (
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"trainer/internal/diag"
)

// config is a subset as a dataset's card declares it.
type config struct {
	Name    string
	Default bool      `json:",omitempty"`
	Splits  []portion `json:",omitempty"`
	Dir     string    `json:",omitempty"` // without Splits: they are told by the names below it
}

// portion is files of a subset, a split of it, by patterns.
type portion struct {
	Name  string
	Paths []string
}

// readConfigs reads the member configs of a card: subsets that name no files say nothing of them and are left out.
func readConfigs(raw json.RawMessage) (out []config, err error) {
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	var all []struct {
		Name    string          `json:"config_name"`
		Default bool            `json:"default"`
		Dir     string          `json:"data_dir"`
		Files   json.RawMessage `json:"data_files"`
	}
	if err := json.Unmarshal(raw, &all); err != nil {
		return nil, errors.New("configs is no list of subsets")
	}
	for _, a := range all {
		c := config{Name: a.Name, Default: a.Default || a.Name == "default", Dir: strings.Trim(strings.TrimPrefix(a.Dir, "./"), "/")}
		if c.Name == "" {
			c.Name, c.Default = "default", true
		}
		if c.Splits, err = readSplits(a.Files); err != nil {
			return nil, fmt.Errorf("subset %q: %w", c.Name, err)
		}
		if len(c.Splits) > 0 || c.Dir != "" {
			out = append(out, c)
		}
	}
	return out, nil
}

// readSplits reads data_files: patterns, which are of train, or a list of splits with their patterns.
func readSplits(raw json.RawMessage) (out []portion, err error) {
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	if paths, ok := texts(raw); ok {
		return []portion{{"train", paths}}, nil
	}
	var all []struct {
		Split string          `json:"split"`
		Path  json.RawMessage `json:"path"`
	}
	if err := json.Unmarshal(raw, &all); err != nil {
		return nil, errors.New("data_files is neither a pattern nor a list of them")
	}
	for _, a := range all {
		paths, ok := texts(a.Path)
		if !ok || a.Split == "" || slices.ContainsFunc(out, func(s portion) bool { return s.Name == a.Split }) {
			return nil, errors.New("data_files has an entry that is no split with its path")
		}
		out = append(out, portion{a.Split, paths})
	}
	return out, nil
}

// texts reads a text or a list of them.
func texts(raw json.RawMessage) ([]string, bool) {
	var one string
	if json.Unmarshal(raw, &one) == nil && one != "" {
		return []string{one}, true
	}
	var all []string
	if json.Unmarshal(raw, &all) != nil || len(all) == 0 || slices.Contains(all, "") {
		return nil, false
	}
	return all, true
}

// choose finds the files of a subset and a split: as the card declares them, else by the names of files and folders.
func (s *snapshot) choose(subset, want string) ([]entry, error) {
	c, err := s.config(subset)
	if err != nil {
		return nil, err
	}
	splits := c.Splits
	if len(splits) == 0 {
		if splits, err = s.told(c.Dir); err != nil {
			return nil, err
		}
	}
	i := slices.IndexFunc(splits, func(p portion) bool { return p.Name == want })
	if i < 0 {
		var names []string
		for _, p := range splits {
			names = append(names, p.Name)
		}
		return nil, fmt.Errorf("has no split %q; it has %s%s", want, strings.Join(names, ", "), diag.DidYouMean(want, names))
	}
	patterns := slices.Clone(splits[i].Paths)
	for j, p := range patterns {
		if strings.Contains(p, "://") || strings.HasPrefix(p, "/") || slices.Contains(strings.Split(p, "/"), "..") {
			return nil, fmt.Errorf("its card names files elsewhere, %q: name those as a source of their own", p)
		}
		if c.Dir != "" && len(c.Splits) > 0 {
			patterns[j] = path.Join(c.Dir, p)
		}
	}
	return pick(s.Files, patterns)
}

// config is the subset that is asked for; "" is the only one, or the one that the card calls the default. A dataset without
// a card of subsets has one without a name.
func (s *snapshot) config(subset string) (config, error) {
	var names []string
	for _, c := range s.Configs {
		if c.Name == subset || subset == "" && (c.Default || len(s.Configs) == 1) {
			return c, nil
		}
		names = append(names, c.Name)
	}
	switch {
	case len(names) == 0 && subset == "":
		return config{}, nil
	case len(names) == 0:
		return config{}, fmt.Errorf("has no subsets; leave subset out")
	case subset == "":
		return config{}, fmt.Errorf("has several subsets: name one of %s with subset", strings.Join(names, ", "))
	}
	return config{}, fmt.Errorf("has no subset %q; it has %s%s", subset, strings.Join(names, ", "), diag.DidYouMean(subset, names))
}

// kinds are the files that rows are read from; each may be compressed.
var kinds = []string{".jsonl", ".parquet", ".json", ".ndjson"}

// kindOf is the ending that says how rows are read, empty where there are none.
func kindOf(file string) string {
	file = strings.ToLower(file)
	for _, packed := range []string{".gz", ".zst"} {
		file = strings.TrimSuffix(file, packed)
	}
	if ext := path.Ext(file); slices.Contains(kinds, ext) {
		return ext
	}
	return ""
}

// beside are files that tell of a dataset and are no rows of it.
var beside = []string{"config.json", "dataset_info.json", "dataset_infos.json", "dataset_dict.json", "state.json"}

var sharded = regexp.MustCompile(`^(?:.*/)?data/([^/]+)-[0-9]{5}-of-[0-9]{5}[^/]*\.[^/]*$`)

// words are the names that mean a split.
var words = []struct {
	split string
	words []string
}{
	{"train", []string{"train", "training"}},
	{"validation", []string{"validation", "valid", "dev", "val"}},
	{"test", []string{"test", "testing", "eval", "evaluation"}},
}

// told tells the splits by the names below dir, in this order: data/SPLIT-00000-of-00001.…, a folder, a file that is named after a
// split; and where no name tells, all files are train. Source: "File names and splits" of the hub's documentation.
func (s *snapshot) told(dir string) ([]portion, error) {
	rows, err := s.rows(dir)
	if err != nil {
		return nil, err
	}
	for _, tell := range []func(string) string{bySharding, byFolder, byFile} {
		var out []portion
		for _, file := range rows {
			name := tell(strings.TrimPrefix(strings.TrimPrefix(file, dir), "/"))
			if name == "" {
				continue
			}
			i := slices.IndexFunc(out, func(p portion) bool { return p.Name == name })
			if i < 0 {
				i, out = len(out), append(out, portion{Name: name})
			}
			out[i].Paths = append(out[i].Paths, file)
		}
		if len(out) > 0 {
			return out, nil
		}
	}
	return []portion{{"train", rows}}, nil
}

// rows are the files below dir that have rows, which are all of one kind.
func (s *snapshot) rows(dir string) (out []string, err error) {
	kind := ""
	for _, e := range s.Files {
		k := kindOf(e.Path)
		if k == "" || slices.Contains(beside, path.Base(e.Path)) || unspelled(e.Path) > 0 || dir != "" && !strings.HasPrefix(e.Path, dir+"/") {
			continue
		}
		if kind != "" && k != kind {
			return nil, fmt.Errorf("has files of several kinds, %s and %s: name those with the rows behind the revision, as hf://datasets/org/name@main/*%s", kind, k, k)
		}
		kind = k
		out = append(out, e.Path)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("has no file of rows that can be read (%s); it has %s", strings.Join(kinds, ", "), some(s.Files))
	}
	return out, nil
}

func bySharding(file string) string {
	if m := sharded.FindStringSubmatch(file); m != nil {
		return m[1]
	}
	return ""
}

func byFolder(file string) string {
	parts := strings.Split(file, "/")
	for _, p := range parts[:len(parts)-1] {
		if s := splitIn(p); s != "" {
			return s
		}
	}
	return ""
}

func byFile(file string) string { return splitIn(path.Base(file)) }

// splitIn is the split that a name has among its words.
func splitIn(name string) string {
	has := strings.FieldsFunc(name, func(r rune) bool { return strings.ContainsRune("-._ 0123456789", r) })
	for _, w := range words {
		for _, word := range w.words {
			if slices.Contains(has, word) {
				return w.split
			}
		}
	}
	return ""
}
