package recipe

import (
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"unicode"

	"trainer/loss"
)

func reflectOf(r *Recipe) reflect.Value { return reflect.ValueOf(r).Elem() }

// rules are what no single value shows: two that contradict each other, one that needs another, names with a form.
// A rule is silent about keys that have a problem already.
func (d *decoder) rules(n *node) {
	d.names(n)
	d.start()
	d.length()
	d.rows()
	d.cadence()
	d.forwardKL(n)
	if d.r.Rollout != nil {
		d.rollouts(n)
	}
	d.examined(n)
	if d.loop == loss.Preference && d.r.Train.Lookahead > 1 {
		d.refuse("train.lookahead", "must be at most 1 with %s: its forward pass needs the weights of the step before, got %d", d.r.Loss.Type, d.r.Train.Lookahead)
	}
}

// refuse adds a problem at the value of key, unless there is one at the key, below or above it.
func (d *decoder) refuse(key, format string, a ...any) {
	if d.sound(key) {
		d.add(d.r.At(key), key, format, a...)
	}
}

const maxName = 100

var (
	weightsForm = regexp.MustCompile(`^together://ml_[A-Za-z0-9_-]+(@rv_[A-Za-z0-9_-]+)?$`)
	deviceForm  = regexp.MustCompile(`^(?i:con|prn|aux|nul|com[0-9]|lpt[0-9])(\..*)?$`)
)

func (d *decoder) names(n *node) {
	if name := n.get("name"); name != nil && !name.null {
		if msg := nameFault(d.r.Name); msg != "" {
			d.refuse("name", "%s", msg)
		}
	}
	refs := map[string]*string{"base_weights_ref": d.r.BaseWeightsRef}
	if d.r.Teacher != nil {
		refs["teacher.base_weights_ref"] = d.r.Teacher.BaseWeightsRef
	}
	for _, key := range sortedNames(refs) {
		if ref := refs[key]; ref != nil && (len(*ref) > 256 || !weightsForm.MatchString(*ref)) {
			d.refuse(key, "%q is not a reference; it is together://ml_… or together://ml_…@rv_…", *ref)
		}
	}
}

// nameFault says why a name can't be that of a folder everywhere, or is "".
func nameFault(name string) string {
	if name == "" {
		return "must not be empty; null takes the file's stem"
	}
	if len([]rune(name)) > maxName || len(name) > 2*maxName {
		return "is longer than 100 characters (200 bytes)"
	}
	for _, c := range name {
		if !unicode.IsLetter(c) && !unicode.IsDigit(c) && !unicode.IsMark(c) && !strings.ContainsRune("._-", c) {
			return fmt.Sprintf("%q has %q; a name is letters, digits, '.', '_' and '-'", name, c)
		}
	}
	switch {
	case strings.Trim(name, ".") == "" || strings.HasSuffix(name, "."):
		return fmt.Sprintf("%q ends in a dot, which no folder can everywhere", name)
	case deviceForm.MatchString(name):
		return fmt.Sprintf("%q is the name of a device on Windows", name)
	}
	return ""
}

func (d *decoder) start() {
	from := map[string]*InitFrom{"init_from": d.r.InitFrom}
	if d.r.Teacher != nil {
		from["teacher.init_from"] = d.r.Teacher.InitFrom
	}
	for _, key := range sortedNames(from) {
		switch f := from[key]; {
		case f == nil:
		case f.CheckpointID == nil && f.Run == nil:
			d.refuse(key, "names nothing to start from; give checkpoint_id, or run and step")
		case f.CheckpointID != nil && f.Run != nil:
			d.refuse(key+".run", "stands beside checkpoint_id; give one")
		case f.Step != nil && f.Run == nil:
			d.refuse(key+".step", "is a step of a run; a checkpoint_id has one already")
		}
	}
}

// length: exactly one of epochs and num_steps.
func (d *decoder) length() {
	t := &d.r.Train
	switch {
	case !d.sound("train.epochs") || !d.sound("train.num_steps"):
	case t.NumSteps != nil && d.r.Given("train.epochs") && t.Epochs != nil:
		d.refuse("train.num_steps", "stands beside train.epochs; give one, and null for the other")
	case t.NumSteps != nil:
		t.Epochs = nil
		if !d.r.Given("train.epochs") {
			d.r.origins["train.epochs"] = origin{label: "default beside num_steps"}
		}
	case t.Epochs == nil:
		d.refuse("train.epochs", "is null and so is num_steps; one of them says how long to train")
	}
}

func (d *decoder) cadence() {
	e := &d.r.Eval
	held := len(d.r.Dataset.Validation) > 0 || d.r.Dataset.ValidationSplit != nil
	if e.EarlyStop != nil && e.Every == nil && d.sound("eval.every") {
		d.refuse("eval.early_stop", "never acts: eval.every is null")
	}
	if !held && d.sound("dataset") {
		const way = "has no effect: nothing is held out; give dataset.validation or dataset.validation_split"
		if e.AtStart {
			d.refuse("eval.at_start", way)
		}
		if e.Limit != nil {
			d.refuse("eval.limit", way)
		}
		if e.SamplingParams != nil && ofRows(d.loop) {
			d.refuse("eval.sampling_params", way)
		}
	}
	needs := map[string]string{}
	if e.EarlyStop != nil {
		needs["eval.early_stop"] = e.EarlyStop.Metric
	}
	if b := d.r.Checkpoint.KeepBest; b != nil {
		needs["checkpoint.keep_best"] = b.Metric
	}
	for _, key := range sortedNames(needs) {
		if strings.HasPrefix(needs[key], "eval/") && !held && d.sound("dataset") {
			d.refuse(key, "needs %s, and nothing is held out; give dataset.validation or dataset.validation_split", needs[key])
		}
	}
}
