package recipe

import (
	"slices"
	"strings"

	"trainer/loss"
)

// formats are the shapes of rows that a loop can train on.
var formats = map[loss.Loop][]string{
	loss.Supervised:    {"messages", "prompt_completion", "text", "tokens"},
	loss.Preference:    {"preference"},
	loss.Reinforcement: {"prompts"},
	loss.Distillation:  {"prompts"},
}

// Formats are the shapes of rows that the recipe's loss trains on.
func (r *Recipe) Formats() []string {
	if r.Loss.Type == "kto" {
		return []string{"labelled"}
	}
	if r.Taught() || r.Loss.Type == "forward_kl" && r.Loop() == loss.Supervised {
		return []string{"tokens"}
	}
	if l, ok := r.Loss.Params.(*loss.Command); ok {
		switch l.Rows {
		case loss.Examples:
			return formats[loss.Supervised]
		case loss.Labelled:
			return []string{"labelled"}
		}
	}
	return formats[r.Loop()]
}

func (d *decoder) rows() {
	ds := &d.r.Dataset
	if len(ds.Validation) > 0 && ds.ValidationSplit != nil {
		d.refuse("dataset.validation_split", "stands beside dataset.validation; give one")
	}
	for _, s := range append(append([]Source(nil), ds.Train...), ds.Validation...) {
		d.source(s)
	}
}

func (d *decoder) source(s Source) {
	if strings.HasPrefix(s.Path, "http://") {
		d.refuse(s.Key+".path", "http:// can't be trusted with data; use https://, or download it and give the path")
	}
	if strings.HasPrefix(s.Path, "https://") && s.SHA256 == nil && d.sound(s.Key+".sha256") {
		d.refuse(s.Key+".sha256", "missing; what stands at an address can change: {path: …, sha256: …}")
	}
	want := d.r.Formats()
	if d.loop != "" && s.Format != "auto" && d.sound(s.Key+".format") && !slices.Contains(want, s.Format) {
		d.refuse(s.Key+".format", "%s can't train on %s; it takes %s", d.r.Loss.Type, s.Format, strings.Join(want, ", "))
	}
}
