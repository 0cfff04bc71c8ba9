package recipe

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"trainer/internal/diag"
	"trainer/loss"
	"trainer/schedule"
)

const minimal = "base_model: sandbox/bytes-tiny\ndataset: {train: a.jsonl}\nloss: {type: cross_entropy}\n"

// write puts files into a fresh working directory.
func write(t *testing.T, files map[string]string) {
	t.Helper()
	t.Chdir(t.TempDir())
	for name, text := range files {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// in loads a recipe that exists in memory alone, as recipe.yaml.
func in(text string, set ...string) (*Recipe, error) {
	l := &loader{read: func(path string) ([]byte, *diag.Problem) {
		if path != "recipe.yaml" {
			return nil, &diag.Problem{Pos: diag.Pos{File: path}, Msg: "no such file"}
		}
		return []byte(text), nil
	}}
	return l.recipe("recipe.yaml", set)
}

func must(t *testing.T, text string, set ...string) *Recipe {
	t.Helper()
	r, err := in(text, set...)
	if err != nil {
		t.Fatalf("loading\n%s%v\n%v", text, set, err)
	}
	return r
}

func TestValuesReachTheirFields(t *testing.T) {
	data, err := os.ReadFile("testdata/full/supervised.yaml")
	if err != nil {
		t.Fatal(err)
	}
	r := must(t, string(data))
	ptr := func(s string) *string { return &s }
	sha := "0123456789abcdef0123456789abcdef0123456789abcdef0123456789ABCDEF"
	ten := 10
	for name, c := range map[string]struct{ got, want any }{
		"text with escapes": {r.Description, "a: text, with # and \"quotes\"\nand two lines\t\u0085\ud7ff"},
		"duration":          {r.InactiveTimeout, 90 * time.Minute},
		"adapter":           {*r.LoRA, LoRA{Rank: 8, Alpha: 16, Dropout: 0.1, Seed: r.LoRA.Seed}},
		"adapter seed":      {*r.LoRA.Seed, int64(-3)},
		"quoted yes":        {*r.Chat.System, "yes"},
		"template args": {r.Chat.Args, map[string]any{"enable_thinking": false, "n": int64(3), "f": 1.5, "text": "3",
			"list": []any{"a", nil, map[string]any{"b": true}}, "odd key": nil}},
		"sources": {r.Dataset.Train, []Source{
			{Path: "plain.jsonl", Split: "train", Format: "auto", Weight: 1, Dir: ".", Key: "dataset.train.0"},
			{Path: "hf://datasets/org/name@main", Subset: ptr("all"), Split: "test", Format: "prompt_completion", Weight: 0.5, Limit: &ten,
				Fields: map[string]Field{"prompt": {Columns: []string{"question"}}, "completion": {Columns: []string{"x", "y"}},
					"target": {Columns: []string{"a", "b.0.c"}, Regex: `#### (\S+)`}}, Dir: ".", Key: "dataset.train.1"},
			{Path: "https://example.com/a b.jsonl", Split: "train", SHA256: &sha, Format: "auto", Weight: 1, Dir: ".", Key: "dataset.train.2"},
		}},
		"one source":      {r.Dataset.Validation, []Source{{Path: "hf://datasets/org/held", Subset: ptr("s"), Split: "v", Format: "tokens", Weight: 1, Dir: ".", Key: "dataset.validation.0"}}},
		"params":          {r.Loss.Params, loss.Loss(&loss.CrossEntropy{})},
		"optimizer rates": {[]float64{r.Optimizer.LearningRate, r.Optimizer.WeightDecay, r.Optimizer.GradClipNorm}, []float64{2.5e-3, 0.1, 0}},
		"muon's adam":     {*r.Optimizer.Adam, Adam{LearningRate: 1e-5, Beta1: 0.8, Beta2: 0.99, Eps: 1e-9, WeightDecay: 0.01, GradClipNorm: 0.5}},
		"adam's own keys": {[]float64{r.Optimizer.Beta1, r.Optimizer.Beta2, r.Optimizer.Eps}, []float64{0, 0, 0}},
		"shape":           {r.LRSchedule.Shape, schedule.Schedule(&schedule.Piecewise{Points: [][2]float64{{5, 1}, {20, 0.5}, {30, 0}}})},
		"epochs":          {r.Train.Epochs, (*float64)(nil)},
		"off":             {r.Checkpoint.EveryDuration, (*time.Duration)(nil)},
		"expectations": {r.Test.Expect, []Expectation{
			{Metric: "train/loss", At: "last", Op: "<", Value: 5, Key: "train/loss"},
			{Metric: "reward/mean", At: "gain", Op: ">=", Value: 2, Key: "reward/mean@gain"},
			{Metric: "eval/loss", At: "first", Op: "!=", Value: -1e-3, Key: "eval/loss@first"}}},
		"loop":               {r.Loop(), loss.Supervised},
		"rollout of another": {r.Rollout, (*Rollout)(nil)},
	} {
		if !reflect.DeepEqual(c.got, c.want) {
			t.Errorf("%s: got %#v, want %#v", name, c.got, c.want)
		}
	}
}

// TestDefaultsOfEachLoop holds the defaults to the tables of the reference, written here a second time.
func TestDefaultsOfEachLoop(t *testing.T) {
	rollout := "rollout: {sampling_params: {max_tokens: 9}}\n"
	loops := map[string]string{
		"supervised":    minimal,
		"preference":    strings.Replace(minimal, "cross_entropy", "dpo", 1),
		"reinforcement": strings.Replace(minimal, "cross_entropy", "ppo", 1) + rollout + "reward: [{type: exact}]\n",
		"distillation":  strings.Replace(minimal, "cross_entropy", "reverse_kl", 1) + rollout + "teacher: {base_model: b}\n",
	}
	want := map[string]map[string]string{
		"optimizer.learning_rate":               {"supervised": "0.0001", "preference": "1.0e-5", "reinforcement": "1.0e-5", "distillation": "1.0e-5"},
		"lr_schedule.type":                      {"supervised": "linear", "preference": "linear", "reinforcement": "constant", "distillation": "constant"},
		"lr_schedule.warmup_ratio":              {"supervised": "0.03", "preference": "0.03", "reinforcement": "0.03", "distillation": "0.03"},
		"train.batch_size":                      {"supervised": "128", "preference": "32"},
		"train.lookahead":                       {"supervised": "1", "preference": "1"},
		"rollout.batch_size":                    {"reinforcement": "32", "distillation": "32"},
		"rollout.group_size":                    {"reinforcement": "8", "distillation": "8"},
		"compute_config.num_generator_replicas": {"supervised": "0", "preference": "0", "reinforcement": "1", "distillation": "1"},
		"loss.reduction":                        {"supervised": "sum", "reinforcement": "sum", "distillation": "token_mean"},
		"dataset.on_identical_pair":             {"preference": "drop"},
		"reference.source":                      {"preference": "start"},
		"advantage.baseline":                    {"reinforcement": "group_mean"},
		"eval.sampling_params.temperature":      {"reinforcement": "0.0", "distillation": "0.0"},
		"eval.sampling_params.max_tokens":       {"reinforcement": "9", "distillation": "9"},
		"seed":                                  {"supervised": "42", "preference": "42", "reinforcement": "42", "distillation": "42"},
	}
	for loop, text := range loops {
		got := values(must(t, text))
		for key, byLoop := range want {
			if got[key] != byLoop[loop] {
				t.Errorf("%s: %s is %q, want %q", loop, key, got[key], byLoop[loop])
			}
		}
	}
}

func TestFullWeightsNeedARate(t *testing.T) {
	if _, err := in(minimal + "lora_config: null\n"); err == nil || !strings.Contains(err.Error(), "optimizer.learning_rate: missing") {
		t.Errorf("got %v", err)
	}
	if r := must(t, minimal+"lora_config: null\noptimizer: {learning_rate: 1e-6}\n"); r.LoRA != nil {
		t.Errorf("got an adapter %v", r.LoRA)
	}
}

func TestNamesOfRuns(t *testing.T) {
	for name, ok := range map[string]bool{
		"sft-1_b.2": true, "é漢字": true, "007": true, strings.Repeat("a", 100): true, ".hidden": true, "console": true,
		"": false, "a/b": false, `..\x`: false, "..": false, ".": false, "CON": false, "nul.txt": false, "Lpt1": false, "a ": false,
		"x.": false, strings.Repeat("a", 101): false, "a\x00": false, "a:b": false, strings.Repeat("漢", 100): false,
	} {
		if got := nameFault(name) == ""; got != ok {
			t.Errorf("a name %q passes: %v, want %v", name, got, ok)
		}
	}
	for file, want := range map[string]string{"sft.yaml": "sft", "dir/my run (1).yml": "my-run--1-", "CON.yaml": "run", ".yaml": "run"} {
		if got := (&Recipe{trace: trace{path: file}}).RunName(); got != want {
			t.Errorf("%s: got %q, want %q", file, got, want)
		}
	}
	if got := must(t, "name: x-1\n"+minimal).RunName(); got != "x-1" {
		t.Errorf("got %q", got)
	}
}

func TestPlacesOfKeys(t *testing.T) {
	write(t, map[string]string{
		"base/base.yaml": "base_model: sandbox/bytes-tiny\nchat:\n  template: t.jinja\ndataset:\n  train: data/rows.jsonl\n",
		"recipe.yaml":    "extends: [base/base.yaml]\nloss:\n  type: cross_entropy\n",
	})
	r, err := Load("recipe.yaml", "train.batch_size=4")
	if err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]struct {
		at    string
		given bool
		dir   string
	}{
		"loss.type":                {"recipe.yaml:3:9", true, "."},
		"loss.reduction":           {"recipe.yaml:3:3", false, "."},
		"dataset.train.0.path":     {"base/base.yaml:5:10", true, "base"},
		"dataset.train.0.format":   {"base/base.yaml:5:10", false, "base"},
		"dataset.train":            {"base/base.yaml:5:10", true, "base"},
		"train.batch_size":         {"--set train.batch_size", true, "."},
		"chat.template":            {"base/base.yaml:3:13", true, "base"},
		"optimizer.learning_rate":  {"recipe.yaml:1:1", false, "."},
		"no.such.key":              {"recipe.yaml:1:1", false, "."},
		"":                         {"recipe.yaml:1:1", true, "."},
		"dataset.validation_split": {"base/base.yaml:5:3", false, "base"},
	} {
		if got := r.At(key).String(); got != want.at {
			t.Errorf("At(%q) is %s, want %s", key, got, want.at)
		}
		if got := r.Given(key); got != want.given {
			t.Errorf("Given(%q) is %v", key, got)
		}
		if got := r.Dir(key); got != want.dir {
			t.Errorf("Dir(%q) is %q, want %q", key, got, want.dir)
		}
	}
	if r.Dataset.Train[0].Dir != "base" || r.Path() != "recipe.yaml" {
		t.Errorf("got folder %q, path %q", r.Dataset.Train[0].Dir, r.Path())
	}
	files := r.Files()
	if len(files) != 2 || files[0].Path != "recipe.yaml" || files[1].Path != filepath.Join("base", "base.yaml") || !strings.HasPrefix(string(files[1].Data), "base_model") {
		t.Errorf("got files %v", files)
	}
}

// TestShownRecipesLoad: the package comment's example, and what the project ships.
func TestShownRecipesLoad(t *testing.T) {
	doc, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	var example strings.Builder
	for _, line := range strings.Split(string(doc), "\n") {
		if text, ok := strings.CutPrefix(line, "//\t"); ok {
			example.WriteString(text + "\n")
		}
	}
	if r := must(t, example.String()); r.LRSchedule.Type != "cosine" || len(r.Test.Expect) != 1 {
		t.Errorf("got %+v", r)
	}
	for _, pattern := range []string{"../recipes/*.yaml", "../recipes/*/*.yaml"} {
		shipped, err := filepath.Glob(pattern)
		if err != nil || len(shipped) == 0 {
			t.Fatal(pattern, err)
		}
		for _, file := range shipped {
			if _, err := Load(file); err != nil {
				t.Errorf("%s: %v", file, err)
			}
		}
	}
}

func TestStopsAreTexts(t *testing.T) {
	text := strings.Replace(minimal, "cross_entropy", "ppo", 1) + "rollout: {sampling_params: {max_tokens: 9, stop: [128009]}}\nreward: [{type: exact}]\n"
	want := `rollout.sampling_params.stop.0: 128009 looks like a token id, and stops are texts; write the token's text, or "128009" in quotes`
	if _, err := in(text); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
}
