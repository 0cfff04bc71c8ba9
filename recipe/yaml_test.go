package recipe

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

func TestWhatIsANumber(t *testing.T) {
	for text, want := range map[string]float64{
		"1e-5": 1e-5, "1E-5": 1e-5, "1.0e-5": 1e-5, ".00001": 1e-5, "1.e-5": 1e-5, "+1e-05": 1e-5, "0.5": 0.5, "3": 3, "1e+2": 100,
	} {
		if r := must(t, minimal+"optimizer: {learning_rate: "+text+"}\n"); r.Optimizer.LearningRate != want {
			t.Errorf("%s is %v, want %v", text, r.Optimizer.LearningRate, want)
		}
	}
	for text, want := range map[string]string{
		`"1e-5"`: "because of its quotes", `'3'`: "because of its quotes", "010": "leading zero", "00.5": "leading zero", "1_000": "not a number",
		"0x10": "not a number", "1:30": "not a number", "2024-01-01": "not a number", ".inf": "not finite", "-.INF": "not finite", ".nan": "not finite",
		"1e999": "too large", "1e-999": "too small", "true": "not a number", "no": "not a number", "1,5": "not a number", "'x'": "not a number",
		"[1]": "not a list", "{a: 1}": "not a mapping", "": "null", "-1": "above 0", "0": "above 0", "Infinity": "not a number", "5%": "not a number",
		"!!str 5": "because of its quotes", "|\n    5": "not a number", "1e": "not a number",
	} {
		_, err := in(minimal + "optimizer:\n  learning_rate: " + text + "\n")
		if err == nil || !strings.Contains(err.Error(), "recipe.yaml:5:") && text != "" || !strings.Contains(err.Error(), want) {
			t.Errorf("learning_rate: %s: got %v, want a problem on line 5 with %q", text, err, want)
		}
	}
}

func TestWhatIsTrue(t *testing.T) {
	for text, ok := range map[string]bool{
		"true": true, "false": true, "True": false, "TRUE": false, "yes": false, "no": false, "on": false, "off": false, "y": false, "1": false,
		"0": false, `"true"`: false, "": false, "~": false,
	} {
		if _, err := in(minimal + "eval: {at_end: " + text + "}\n"); (err == nil) != ok {
			t.Errorf("at_end: %s: got %v", text, err)
		}
	}
}

func TestPlainWordsAreTextWhereTextIsDue(t *testing.T) {
	for _, text := range []string{"no", "on", "yes", "012", "1:30", "2024-01-01", "1.0", "1e5", "true", ".inf", "0x10", "1_000", "=", "NaN"} {
		if r := must(t, minimal+"description: "+text+"\n"); r.Description != text {
			t.Errorf("%s is %q", text, r.Description)
		}
	}
	for text, want := range map[string]string{`"null"`: "null", `''`: "", "!!str ~": "~", "|\n  a\n  b\n": "a\nb\n", ">-\n  a\n  b\n": "a b"} {
		if r := must(t, minimal+"description: "+text+"\n"); r.Description != want {
			t.Errorf("%s is %q, want %q", text, r.Description, want)
		}
	}
}

func TestDurations(t *testing.T) {
	for text, want := range map[string]time.Duration{"90s": 90 * time.Second, "15m": 15 * time.Minute, "4h": 4 * time.Hour, "1h30m": 90 * time.Minute, `"1h0m5s"`: 3605 * time.Second} {
		if r := must(t, minimal+"limits: {max_duration: "+text+"}\n"); *r.Limits.MaxDuration != want {
			t.Errorf("%s is %v", text, *r.Limits.MaxDuration)
		}
		if got := must(t, minimal+"limits: {max_duration: "+periodText(want)+"}\n"); *got.Limits.MaxDuration != want {
			t.Errorf("%v is written as %s", want, periodText(want))
		}
	}
	for _, text := range []string{"15", "1.5h", "1d", "-5m", "m", "30m1h", "1h 30m", "5ms", "99999999999999999h", "0s"} {
		if _, err := in(minimal + "limits: {max_duration: " + text + "}\n"); err == nil {
			t.Errorf("%s passes", text)
		}
	}
}

func TestMergeKeys(t *testing.T) {
	base := "base_model: m\nloss: {type: cross_entropy}\ndataset:\n  train:\n    - &a {path: a, limit: 1, weight: 2}\n    - &b {path: b, limit: 3}\n"
	for name, c := range map[string]struct {
		row    string
		limit  int
		weight float64
	}{
		"an explicit key wins before <<":       {"{limit: 9, path: c, <<: *a}", 9, 2},
		"an explicit key wins after <<":        {"{<<: *a, path: c, limit: 9}", 9, 2},
		"the first of a list wins":             {"{<<: [*b, *a], path: c}", 3, 2},
		"a mapping may stand there itself":     {"{<<: {limit: 4}, path: c}", 4, 1},
		"what is merged in may merge in turn":  {"{<<: {<<: *a, limit: 5}, path: c}", 5, 2},
		"a quoted << is a key, and an unknown": {`{"<<": *a, path: c}`, -1, 0},
		"a scalar can't be merged":             {"{<<: 3, path: c}", -1, 0},
	} {
		r, err := in(base + "    - " + c.row + "\n")
		switch {
		case (err != nil) != (c.limit < 0):
			t.Errorf("%s: got %v", name, err)
		case err == nil && (*r.Dataset.Train[2].Limit != c.limit || r.Dataset.Train[2].Weight != c.weight):
			t.Errorf("%s: got limit %d, weight %v", name, *r.Dataset.Train[2].Limit, r.Dataset.Train[2].Weight)
		}
	}
}

func TestBytesOfFiles(t *testing.T) {
	crlf := strings.ReplaceAll(minimal, "\n", "\r\n")
	for name, c := range map[string]struct{ data, want string }{
		"a byte order mark is skipped":              {"\ufeff" + minimal, ""},
		"CRLF ends lines":                           {crlf, ""},
		"CRLF counts as one line":                   {crlf + "sed: 1\r\n", "recipe.yaml:4:1: sed: unknown key"},
		"a byte order mark takes no column":         {"\ufeffsed: 1\n" + minimal, "recipe.yaml:1:1: sed: unknown key"},
		"columns count characters":                  {"{\"é漢\": 1, sed: 1, " + strings.Replace(strings.ReplaceAll(strings.TrimSpace(minimal), "\n", ", "), "x", "x", 1) + "}", "recipe.yaml:1:11: sed"},
		"latin-1 is not UTF-8":                      {minimal + "name: caf\xe9\n", "recipe.yaml:4:10: byte 0xE9, byte 10 of the line, is not UTF-8"},
		"the byte counts from its line":             {minimal + "description: é\xff\n", "recipe.yaml:4:15: byte 0xFF, byte 16 of the line"},
		"UTF-16 is named":                           {"\xff\xfeb\x00", "recipe.yaml:1:1: is UTF-16"},
		"zero bytes are no text":                    {minimal + "\x00\x00", "recipe.yaml:4:1: is not text"},
		"control characters are named":              {minimal + "name: a\x1bb\n", "recipe.yaml:4:8: the character U+001B"},
		"a mark in the middle is named":             {minimal + "name: \ufeffx\n", "recipe.yaml:4:7: the character U+FEFF"},
		"an empty file says what is due":            {"", "recipe.yaml: is empty"},
		"a lone document mark is empty":             {"---\n", "a recipe is a mapping of keys to values, not null"},
		"white space alone is empty":                {"\n \n", "recipe.yaml: is empty"},
		"an unclosed quote has a line":              {minimal + "name: \"x\n", "recipe.yaml:4: "},
		"a reserved character needs quotes":         {"name: @x\n" + minimal, "recipe.yaml:1: found character that cannot start any token"},
		"a directive is not needed":                 {"%YAML 1.2\n---\n" + minimal, "leave out the %YAML line"},
		"an alias may not be empty of its text":     {minimal + "name: *\n", "recipe.yaml:4: "},
		"a document mark before the recipe is fine": {"---\n" + minimal, ""},
		"a document end is fine":                    {minimal + "...\n", ""},
	} {
		_, err := in(c.data)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
}

func TestWhatIsNoRecipe(t *testing.T) {
	dir := t.TempDir()
	big := filepath.Join(dir, "big.yaml")
	f, err := os.Create(big)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Truncate(100 << 20); err != nil {
		t.Fatal(err)
	}
	cases := map[string]string{
		dir:                             "is a folder",
		filepath.Join(dir, "none.yaml"): "no such file",
		filepath.Join(big, "x"):         "reading the recipe",
		big:                             "has 104857600 bytes",
	}
	if runtime.GOOS != "windows" {
		cases["/dev/null"] = "is not a regular file"
		fifo := filepath.Join(dir, "fifo")
		if exec.Command("mkfifo", fifo).Run() == nil {
			cases[fifo] = "is not a regular file"
		}
	}
	for path, want := range cases {
		if _, err := Load(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", path, err, want)
		}
	}
	allocated := testing.AllocsPerRun(1, func() { Load(big) })
	if allocated > 1000 {
		t.Errorf("refusing a large file allocates %v times", allocated)
	}
	exact := filepath.Join(dir, "exact.yaml")
	if err := os.WriteFile(exact, append([]byte(minimal), bytes.Repeat([]byte("#\n"), (maxFile-len(minimal))/2)...), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(exact); err != nil {
		t.Errorf("a file of the largest size: %v", err)
	}
}

// TestAliasesAreBounded: what a megabyte can ask for is refused before it is made.
func TestAliasesAreBounded(t *testing.T) {
	var wide strings.Builder
	wide.WriteString(minimal + "chat: {args: {a: &a [")
	wide.WriteString(strings.Repeat("x,", 9000) + "]")
	for range 100_000 {
		wide.WriteString(",b: *a")
	}
	wide.WriteString("}}\n")
	for name, text := range map[string]string{
		"many aliases of a long list":   wide.String(),
		"a merge key of itself":         minimal + "chat: &c {args: {<<: *c}}\n",
		"a mapping that merges a chain": minimal + "chat: {args: {a: &a {<<: {x: &b {<<: *a}}}}}\n",
	} {
		if _, err := in(text); err == nil {
			t.Errorf("%s passes", name)
		}
	}
	if _, err := in(minimal + "chat: {args: {a: &a [1, 2], b: *a, c: [*a, *a]}}\n"); err != nil {
		t.Errorf("plain aliases: %v", err)
	}
}

func TestLongValuesAreNotRepeated(t *testing.T) {
	long := strings.Repeat("9", 10_000)
	for _, line := range []string{"seed: " + long, "name: " + long, "keep_resources: " + long, "seed: 0" + long, "\"" + long + "\": 1", "test: {expect: {" + long + ": x}}",
		"logging: {wandb: {mode: " + long + "}}", "extends: [" + long + "]", "loss: " + long, "inactive_timeout: " + long, "eval: {at_end: " + long + "}"} {
		_, err := in(strings.Replace(minimal, "loss: {type: cross_entropy}\n", "", 1) + line + "\n")
		if err == nil || len(err.Error()) > 2000 {
			t.Errorf("%.20s…: got %d bytes", line, len(err.Error()))
		}
	}
}
