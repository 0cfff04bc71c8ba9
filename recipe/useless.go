package recipe

import (
	"fmt"
	"slices"
	"strings"

	"trainer/loss"
)

// useless says why a key has no effect here, or is "". typ is the type of the mapping that it stands in, known whether that
// is one; n is that mapping, which may be nil.
func (d *decoder) useless(k *Key, typ string, known bool, n *node) string {
	if !k.In(d.loop) {
		which := string(d.loop)
		if d.loop != LoopOf(d.r.Loss.Type) {
			which += ", as there is no rollout and no teacher"
		}
		return fmt.Sprintf("has no effect with loss %s (%s); it is a key of %s", d.r.Loss.Type, which, loops(k.Loops))
	}
	if k.Types != nil && !slices.Contains(k.Types, typ) && known {
		return fmt.Sprintf("is a key of type %s; the type here is %s", strings.Join(k.Types, ", "), typ)
	}
	switch k.Path {
	case "eval.group_size":
		if ofRows(d.loop) && !gives(n, "sampling_params") {
			return "has no effect: evaluations sample nothing; give eval.sampling_params"
		}
	case "reward":
		if ofRows(d.loop) && !gives(n.get("eval"), "sampling_params") {
			return fmt.Sprintf("has no effect with loss %s, which trains on rows: rewards grade what evaluations sample then; give eval.sampling_params", d.r.Loss.Type)
		}
	case "loss.reduction":
		if d.loop != "" && reductionOf(d.r.Loss.Type) == "" {
			return noReduction(d.r.Loss.Type)
		}
	case "reference":
		if d.loop == loss.Reinforcement && !d.trace.usesReference {
			return "has no effect without a KL term: loss.params.beta (of grpo) and advantage.kl_coef are 0"
		}
		if k, ok := lossKind(d.r.Loss.Type); ok && d.loop == loss.Preference && !d.comparesWithReference(k) {
			return fmt.Sprintf("has no effect with %s, which compares with no reference%s", k.Name, wayToReference[k.Name])
		}
	case "reference.source":
		if id := n.get("checkpoint_id"); id != nil && !id.null {
			return "has no effect beside checkpoint_id"
		}
	case "dataset.train.N.subset", "dataset.train.N.split", "dataset.validation.N.subset", "dataset.validation.N.split":
		if path := n.get("path").word(); !strings.HasPrefix(path, "hf://") {
			return "is of hf:// datasets, and the path is none"
		}
	}
	return ""
}

// ofRows says that a loop trains on rows, and samples only where eval.sampling_params says so.
func ofRows(l loss.Loop) bool { return l == loss.Supervised || l == loss.Preference }

// ofSamples are the keys that say in such a loop how completions are sampled and graded which are not trained.
var ofSamples = map[string]bool{"reward": true, "eval.group_size": true, "eval.sampling_params": true}

// gives says that the mapping n has something at name.
func gives(n *node, name string) bool {
	v := n.get(name)
	return v != nil && !v.null
}

// wayToReference is how a loss comes to a reference, where a parameter decides it.
var wayToReference = map[string]string{"command": "; loss.params.reference: true gives it one"}

// comparesWithReference asks the loss as it is, or where it could not be read, as it is by default.
func (d *decoder) comparesWithReference(k loss.Kind) bool {
	params := d.r.Loss.Params
	if params == nil {
		params = k.New()
	}
	l, ok := params.(loss.Referenced)
	return ok && l.UsesReference()
}

func noReduction(name string) string {
	switch name {
	case "grpo":
		return "has no effect with grpo; params.agg_type says it"
	case "command":
		return "has no effect with command, whose program sees the whole step and the weights as they are"
	}
	return fmt.Sprintf("has no effect with %s, which is a mean over pairs or rows", name)
}

func loops(ls []loss.Loop) string {
	s := make([]string, len(ls))
	for i, l := range ls {
		s[i] = string(l)
	}
	last := len(s) - 1
	return strings.TrimPrefix(strings.Join(s[:last], ", ")+" and ", " and ") + s[last]
}
