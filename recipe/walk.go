package recipe

import (
	"reflect"
	"strconv"

	"trainer/internal/grader"
	"trainer/loss"
)

// line is one value of a recipe, or the head of a section.
type line struct {
	key    string // dotted, with indexes
	name   string // the last part of key; empty for an entry of a list
	depth  int
	head   bool   // a section: the lines below it hold the values
	item   bool   // the first line of a list's entry
	text   string // the value as YAML
	origin origin
	k      *Key
}

// lines lists every value that has an effect in the recipe's loop, in the order of the schema.
func (r *Recipe) lines() []line {
	w := &walker{r: r}
	w.mapping("", root.Keys, reflectOf(r), 0)
	for i, l := range w.out {
		switch {
		case l.key == "extends":
			w.out[i].text, w.out[i].origin = "[]", origin{label: "merged"}
		case l.key == "name" && r.Name == "": // the file's name, which another file does not have
			w.out[i].text, w.out[i].origin = quote(r.RunName()), origin{label: "file name"}
		}
	}
	return w.out
}

// schemaPath is the key of a schema, which may be the path of its file.
const schemaPath = "reward.N.params.schema"

// The keys of the folders that programs run in.
const (
	lossDir   = "loss.params.dir"
	rewardDir = "reward.N.params.dir"
	envDir    = "rollout.env.dir"
)

// ProgramDir is the absolute folder that the program runs in whose command and dir are keys of the mapping at params, as
// reward.0.params: dir from the folder of the file in which it stands, or where it is left out, of that in which the command does.
// A resolved recipe has it written out, so a run that goes on finds its programs.
func (r *Recipe) ProgramDir(params, dir string) string {
	from := join(params, "dir")
	if !r.Given(from) {
		from = join(params, "command")
	}
	return absolute(r.Dir(from), dir)
}

type walker struct {
	r   *Recipe
	out []line
}

func (w *walker) mapping(key string, keys []*Key, v reflect.Value, depth int) {
	for _, k := range keys {
		if full := join(key, k.Name); !w.r.useless[full] {
			w.value(full, k, v.FieldByIndex(k.index), depth)
		}
	}
}

func (w *walker) value(key string, k *Key, v reflect.Value, depth int) {
	if !k.In(w.r.Loop()) {
		return
	}
	null := k.Null && k.Kind == Text && v.Kind() == reflect.String && v.String() == "" // a name has no pointer
	if v.Kind() == reflect.Pointer && !v.IsNil() {
		v = v.Elem()
	}
	switch {
	case null || v.Kind() == reflect.Pointer:
		w.leaf(key, k, "null", depth)
	case k.Kind == Auto && v.Int() == 0:
		w.leaf(key, k, "auto", depth)
	case k.Kind == Mapping:
		w.head(key, k, depth)
		w.mapping(key, k.Keys, v, depth+1)
		if s, ok := v.Interface().(LRSchedule); ok {
			w.mapping(key, k.variant(s.Type), reflect.ValueOf(s.Shape).Elem(), depth+1)
		}
	case k.Kind == Params:
		w.params(key, k, v, depth)
	case k.Kind == Asserts:
		w.asserts(key, k, v.Interface().([]Expectation), depth)
	case k.Kind == DictOf && k.Elem.Kind == Column && v.Len() > 0:
		w.head(key, k, depth)
		for _, name := range sortedNames(v.Interface().(map[string]Field)) {
			elem := *k.Elem
			elem.Name = name
			w.leaf(join(key, name), &elem, v.MapIndex(reflect.ValueOf(name)).Interface().(Field).inline(), depth+1)
		}
	case (k.Kind == Sources || k.Kind == ListOf && k.Elem.Kind == Mapping) && v.Len() > 0:
		w.head(key, k, depth)
		w.entries(key, k.Elem, v, depth+2)
	case k.Kind == Sources:
		w.leaf(key, k, "[]", depth)
	default:
		w.leaf(key, k, w.text(key, k, v), depth)
	}
}

// text makes a path that starts in a file's folder one that starts nowhere, so that the line can move.
func (w *walker) text(key string, k *Key, v reflect.Value) string {
	switch {
	case k.Path == "tokenizer" || k.Path == "chat.template":
		if isPath(k, v.String()) {
			return quote(absolute(w.r.Dir(key), v.String()))
		}
	case k.Path == "dataset.train.N.path" || k.Path == "dataset.validation.N.path":
		if !remote(v.String()) {
			return quote(absolute(w.r.Dir(key), v.String()))
		}
	case k.Path == lossDir || k.Path == rewardDir || k.Path == envDir:
		return quote(w.r.ProgramDir(above(key), v.String()))
	case k.Path == schemaPath:
		if path, ok := v.Interface().(string); ok {
			return quote(absolute(w.r.Dir(key), path))
		}
	}
	return inline(v)
}

func (w *walker) entries(key string, elem *Key, v reflect.Value, depth int) {
	for i := range v.Len() {
		from := len(w.out)
		w.mapping(join(key, strconv.Itoa(i)), elem.Keys, v.Index(i), depth)
		if from < len(w.out) {
			w.out[from].item = true
		}
	}
}

func (w *walker) params(key string, k *Key, v reflect.Value, depth int) {
	keys := k.variant(kindOf(v))
	if len(keys) == 0 {
		w.leaf(key, k, "{}", depth)
		return
	}
	w.head(key, k, depth)
	w.mapping(key, keys, v.Elem().Elem(), depth+1)
}

// kindOf is the name of the kind that params are of, "" for none.
func kindOf(v reflect.Value) string {
	if v.IsNil() {
		return ""
	}
	for _, k := range loss.Kinds() {
		if reflect.TypeOf(k.New()) == v.Elem().Type() {
			return k.Name
		}
	}
	for _, k := range grader.Kinds() {
		if reflect.TypeOf(k.New()) == v.Elem().Type() {
			return k.Name
		}
	}
	return ""
}

func (w *walker) asserts(key string, k *Key, all []Expectation, depth int) {
	if len(all) == 0 {
		w.leaf(key, k, "{}", depth)
		return
	}
	w.head(key, k, depth)
	for _, e := range all {
		full := join(key, e.Key)
		w.out = append(w.out, line{key: full, name: e.Key, depth: depth + 1, k: expectation,
			text: quote(e.Op + " " + numberText(e.Value)), origin: w.r.origins[full]})
	}
}

func (w *walker) head(key string, k *Key, depth int) {
	w.out = append(w.out, line{key: key, name: k.Name, depth: depth, head: true, k: k})
}

func (w *walker) leaf(key string, k *Key, text string, depth int) {
	w.out = append(w.out, line{key: key, name: k.Name, depth: depth, text: text, origin: w.r.originOf(key), k: k})
}

// originOf is the origin of the nearest key above where a value came with its section.
func (t *trace) originOf(key string) origin {
	for at := key; at != ""; at = above(at) {
		if o, ok := t.origins[at]; ok {
			return o
		}
	}
	return origin{label: defaults.label}
}
