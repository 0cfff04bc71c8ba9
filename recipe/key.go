package recipe

import (
	"reflect"
	"slices"
	"strings"
	"time"

	"trainer/internal/grader"
	"trainer/loss"
	"trainer/schedule"
)

// KeyKind says what may stand at a key.
type KeyKind string

// The kinds of values.
const (
	Text     KeyKind = "text"
	Integer  KeyKind = "integer"
	Number   KeyKind = "number"
	Boolean  KeyKind = "true or false"
	Duration KeyKind = "duration"
	ListOf   KeyKind = "list"      // of Elem
	Mapping  KeyKind = "mapping"   // of Keys
	DictOf   KeyKind = "names"     // any name to Elem
	Anything KeyKind = "any value" // plain YAML data
	Sources  KeyKind = "sources"   // a path, one source, or a list of either; Elem is the source
	Column   KeyKind = "column"    // a column, a list of columns, or a mapping of Keys
	Held     KeyKind = "split"     // a share of the rows or a number of rows
	Auto     KeyKind = "auto or integer"
	Asserts  KeyKind = "expectations" // metric to "< 5.0"
	Params   KeyKind = "params"       // a mapping of the keys of the Variant that the sibling type names
)

// Key is one key of the recipe, for whoever decodes, prints or documents it. A tree of them is read-only.
type Key struct {
	Name     string      // learning_rate; empty for an element
	Path     string      // optimizer.learning_rate; N stands for an index or a name: dataset.train.N.path
	Field    string      // the Go field whose comment describes it: recipe.Optimizer.LearningRate
	Kind     KeyKind     // what may stand here
	Null     bool        // null may stand here
	Required bool        // no default, where the key has an effect
	Default  string      // as YAML; empty: none in the tag, see DefaultIn
	Names    []string    // the words that may stand here; nil: any
	Check    string      // the validator's tag, without required and omitempty
	Loops    []loss.Loop // nil: all
	Types    []string    // the values of the sibling type under which the key has an effect; nil: all
	Keys     []*Key      // of a mapping
	Elem     *Key        // of a list or of names
	Variants []Variant   // of Params; of lr_schedule, whose variants' keys stand beside its own

	index []int // of the struct field, through the structs that it is embedded in
}

// Variant is what one type adds to a mapping.
type Variant struct {
	Name string
	Keys []*Key
}

// Keys returns the whole recipe as the mapping that a file is.
func Keys() *Key { return root }

var root = &Key{Kind: Mapping, Keys: structKeys(reflect.TypeFor[Recipe](), "", reflect.Value{})}

// structKeys lists the keys of t in field order, those of an embedded struct in its place. preset, where valid, is a value of t
// whose fields are the defaults.
func structKeys(t reflect.Type, path string, preset reflect.Value) []*Key {
	var keys []*Key
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Anonymous && f.IsExported() && f.Type.Kind() == reflect.Struct {
			inner := reflect.Value{}
			if preset.IsValid() {
				inner = preset.Field(i)
			}
			for _, k := range structKeys(f.Type, path, inner) {
				k.index = append([]int{i}, k.index...)
				keys = append(keys, k)
			}
			continue
		}
		name, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		if name == "" || name == "-" {
			continue
		}
		k := fieldKey(t.String(), f, name, join(path, name))
		k.index = []int{i}
		if preset.IsValid() && !preset.Field(i).IsZero() {
			k.Default = inline(preset.Field(i))
		}
		keys = append(keys, k)
	}
	return keys
}

func fieldKey(owner string, f reflect.StructField, name, path string) *Key {
	k := typeKey(f.Type, path)
	k.Name, k.Field, k.Default = name, owner+"."+f.Name, f.Tag.Get("default")
	if null, ok := f.Tag.Lookup("null"); ok {
		k.Null = null == "true"
	}
	for _, l := range words(f.Tag.Get("loop")) {
		k.Loops = append(k.Loops, loss.Loop(l))
	}
	k.Types = words(f.Tag.Get("type"))
	if k.Kind == Integer && k.Default == "auto" {
		k.Kind = Auto
	}
	for _, rule := range words(f.Tag.Get("validate")) {
		switch rule {
		case "required":
			k.Required = true
		case "omitempty": // null is what it stands for, and null is decided here
		default:
			k.Check = strings.TrimPrefix(k.Check+","+rule, ",")
			if names, ok := strings.CutPrefix(rule, "oneof="); ok {
				k.Names = strings.Fields(names)
			}
		}
	}
	if strings.HasPrefix(path, "eval.sampling_params.") { // the rest is as in rollout
		k.Required, k.Default = false, evalSampling[name]
	}
	switch path {
	case "loss.type":
		k.Names = LossNames()
	case "reward.N.type":
		k.Names = RewardNames()
	case "lr_schedule.type":
		k.Names = schedules()
	case "lr_schedule":
		k.Variants = shapes(path)
	}
	return k
}

func typeKey(t reflect.Type, path string) *Key {
	k := &Key{Path: path}
	if t.Kind() == reflect.Pointer {
		k.Null, t = true, t.Elem()
	}
	switch t {
	case reflect.TypeFor[time.Duration]():
		k.Kind = Duration
		return k
	case reflect.TypeFor[[]Source]():
		k.Kind, k.Elem = Sources, typeKey(t.Elem(), path+".N")
		return k
	case reflect.TypeFor[Field]():
		k.Kind, k.Keys = Column, structKeys(t, path, reflect.Value{})
		return k
	case reflect.TypeFor[Split]():
		k.Kind = Held
		return k
	case reflect.TypeFor[[]Expectation]():
		k.Kind = Asserts
		return k
	case reflect.TypeFor[loss.Loss]():
		k.Kind, k.Variants = Params, lossParams(path)
		return k
	case reflect.TypeFor[grader.Grader]():
		k.Kind, k.Variants = Params, rewardParams(path)
		return k
	}
	switch t.Kind() {
	case reflect.String:
		k.Kind = Text
	case reflect.Bool:
		k.Kind = Boolean
	case reflect.Float64:
		k.Kind = Number
	case reflect.Int, reflect.Int64:
		k.Kind = Integer
	case reflect.Slice, reflect.Array:
		k.Kind, k.Elem = ListOf, typeKey(t.Elem(), path+".N")
	case reflect.Map:
		k.Kind, k.Elem = DictOf, typeKey(t.Elem(), path+".N")
	case reflect.Struct:
		k.Kind, k.Keys = Mapping, structKeys(t, path, reflect.Value{})
	default:
		k.Kind = Anything
	}
	return k
}

func shapes(path string) []Variant {
	var out []Variant
	for _, s := range schedule.Kinds() {
		v := reflect.ValueOf(s.New()).Elem()
		out = append(out, Variant{s.Name, structKeys(v.Type(), path, v)})
	}
	return out
}

func lossParams(path string) []Variant {
	var out []Variant
	for _, l := range loss.Kinds() {
		v := reflect.ValueOf(l.New()).Elem()
		out = append(out, Variant{l.Name, structKeys(v.Type(), path, v)})
	}
	return out
}

func rewardParams(path string) []Variant {
	var out []Variant
	for _, g := range grader.Kinds() {
		v := reflect.ValueOf(g.New()).Elem()
		out = append(out, Variant{g.Name, structKeys(v.Type(), path, v)})
	}
	return out
}

// DefaultIn is the default of k in a loop, as YAML; empty where there is none.
func (k *Key) DefaultIn(l loss.Loop) string {
	if byLoop, ok := loopDefaults[k.Path]; ok {
		return byLoop[l]
	}
	return k.Default
}

// In says whether k has an effect in a loop; an unknown loop ("") has every key.
func (k *Key) In(l loss.Loop) bool { return l == "" || k.Loops == nil || slices.Contains(k.Loops, l) }

func (k *Key) child(name string) *Key { return find(k.Keys, name) }

func (k *Key) variant(name string) []*Key {
	for _, v := range k.Variants {
		if v.Name == name {
			return v.Keys
		}
	}
	return nil
}

// owners are the names of the variants that have a key.
func (k *Key) owners(name string) []string {
	var out []string
	for _, v := range k.Variants {
		if find(v.Keys, name) != nil {
			out = append(out, v.Name)
		}
	}
	return out
}

// knows says whether a mapping at k has the key under the given type.
func (k *Key) knows(typ, name string) bool {
	if c := k.child(name); c != nil {
		return c.Types == nil || slices.Contains(c.Types, typ)
	}
	return find(k.variant(typ), name) != nil
}

func find(keys []*Key, name string) *Key {
	for _, k := range keys {
		if k.Name == name {
			return k
		}
	}
	return nil
}

func keyNames(keys []*Key) []string {
	names := make([]string, len(keys))
	for i, k := range keys {
		names[i] = k.Name
	}
	return names
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

func words(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(s, ",")
}
