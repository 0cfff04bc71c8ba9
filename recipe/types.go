package recipe

import (
	"errors"
	"reflect"
	"slices"
	"strings"

	"trainer/internal/diag"
	"trainer/internal/grader"
	"trainer/loss"
	"trainer/schedule"
)

// loss decodes the section of that name: its type, the reduction that the type has, and the params of the type's row.
func (d *decoder) loss(n *node, at diag.Pos, key string, k *Key, v reflect.Value) {
	d.strict(n, key, k, k.Keys)
	d.fill(n, at, key, k, k.Keys, v, "")
	l := v.Addr().Interface().(*Loss)
	if l.Reduction == "" && !d.trace.useless["loss.reduction"] && d.sound("loss.reduction") {
		l.Reduction = reductionOf(l.Type)
		d.trace.origins["loss.reduction"] = origin{label: defaults.label}
	}
	if l.Params == nil {
		d.params(nil, at, "loss.params", k.child("params"), v.FieldByIndex(k.child("params").index))
	}
	if l.Type == "" || LoopOf(l.Type) != "" {
		return
	}
	where := d.trace.places["loss.type"]
	if near := diag.DidYouMean(l.Type, LossNames()); near != "" {
		d.add(where, "loss.type", "%q is not a loss%s", l.Type, near)
		return
	}
	d.add(where, "loss.type", "%q is not a loss; losses are %s", l.Type, strings.Join(LossNames(), ", "))
}

// oneReward decodes a grader: its type, what its score counts, and the params of the type's row.
func (d *decoder) oneReward(n *node, at diag.Pos, key string, k *Key, v reflect.Value) {
	d.reward = n.get("type").word()
	d.strict(n, key, k, k.Keys)
	d.fill(n, at, key, k, k.Keys, v, "")
	if v.Addr().Interface().(*Reward).Params == nil {
		params := k.child("params")
		d.params(nil, at, join(key, params.Name), params, v.FieldByIndex(params.index))
	}
}

// fresh is a new value of the kind whose params stand at k, with its defaults, and the kind's name.
func (d *decoder) fresh(k *Key) (p any, name string, ok bool) {
	if k.Path == "loss.params" {
		kind, ok := lossKind(d.r.Loss.Type)
		if !ok {
			return nil, "", false
		}
		return kind.New(), kind.Name, true
	}
	kind, ok := rewardKind(d.reward)
	if !ok {
		return nil, "", false
	}
	return kind.New(), kind.Name, true
}

// params decodes the parameters of a loss or a reward; those of a name that is none have nothing to be checked against.
func (d *decoder) params(n *node, at diag.Pos, key string, k *Key, v reflect.Value) {
	if n != nil && n.shape != mapping {
		d.add(n.pos, key, "must be a mapping, not %s", n.show())
		return
	}
	p, name, ok := d.fresh(k)
	if !ok {
		return
	}
	d.kind = name
	keys := k.variant(name)
	d.strictParams(n, key, k, name)
	d.fill(n, at, key, &Key{Path: key}, keys, reflect.ValueOf(p).Elem(), defaults.label)
	d.consistent(p, at, key)
	v.Set(reflect.ValueOf(p))
}

// strictParams refuses the names that the kind does not have. One of another kind names the kinds that have it, and so does
// a foreign name that stands for one.
func (d *decoder) strictParams(n *node, key string, k *Key, name string) {
	if n == nil {
		return
	}
	keys := k.variant(name)
	for _, p := range n.pairs {
		if find(keys, p.name) != nil {
			continue
		}
		full, has := join(key, p.name), strings.Join(keyNames(keys), ", ")
		if has == "" {
			has = "none"
		}
		switch owners := k.owners(p.name); {
		case owners != nil:
			d.add(p.at, full, "is a parameter of %s; %s has %s", strings.Join(owners, ", "), name, has)
		case k.Path == "loss.params" && foreignParam(p.name) != "" && find(keys, foreignParam(p.name)) == nil:
			d.add(p.at, full, "unknown key; it stands for %s, which is a parameter of %s; %s has %s",
				foreignParam(p.name), strings.Join(k.owners(foreignParam(p.name)), ", "), name, has)
		default:
			d.add(p.at, full, "%s", unknown(&Key{Path: key}, keys, p.name, p.value))
		}
	}
}

// schedule decodes lr_schedule: its own keys, and beside them those of the shape that type names.
func (d *decoder) schedule(n *node, at diag.Pos, key string, k *Key, v reflect.Value) {
	typ := d.typeIn(n, k)
	row := slices.IndexFunc(schedule.Kinds(), func(s schedule.Kind) bool { return s.Name == typ })
	keys := append(slices.Clone(k.Keys), k.variant(typ)...)
	if row < 0 {
		for _, s := range k.Variants { // whose keys these are can't be told
			keys = append(keys, s.Keys...)
		}
	}
	d.strict(n, key, k, keys)
	d.fill(n, at, key, k, k.Keys, v, "")
	if row < 0 {
		if d.sound("lr_schedule.type") {
			names := schedules()
			msg := diag.DidYouMean(typ, names)
			if msg == "" {
				msg = "; schedules are " + strings.Join(names, ", ")
			}
			d.add(d.trace.places["lr_schedule.type"], "lr_schedule.type", "%q is not a schedule%s", typ, msg)
		}
		return
	}
	s := schedule.Kinds()[row].New()
	d.fill(n, at, key, k, k.variant(typ), reflect.ValueOf(s).Elem(), defaults.label)
	d.consistent(s, at, key)
	v.Addr().Interface().(*LRSchedule).Shape = s
}

func schedules() []string {
	var names []string
	for _, k := range schedule.Kinds() {
		names = append(names, k.Name)
	}
	return names
}

// consistent asks a kind's own Check, once its keys are sound.
func (d *decoder) consistent(kind any, at diag.Pos, key string) {
	c, ok := kind.(interface{ Check() error })
	if !ok || !d.sound(key) {
		return
	}
	err := c.Check()
	var faults schedule.Faults
	var one *loss.Fault
	if errors.As(err, &one) {
		faults = schedule.Faults{{Key: one.Key, Msg: one.Msg}}
	}
	var ofGrader *grader.Fault
	if errors.As(err, &ofGrader) {
		faults = schedule.Faults{{Key: ofGrader.Key, Msg: ofGrader.Msg}}
	}
	switch {
	case faults != nil || errors.As(err, &faults):
		for _, f := range faults {
			full := join(key, f.Key)
			if place, ok := d.trace.places[full]; ok {
				d.add(place, full, "%s", f.Msg)
			} else {
				d.add(at, full, "%s", f.Msg)
			}
		}
	case err != nil:
		d.add(at, key, "%v", err)
	}
}

// evalSampling starts from what rollout samples with, greedy. Where there is no rollout, from what its keys have by default.
func (d *decoder) evalSampling(n *node, at diag.Pos, key string, k *Key, v reflect.Value) {
	d.strict(n, key, k, k.Keys)
	if ofRows(d.loop) {
		own := *root.child("rollout").child("sampling_params")
		d.fill(n, at, key, k, own.Keys, v, "")
		if n.get("temperature") == nil {
			v.Addr().Interface().(*Sampling).Temperature = 0
		}
		return
	}
	if d.r.Rollout != nil {
		v.Set(reflect.ValueOf(d.r.Rollout.SamplingParams))
	}
	d.fill(n, at, key, k, k.Keys, v, "as rollout.sampling_params")
	for _, c := range k.Keys {
		if c.Default != "" && n.get(c.Name) == nil {
			d.absent(at, join(key, c.Name), c, v.FieldByIndex(c.index))
		}
	}
}
