package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"trainer/internal/diag"
	"trainer/recipe"
	"trainer/runner"
)

func (a *app) sample() *cli.Command {
	return &cli.Command{
		Name: "sample", Usage: "complete prompts under the weights of a model, a run or a checkpoint", ArgsUsage: "[recipe.yaml] [FILE|-]",
		Description: "FILE (- is stdin) has a prompt a row, as a dataset does: prompt is text or messages, messages are a conversation that ends\n" +
			"where the model goes on, text is raw text without a template. --lines takes a prompt a line, --prompt one from the command\n" +
			"line. Completions are JSON lines, in the order of the prompts: row counts from 0, prompt is what the model saw.\n" +
			"Tokenizer, template and adapter are those of the run or the recipe; --set changes the recipe that the prompts are sampled\n" +
			"by. Provisions, samples, and releases everything.\n\n" +
			"Examples:\n  trainer sample --model sandbox/pretrained-tiny --prompt 'Sum: 1 2'\n" +
			"  trainer sample --run runs/letters-grpo-20260101-120000 prompts.jsonl --temperature 0 > completions.jsonl\n" +
			"  trainer sample recipe.yaml --checkpoint 8eda0b57-2ff6-402a-a893-7e39248ecc07 --lines questions.txt --n 4 --seed 1",
		Flags: slices.Concat([]cli.Flag{
			&cli.StringFlag{Name: "model", Usage: "the base model `NAME`, where no recipe and no run says it"},
			&cli.StringFlag{Name: "prompt", Usage: "complete `TEXT`, in place of a file"},
			&cli.BoolFlag{Name: "lines", Usage: "FILE is plain text, a prompt a line"},
			&cli.BoolFlag{Name: "raw", Usage: "use no template: prompts are text that goes on"},
			&cli.IntFlag{Name: "n", Value: 1, Usage: "completions a prompt"},
			&cli.IntFlag{Name: "max-tokens", Value: 256, Usage: "sampled a completion, at most"},
			&cli.Float64Flag{Name: "temperature", Value: 1, Usage: "divides the logits; 0 is greedy"},
			&cli.Float64Flag{Name: "top-p", Value: 1, Usage: "keep the most likely tokens up to this probability"},
			&cli.IntFlag{Name: "top-k", Value: -1, Usage: "keep so many of the most likely tokens; -1 is off"},
			&cli.StringSliceFlag{Name: "stop", Usage: "end a completion at `TEXT`; can be repeated"},
			&cli.Int64Flag{Name: "seed", Usage: "send a seed for each completion, derived from `N`: repeatable, slower"},
			&cli.BoolFlag{Name: "logprobs", Usage: "add the log-probability of each token"},
			setFlag}, weightsFlags, costFlags),
		Action: func(c *cli.Context) (err error) {
			hard, stop, done := signals(c.Context)
			defer done()
			tmp, err := os.MkdirTemp("", "trainer-sample-")
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, os.RemoveAll(tmp)) }()
			j, err := a.sampleJob(c, tmp)
			if err != nil {
				return asAsked(err, tmp)
			}
			j.how.out = a.outside(c)
			defer j.how.out.Close()
			v, err := a.look(hard, stop, j)
			if err != nil {
				return asAsked(err, tmp)
			}
			return a.printSamples(v.Samples, c.Bool("logprobs"))
		},
	}
}

// sampleJob makes an evaluation of the prompts: a recipe in tmp whose every row is held out.
func (a *app) sampleJob(c *cli.Context, tmp string) (*job, error) {
	of, file, err := sampleArgs(c)
	if err != nil {
		return nil, err
	}
	start, err := weightsOf(c)
	if err != nil {
		return nil, err
	}
	values, given, err := modelOf(c, of)
	if err != nil {
		return nil, err
	}
	if start == nil && given != nil {
		if start, err = runner.StartOf(given); err != nil {
			return nil, err
		}
	}
	path, column, err := a.prompts(c, file, tmp)
	if err != nil {
		return nil, err
	}
	text, err := sampleRecipe(c, values, path, column)
	if err != nil {
		return nil, err
	}
	made := filepath.Join(tmp, madeName)
	if err := os.WriteFile(made, text, 0o600); err != nil {
		return nil, err
	}
	sets := c.StringSlice("set")
	if c.IsSet("attach") {
		sets = append(slices.Clone(sets), "model_resources_id="+c.String("attach"))
	}
	r, err := recipe.Load(made, sets...)
	if err != nil {
		return nil, err
	}
	j, err := a.jobOf(c, r, start)
	if err == nil {
		j.ready = func(in *runner.Inputs) { in.Held, in.Unjudged = in.Train, true }
	}
	return j, err
}

// asAsked puts faults of what stands in tmp where a person has said it: at a flag, or in the row of stdin.
func asAsked(err error, tmp string) error {
	var l diag.List
	if !errors.As(err, &l) || err.Error() != l.Error() {
		return err
	}
	l = slices.Clone(l)
	for i, p := range l {
		name, in := strings.CutPrefix(p.Pos.File, tmp+string(filepath.Separator))
		switch flag, ok := strings.CutPrefix(p.Key, "eval.sampling_params."); {
		case !in:
		case name != madeName:
			l[i].Pos.File = name
		case ok:
			l[i].Pos = diag.Pos{File: "--" + strings.ReplaceAll(flag, "_", "-")}
		case p.Key == "base_model":
			l[i].Pos = diag.Pos{}
		case p.Key == "eval.group_size":
			l[i].Pos = diag.Pos{File: "--n"}
		default:
			l[i].Pos = diag.Pos{File: "--set " + p.Key}
		}
	}
	return l
}

// madeName is the file of the recipe that prompts are sampled by.
const madeName = "sample.yaml"

// sampleArgs tells the recipe from the file of prompts.
func sampleArgs(c *cli.Context) (of, file string, err error) {
	args := c.Args().Slice()
	if len(args) > 0 && slices.Contains([]string{".yaml", ".yml"}, filepath.Ext(args[0])) {
		of, args = args[0], args[1:]
	}
	if len(args) > 0 {
		file = args[0]
	}
	whose := 0
	for _, given := range []bool{of != "", c.IsSet("model"), c.IsSet("run")} {
		if given {
			whose++
		}
	}
	switch {
	case whose == 0:
		err = &usage{"trainer sample: say which model: --model NAME, --run DIR or a recipe"}
	case c.IsSet("model") && whose > 1:
		err = &usage{"trainer sample: --model: the recipe or the run says it; leave it out"}
	case len(args) > 1:
		err = &usage{fmt.Sprintf("trainer sample: %s is not a recipe; give one file of prompts", args[0])}
	case file == "" && !c.IsSet("prompt"):
		err = &usage{"trainer sample: give a file of prompts (- is stdin), or --prompt TEXT"}
	case file != "" && c.IsSet("prompt"):
		err = &usage{fmt.Sprintf("trainer sample: --prompt stands beside %s; give one of them", file)}
	case c.IsSet("prompt") && c.Bool("lines"):
		err = &usage{"trainer sample: --lines is of a file, and --prompt is none"}
	}
	return of, file, err
}

// ofModel are the keys of a recipe, with all below them, that say what is sampled from and how a prompt is read.
var ofModel = []string{"base_model", "base_weights_ref", "compute_config", "lora_config", "tokenizer", "chat"}

// modelOf are the values that the new recipe takes over, and the recipe that they are of; nil for a model's name alone.
func modelOf(c *cli.Context, path string) (map[string]string, *recipe.Recipe, error) {
	if c.IsSet("model") {
		name, err := json.Marshal(c.String("model"))
		return map[string]string{"base_model": string(name)}, nil, err
	}
	if path == "" {
		path = filepath.Join(c.String("run"), runner.ResolvedName)
	}
	r, err := recipe.Load(path)
	if err != nil {
		return nil, nil, err
	}
	values := map[string]string{}
	for key, v := range r.Values() {
		if section, _, _ := strings.Cut(key, "."); slices.Contains(ofModel, section) {
			values[key] = v
		}
	}
	delete(values, "chat.train_on") // nothing trains
	if r.Compute.NumGeneratorReplicas == 0 {
		delete(values, "compute_config.num_generator_replicas")
	}
	return values, r, nil
}

// prompts is the file of the prompts, and the column that they are in. What is no file of rows becomes one in tmp.
func (a *app) prompts(c *cli.Context, file, tmp string) (path, column string, err error) {
	made := filepath.Join(tmp, "prompts.jsonl")
	switch {
	case c.IsSet("prompt"):
		return made, "prompt", writePrompts(made, slices.Values([]string{c.String("prompt")}))
	case strings.Contains(file, "://"):
		return file, "prompt", nil
	}
	in, at := a.in, "stdin"
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return "", "", diag.List{{Pos: diag.Pos{File: file}, Msg: reason(err)}}
		}
		defer f.Close()
		in, at = f, file
	}
	if c.Bool("lines") {
		text, err := io.ReadAll(in)
		if err != nil {
			return "", "", fmt.Errorf("read %s: %w", at, err)
		}
		return made, "prompt", writePrompts(made, func(yield func(string) bool) {
			for line := range strings.Lines(string(text)) {
				if line = strings.TrimRight(line, "\r\n"); line != "" && !yield(line) {
					return
				}
			}
		})
	}
	if path = file; file == "-" {
		path = filepath.Join(tmp, "stdin")
		if err := spool(path, in); err != nil {
			return "", "", fmt.Errorf("read stdin: %w", err)
		}
	}
	if path, err = filepath.Abs(path); err != nil {
		return "", "", err
	}
	column, err = columnOf(path)
	return path, column, err
}

// writePrompts makes a file of rows with a prompt each.
func writePrompts(path string, prompts func(func(string) bool)) error {
	var b []byte
	for p := range prompts {
		b = appendText(append(b, `{"prompt":`...), p)
		b = append(b, "}\n"...)
	}
	return os.WriteFile(path, b, 0o600)
}

func spool(path string, from io.Reader) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, from)
	return errors.Join(err, f.Close())
}

// columnOf is the column of the first row that a prompt can stand in. What is no JSON line is left to the dataset to judge.
func columnOf(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	var row map[string]json.RawMessage
	if json.NewDecoder(bufio.NewReader(f)).Decode(&row) != nil {
		return "prompt", nil
	}
	for _, name := range []string{"prompt", "messages", "text"} {
		if _, ok := row[name]; ok {
			return name, nil
		}
	}
	return "prompt", nil
}

// sampleRecipe is the recipe that the prompts are sampled by, as JSON, which is YAML. Its reward counts nothing.
func sampleRecipe(c *cli.Context, values map[string]string, path, column string) ([]byte, error) {
	params := map[string]any{"max_tokens": c.Int("max-tokens"), "temperature": c.Float64("temperature"), "top_p": c.Float64("top-p"),
		"top_k": c.Int("top-k"), "stop": append([]string{}, c.StringSlice("stop")...)}
	source := map[string]any{"path": path, "format": "prompts"}
	if column != "prompt" {
		source["fields"] = map[string]string{"prompt": column}
	}
	rest := map[string]any{
		"dataset": map[string]any{"train": []any{source}},
		"loss":    map[string]any{"type": "grpo"},
		"rollout": map[string]any{"sampling_params": map[string]any{"max_tokens": 1}, "seeded": c.IsSet("seed")},
		"reward":  []any{map[string]any{"type": "length", "params": map[string]any{"max": 0}, "weight": 0}},
		"eval":    map[string]any{"group_size": c.Int("n"), "sampling_params": params},
	}
	if c.IsSet("seed") {
		rest["seed"] = c.Int64("seed")
	}
	if c.Bool("raw") || column == "text" {
		for key := range values {
			if strings.HasPrefix(key, "chat.") {
				delete(values, key)
			}
		}
		values["chat.template"] = "none"
	}
	return flow(values, rest)
}

// flow writes values, which are YAML by their dotted keys, and rest into one mapping.
func flow(values map[string]string, rest map[string]any) ([]byte, error) {
	sections := map[string][]string{}
	for key, v := range values {
		section, name, below := strings.Cut(key, ".")
		if below {
			v = name + ": " + v
		}
		sections[section] = append(sections[section], v)
	}
	var b strings.Builder
	for _, section := range ofModel {
		switch of := sections[section]; {
		case len(of) == 0:
		case values[section] != "":
			fmt.Fprintf(&b, "%s: %s\n", section, of[0])
		default:
			slices.Sort(of)
			fmt.Fprintf(&b, "%s:\n  %s\n", section, strings.Join(of, "\n  "))
		}
	}
	for _, section := range []string{"seed", "dataset", "loss", "rollout", "reward", "eval"} {
		if v, ok := rest[section]; ok {
			text, err := json.Marshal(v)
			if err != nil {
				return nil, err
			}
			fmt.Fprintf(&b, "%s: %s\n", section, text)
		}
	}
	return []byte(b.String()), nil
}

// completed is a line of output.
type completed struct {
	Row      int       `json:"row"`
	Prompt   string    `json:"prompt"`
	Text     string    `json:"text"`
	Tokens   []int32   `json:"tokens"`
	Stop     string    `json:"stop"` // stop or length
	Logprobs []float64 `json:"logprobs,omitempty"`
}

// printSamples prints what was sampled into the file at path. The error counts prompts that the service did not sample.
func (a *app) printSamples(path string, logprobs bool) error {
	missing := 0
	out := bufio.NewWriter(a.out)
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	err := runner.ReadSamples(path, func(s runner.Sampled) error {
		if s.Member < 0 {
			missing++
			return nil
		}
		line := completed{Row: s.Row, Prompt: s.Prompt, Text: s.Text, Tokens: s.Tokens, Stop: s.Stop}
		if logprobs {
			line.Logprobs = s.Logprobs
		}
		return enc.Encode(line)
	})
	if err == nil && missing > 0 {
		err = fmt.Errorf("prompts that the service did not sample, as often as it was asked: %d", missing)
	}
	return errors.Join(err, out.Flush())
}
