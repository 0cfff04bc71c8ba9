package recipe

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/go-playground/validator/v10"

	"trainer/internal/diag"
	"trainer/loss"
)

// decoder fills a Recipe from the merged nodes, in the order of the structs' fields, so that a later section may look at
// an earlier one.
type decoder struct {
	problems diag.List
	r        *Recipe
	loop     loss.Loop // "" while the loss is unknown: then every loop's keys are taken
	full     bool      // full weights
	reward   string    // the type of the reward that is decoded
	kind     string    // the loss or reward whose params are decoded
	orphan   bool      // a parent could not be read, and what is missing may stand there
	check    *validator.Validate
	bad      map[string]bool // keys with a problem
	touched  map[string]bool // bad keys and all keys above them
	said     map[string]bool // keys that had a problem before decoding
	trace    trace
}

var defaults = &source{label: "default"}

func (d *decoder) add(at diag.Pos, key, format string, a ...any) {
	d.problems.Add(at, key, format, a...)
	d.mark(key)
}

func (d *decoder) mark(key string) {
	d.bad[key] = true
	for ; key != ""; key = above(key) {
		d.touched[key] = true
	}
}

// sound says whether nothing at key, below it or above it was refused, so that a rule may look at its value.
func (d *decoder) sound(key string) bool {
	if d.touched[key] {
		return false
	}
	for key = above(key); key != ""; key = above(key) {
		if d.bad[key] {
			return false
		}
	}
	return true
}

// above is the key of the mapping or list that holds key; "" is the recipe.
func above(key string) string { return key[:max(strings.LastIndexByte(key, '.'), 0)] }

// fill decodes the keys of the mapping n, which may be nil, into the struct v. at is the place of n, or of the nearest
// mapping above. preset, where it is not empty, says where v's values came from: they stand where n has none.
func (d *decoder) fill(n *node, at diag.Pos, key string, k *Key, keys []*Key, v reflect.Value, preset string) {
	typ := d.typeIn(n, k)
	known := knownType(k, typ)
	for _, c := range keys {
		full, child, field := join(key, c.Name), n.get(c.Name), v.FieldByIndex(c.index)
		if c.Types != nil && !known && child == nil {
			continue // whose key it is can't be told
		}
		if why := d.useless(c, typ, known, n); why != "" {
			if child != nil && !(child.null && c.Null) {
				d.add(n.keyAt(c.Name), full, "%s", why)
			}
			d.trace.useless[full] = true
			continue
		}
		switch {
		case child != nil:
			d.value(child, full, c, field)
		case preset != "":
			if c.Required && field.IsZero() && preset == defaults.label {
				d.add(at, full, "missing; %s has no default for it", owner(typ, d.kind))
			}
			d.trace.origins[full] = origin{label: preset}
		default:
			d.absent(at, full, c, field)
		}
	}
}

// owner is what a missing key is of: a type of its mapping, or the kind whose params are decoded.
func owner(typ, kind string) string {
	if typ == "" {
		return kind
	}
	return "type " + typ
}

// maxAdvice problems are looked into; a file with more is no recipe with slips of the pen.
const maxAdvice = 200

// strict refuses the names that no key has.
func (d *decoder) strict(n *node, key string, k *Key, keys []*Key) {
	if n == nil {
		return
	}
	for _, p := range n.pairs {
		if find(keys, p.name) != nil {
			continue
		}
		if len(d.problems) > maxAdvice {
			d.add(p.at, join(key, p.name), "unknown key")
			continue
		}
		d.add(p.at, join(key, p.name), "%s", unknown(k, keys, p.name, p.value))
	}
}

// typeIn is the type that a mapping at k has, given or by default.
func (d *decoder) typeIn(n *node, k *Key) string {
	if typ := n.get("type").word(); typ != "" {
		return typ
	}
	if c := k.child("type"); c != nil {
		return c.DefaultIn(d.defaultLoop())
	}
	return ""
}

// knownType: under a type that is none, the keys of all types are taken.
func knownType(k *Key, typ string) bool {
	c := k.child("type")
	return c == nil || c.Names == nil || slices.Contains(c.Names, typ)
}

func (d *decoder) defaultLoop() loss.Loop {
	if d.loop == "" {
		return loss.Supervised
	}
	return d.loop
}

// absent sets the default of a key that was not given.
func (d *decoder) absent(at diag.Pos, key string, k *Key, v reflect.Value) {
	text := k.DefaultIn(d.defaultLoop())
	if strings.HasSuffix(k.Path, ".learning_rate") && d.full {
		d.add(at, key, "missing; full weights (lora_config: null) have no default rate")
		return
	}
	src := *defaults
	switch {
	case text == "{}" || k.Kind == Mapping && !k.Null:
		if k.Loops != nil && d.loop == "" {
			return // of a loop that may not be this one
		}
		d.mapping(nil, at, key, k, v)
	case text != "":
		n := &node{text: strings.Trim(text, `"`), quoted: strings.HasPrefix(text, `"`), pos: at, src: &src}
		n.null = !n.quoted && nullWord(n.text)
		d.value(n, key, k, v)
	case k.Required && !(k.Loops != nil && d.loop == ""):
		d.missing(at, key, k)
	default:
		d.trace.origins[key] = origin{label: defaults.label}
	}
}

// missing names the keys themselves where a whole section is not there.
func (d *decoder) missing(at diag.Pos, key string, k *Key) {
	if k.Kind == Mapping {
		for _, c := range k.Keys {
			if c.Required {
				d.missing(at, join(key, c.Name), c)
			}
		}
		return
	}
	if d.orphan {
		d.mark(key)
		return
	}
	d.add(at, key, "missing%s", hints[k.Path])
}

// hints say what a required key is for.
var hints = map[string]string{
	"base_model":                         "; it names the model to tune, or sandbox/bytes-tiny to try a recipe without an account",
	"dataset.train":                      "; it is the path of the training rows",
	"teacher.base_model":                 "; without teacher and rollout, reverse_kl trains on rows of tokens that have teacher_logprobs",
	"loss.type":                          "; it decides the loop: cross_entropy, grpo, dpo, …",
	"rollout.sampling_params.max_tokens": "; the service's own default is too short to leave it out",
}

// value decodes n, which stands at key, into v.
func (d *decoder) value(n *node, key string, k *Key, v reflect.Value) {
	d.trace.note(key, n)
	if n.null && k.Kind != Anything {
		if !k.Null {
			d.add(n.pos, key, "null is not allowed here; %s", nullHint(k))
		}
		v.SetZero()
		return
	}
	if v.Kind() == reflect.Pointer {
		v.Set(reflect.New(v.Type().Elem()))
		v = v.Elem()
	}
	switch k.Kind {
	case Mapping:
		d.mapping(n, n.pos, key, k, v)
	case ListOf:
		d.list(n, key, k, v)
	case DictOf:
		d.dict(n, key, k, v)
	case Sources:
		d.sources(n, key, k, v)
	case Column:
		d.column(n, key, k, v)
	case Asserts:
		d.asserts(n, key, v)
	case Params:
		d.params(n, n.pos, key, k, v)
	case Anything:
		d.anything(n, key, v)
	default:
		d.scalar(n, key, k, v)
	}
}

func nullHint(k *Key) string {
	switch {
	case strings.HasSuffix(k.Path, "grad_clip_norm"):
		return "0 turns the clip off"
	case k.Kind == Text && (k.Required || k.Default == ""):
		return `write "null" in quotes for the word`
	}
	return "leave the key out for its default"
}

// mapping decodes a mapping of fixed keys; n is nil where none is given.
func (d *decoder) mapping(n *node, at diag.Pos, key string, k *Key, v reflect.Value) {
	if n != nil && n.shape != mapping {
		hint := ""
		switch {
		case k.child("type") != nil && n.shape == scalar:
			hint = "; write {type: " + n.show() + "}"
		case k.Path == "dataset":
			hint = "; write {train: …}"
		}
		d.add(n.pos, key, "must be a mapping of %s, not %s%s", strings.Join(keyNames(k.Keys), ", "), n.show(), hint)
		return
	}
	if v.Kind() == reflect.Pointer {
		v.Set(reflect.New(v.Type().Elem()))
		v = v.Elem()
	}
	switch k.Path {
	case "lr_schedule":
		d.schedule(n, at, key, k, v)
		return
	case "loss":
		d.loss(n, at, key, k, v)
		return
	case "reward.N":
		d.oneReward(n, at, key, k, v)
		return
	case "eval.sampling_params":
		d.evalSampling(n, at, key, k, v)
		return
	}
	d.strict(n, key, k, k.Keys)
	d.fill(n, at, key, k, k.Keys, v, "")
}

func sortedNames[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
