package recipe

import (
	"fmt"
	"strings"
	"testing"
)

func TestParents(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		want  map[string]string // values by key
	}{
		"a child's value wins, mappings merge": {
			map[string]string{"a.yaml": "seed: 1\noptimizer: {learning_rate: 0.5, beta1: 0.5}\n", "recipe.yaml": "extends: [a.yaml]\noptimizer: {beta1: 0.7}\n" + minimal},
			map[string]string{"seed": "1", "optimizer.learning_rate": "0.5", "optimizer.beta1": "0.7"},
		},
		"the later parent wins": {
			map[string]string{"a.yaml": "seed: 1\n", "b.yaml": "seed: 2\n", "recipe.yaml": "extends: [a.yaml, b.yaml]\n" + minimal},
			map[string]string{"seed": "2"},
		},
		"lists replace": {
			map[string]string{"a.yaml": "dataset: {train: [x, y], validation: [z]}\n", "recipe.yaml": "extends: [a.yaml]\n" + minimal},
			map[string]string{"dataset.train.1.path": "", "dataset.validation.0.format": "auto"},
		},
		"one source replaces another whole": {
			map[string]string{"a.yaml": "dataset: {train: {path: x, limit: 3}}\n", "recipe.yaml": "extends: [a.yaml]\nbase_model: m\nloss: {type: cross_entropy}\ndataset: {train: {path: y}}\n"},
			map[string]string{"dataset.train.0.limit": "null"},
		},
		"null turns a section off": {
			map[string]string{"a.yaml": "eval: {early_stop: {patience: 9}}\n", "recipe.yaml": "extends: [a.yaml]\neval: {early_stop: null}\n" + minimal},
			map[string]string{"eval.early_stop": "null"},
		},
		"a section turns on over null": {
			map[string]string{"a.yaml": "lora_config: null\n", "recipe.yaml": "extends: [a.yaml]\nlora_config: {rank: 4}\n" + minimal},
			map[string]string{"lora_config.rank": "4", "lora_config.alpha": "64"},
		},
		"a new optimizer leaves the old one's keys": {
			map[string]string{"a.yaml": "optimizer: {type: muon, momentum: 0.5, weight_decay: 0.25}\n", "recipe.yaml": "extends: [a.yaml]\noptimizer: {type: adam}\n" + minimal},
			map[string]string{"optimizer.momentum": "", "optimizer.weight_decay": "0.25", "optimizer.beta1": "0.9"},
		},
		"a type over the default leaves the default's keys": {
			map[string]string{"a.yaml": "optimizer: {beta1: 0.5}\n", "recipe.yaml": "extends: [a.yaml]\noptimizer: {type: muon}\n" + minimal},
			map[string]string{"optimizer.beta1": "", "optimizer.momentum": "0.95"},
		},
		"the same type keeps the parent's keys": {
			map[string]string{"a.yaml": "lr_schedule: {type: polynomial, power: 3}\n", "recipe.yaml": "extends: [a.yaml]\nlr_schedule: {type: polynomial, warmup_steps: 2}\n" + minimal},
			map[string]string{"lr_schedule.power": "3.0", "lr_schedule.warmup_steps": "2"},
		},
		"a new schedule leaves the old shape's keys": {
			map[string]string{"a.yaml": "lr_schedule: {type: polynomial, power: 3, min_lr_ratio: 0.5}\n", "recipe.yaml": "extends: [a.yaml]\nlr_schedule: {type: cosine}\n" + minimal},
			map[string]string{"lr_schedule.power": "", "lr_schedule.min_lr_ratio": "0.5"},
		},
		"a new loss leaves the old loop's keys and params": {
			map[string]string{"a.yaml": "loss: {type: grpo, params: {beta: 1}}\nrollout: {group_size: 2}\nreward: [{type: exact}]\neval: {group_size: 3, every: 7}\n", "recipe.yaml": "extends: [a.yaml]\n" + minimal},
			map[string]string{"eval.every": "7", "loss.params": "{}", "loss.reduction": "sum"},
		},
		"a grandparent's relative path starts in its own folder": {
			map[string]string{"x/y/a.yaml": "base_model: m\ndataset: {train: rows}\n", "x/b.yaml": "extends: [y/a.yaml]\n", "recipe.yaml": "extends: [x/b.yaml]\nloss: {type: cross_entropy}\n"},
			map[string]string{"dataset.train.0.path": "DIR/x/y/rows"},
		},
		"two parents may have one parent": {
			map[string]string{"a.yaml": "seed: 5\n", "b.yaml": "extends: [a.yaml]\n", "c.yaml": "extends: [a.yaml]\n", "recipe.yaml": "extends: [b.yaml, c.yaml]\n" + minimal},
			map[string]string{"seed": "5"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			write(t, c.files)
			r, err := Load("recipe.yaml")
			if err != nil {
				t.Fatal(err)
			}
			got := values(r)
			for key, want := range c.want {
				want = strings.Replace(want, "DIR", absolute(".", ""), 1)
				if got[key] != want {
					t.Errorf("%s is %q, want %q", key, got[key], want)
				}
			}
		})
	}
}

func TestFamiliesAreBounded(t *testing.T) {
	files := map[string]string{}
	for i := range 30 {
		files[fmt.Sprintf("p%d.yaml", i)] = fmt.Sprintf("extends: [p%d.yaml, p%d.yaml]\n", i+1, i+1)
	}
	files["p30.yaml"] = minimal
	write(t, files)
	if _, err := Load("p0.yaml"); err == nil || !strings.Contains(err.Error(), "generations of parents") {
		t.Errorf("a long chain with two ways at each step: %v", err)
	}
}

func TestSet(t *testing.T) {
	base := "base_model: m\ndataset:\n  train: rows\nloss: {type: cross_entropy}\nlr_schedule: {type: polynomial, power: 2}\noptimizer: {beta1: 0.5}\ntrain: {epochs: 2}\n"
	for name, c := range map[string]struct {
		set       []string
		key, want string
	}{
		"a number is typed by its key":              {[]string{"optimizer.learning_rate=1e-5"}, "optimizer.learning_rate", "1.0e-5"},
		"text is typed by its key":                  {[]string{"name=1e5"}, "name", `"1e5"`},
		"text may look like YAML":                   {[]string{"chat.system=You are: a #1 - bot"}, "chat.system", `"You are: a #1 - bot"`},
		"quoted text loses its quotes":              {[]string{`chat.system="a\nb"`}, "chat.system", `"a\nb"`},
		"null is null":                              {[]string{"eval.every=null"}, "eval.every", "null"},
		"an empty value is null":                    {[]string{"chat.system="}, "chat.system", "null"},
		"the last of one key wins":                  {[]string{"seed=1", "seed=2"}, "seed", "2"},
		"false is a value":                          {[]string{"dataset.shuffle=false"}, "dataset.shuffle", "false"},
		"a value may hold =":                        {[]string{"description=a=b"}, "description", `"a=b"`},
		"a list is written as YAML":                 {[]string{"dataset.train=[x, {path: y, limit: 3}]"}, "dataset.train.1.limit", "3"},
		"a path may hold anything":                  {[]string{"dataset.train=a: b, c.jsonl"}, "dataset.train.0.path", "DIR/a: b, c.jsonl"},
		"an entry of a path alone":                  {[]string{"dataset.train.0.limit=4"}, "dataset.train.0.limit", "4"},
		"a key of a path alone":                     {[]string{"dataset.train.limit=4"}, "dataset.train.0.limit", "4"},
		"an entry as a whole":                       {[]string{"dataset.train=[x, y]", "dataset.train.1=z"}, "dataset.train.1.path", "DIR/z"},
		"a missing section is made":                 {[]string{"eval.early_stop.patience=9", "eval.early_stop.metric=train/loss"}, "eval.early_stop.patience", "9"},
		"a mapping merges":                          {[]string{"optimizer={beta2: 0.5}"}, "optimizer.beta1", "0.5"},
		"a new type leaves the old keys":            {[]string{"lr_schedule.type=cosine"}, "lr_schedule.power", ""},
		"a new type in a mapping too":               {[]string{"lr_schedule={type: wsd, decay_ratio: 0.5}"}, "lr_schedule.decay_ratio", "0.5"},
		"the new type's keys stay, set before it":   {[]string{"lr_schedule.decay_ratio=0.5", "lr_schedule.type=wsd"}, "lr_schedule.decay_ratio", "0.5"},
		"a new optimizer leaves the old one's keys": {[]string{"optimizer.type=muon"}, "optimizer.beta1", ""},
		"an open mapping takes any name":            {[]string{"chat.args.enable_thinking=false"}, "chat.args", "{enable_thinking: false}"},
		"a name under a name":                       {[]string{"chat.args.a.b=1"}, "chat.args", "{a: {b: 1}}"},
		"an expectation":                            {[]string{"test.expect.reward/mean@gain=>= 2"}, "test.expect.reward/mean@gain", `">= 2.0"`},
		"epochs give way to num_steps by null":      {[]string{"train.epochs=null", "train.num_steps=7"}, "train.num_steps", "7"},
		"a column":                                  {[]string{"dataset.train.0.fields.prompt=[a, b]"}, "dataset.train.0.fields.prompt", "[a, b]"},
		"fields as a mapping":                       {[]string{"dataset.train.0.fields={prompt: q}"}, "dataset.train.0.fields.prompt", "q"},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := in(base, c.set...)
			if err != nil {
				t.Fatal(err)
			}
			want := c.want
			if rest, ok := strings.CutPrefix(want, "DIR/"); ok {
				want = quote(absolute(".", rest))
			}
			if got := values(r)[c.key]; got != want {
				t.Errorf("%v: %s is %s, want %s", c.set, c.key, got, want)
			}
		})
	}
}

// TestSetIsAnswerableForItself: what a --set gives is not dropped by the type that another --set gives.
func TestSetIsAnswerableForItself(t *testing.T) {
	for _, set := range [][]string{{"optimizer.beta1=0.5", "optimizer.type=muon"}, {"optimizer.type=muon", "optimizer.beta1=0.5"}} {
		if _, err := in(minimal, set...); err == nil || !strings.Contains(err.Error(), "--set optimizer.beta1: optimizer.beta1: is a key of type adam") {
			t.Errorf("%v: got %v", set, err)
		}
	}
}
