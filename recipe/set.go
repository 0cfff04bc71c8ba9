package recipe

import (
	"fmt"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"trainer/internal/diag"
)

// setting is one --set.
type setting struct {
	key  string
	path []string
	src  *source
}

func (s *setting) pos() diag.Pos { return diag.Pos{File: "--set " + s.key} }

// apply lays the --set values over n, in order: the last of one key wins.
func (l *loader) apply(n *node, set []string) *node {
	l.layers++
	for _, arg := range set {
		key, text, ok := strings.Cut(arg, "=")
		s := &setting{key: key, path: strings.Split(key, "."), src: &source{dir: ".", layer: l.layers, label: "--set"}}
		switch {
		case !ok:
			l.problems.Add(diag.Pos{File: "--set"}, "", "%q has no value; write --set %s=VALUE", mask(key), mask(key))
			continue
		case key == "":
			l.problems.Add(diag.Pos{File: "--set"}, "", "%q has no key; write --set KEY=VALUE", mask(arg))
			continue
		case secretName(key):
			l.problems.Add(s.pos(), key, "a command line is seen by others; secrets come from the environment")
			continue
		case key == "extends" || strings.HasPrefix(key, "extends."):
			l.problems.Add(s.pos(), key, "parents are named in the file")
			continue
		}
		k := l.keyOf(s)
		if k == nil {
			continue
		}
		v := s.value(k, text, &l.problems)
		if v == nil {
			continue
		}
		if s.path[0] == "loss" {
			n = leaveOldLoop(n, s, v)
		}
		if out := l.put(n, root, s, 0, v); out != nil {
			n = out
		}
	}
	return n
}

func mask(text string) string {
	if secret(text) != "" || len(text) > 60 {
		return "…"
	}
	return text
}

// leaveOldLoop drops the keys of the loop that a new loss type leaves.
func leaveOldLoop(n *node, s *setting, v *node) *node {
	is := v.get("type").word()
	if s.key == "loss.type" {
		is = v.word()
	}
	if is == "" || LoopOf(is) == "" || loopOf(is, n) == loopOf(lossType(n), n) {
		return n
	}
	return leaveLoop(n, root, loopOf(lossType(n), n), loopOf(is, n), s.src.layer)
}

// keyOf walks the schema along the path; a step that it has not is a problem, and nil.
func (l *loader) keyOf(s *setting) *Key {
	k := root
	for i, name := range s.path {
		at := strings.Join(s.path[:i+1], ".")
		switch k.Kind {
		case Mapping, Params, Column:
			c := k.child(name)
			if c == nil {
				c = variantKey(k, name)
			}
			if c == nil && k.Kind != Params {
				l.problems.Add(s.pos(), at, "%s", unknown(k, k.Keys, name, nil))
				return nil
			}
			if c == nil {
				return anything
			}
			k = c
		case Sources:
			if isIndex(name) {
				k = k.Elem
			} else if c := k.Elem.child(name); c != nil {
				k = c
			} else {
				l.problems.Add(s.pos(), at, "%s", unknown(k.Elem, k.Elem.Keys, name, nil))
				return nil
			}
		case ListOf:
			if !isIndex(name) {
				l.problems.Add(s.pos(), at, "%s is a list; an entry is %s.0", strings.Join(s.path[:i], "."), strings.Join(s.path[:i], "."))
				return nil
			}
			k = k.Elem
		case DictOf:
			k = k.Elem
		case Asserts:
			return expectation
		case Anything:
			return anything
		default:
			l.problems.Add(s.pos(), at, "%s is %s; it has no keys", strings.Join(s.path[:i], "."), article(k.Kind))
			return nil
		}
	}
	return k
}

var (
	anything    = &Key{Kind: Anything}
	expectation = &Key{Kind: Text}
)

func isIndex(name string) bool {
	_, err := strconv.ParseUint(name, 10, 31)
	return err == nil
}

// variantKey finds a key that some type adds.
func variantKey(k *Key, name string) *Key {
	for _, v := range k.Variants {
		if c := find(v.Keys, name); c != nil {
			return c
		}
	}
	return nil
}

// value reads the text as the key's kind asks: where text is due it is taken as it stands, but for null, an empty value
// and quotes; anything else is YAML.
func (s *setting) value(k *Key, text string, problems *diag.List) *node {
	place := func(int, int) diag.Pos { return s.pos() }
	p := &parser{src: s.src, place: place, problems: problems, open: map[*yaml.Node]bool{}}
	plain := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: text}
	first := strings.TrimSpace(text)
	structured := first != "" && strings.Contains(`[{"'&*!|>`, first[:1])
	if isTextual(k) && !structured {
		return p.node(plain, s.key, 0)
	}
	if _, bad := checkText([]byte(text), ""); bad != nil {
		problems.Add(s.pos(), s.key, "%s", bad.Msg)
		return nil
	}
	doc, bad := parseYAML([]byte(text), place)
	switch {
	case bad != nil && k.Kind == Text:
		return p.node(plain, s.key, 0)
	case bad != nil:
		problems.Add(s.pos(), s.key, "%s", bad.Msg)
		return nil
	case doc == nil:
		plain.Value = ""
		return p.node(plain, s.key, 0)
	case k.Kind == Text && doc.Kind != yaml.ScalarNode:
		return p.node(plain, s.key, 0)
	}
	return p.node(doc, s.key, 0)
}

func isTextual(k *Key) bool { return k.Kind == Text || k.Kind == Sources || k.Kind == Column }

// put returns n with v at the rest of the path. Mappings that are not there are made; entries of lists are not.
func (l *loader) put(n *node, k *Key, s *setting, i int, v *node) *node {
	if i == len(s.path) {
		return mergeAt(k, n, v)
	}
	name, at := s.path[i], strings.Join(s.path[:i+1], ".")
	if k != nil && k.Kind == Asserts {
		name, i = strings.Join(s.path[i:], "."), len(s.path)-1
	}
	if k != nil && k.Kind == Sources && n != nil && n.shape == scalar && !n.null {
		n = oneSource(n, isIndex(name))
	}
	if k != nil && k.Kind == Sources && n != nil && n.shape == mapping && name == "0" {
		n = &node{shape: list, items: []*node{n}, pos: n.pos, src: n.src}
	}
	if isIndex(name) && k != nil && (k.Kind == ListOf || k.Kind == Sources) {
		return l.putItem(n, k, s, i, v)
	}
	if n == nil || n.shape == scalar {
		n = &node{shape: mapping, pos: s.pos(), src: s.src}
	}
	if n.shape != mapping {
		l.problems.Add(s.pos(), at, "%s is a list there; an entry is %s.0", strings.Join(s.path[:i], "."), strings.Join(s.path[:i], "."))
		return nil
	}
	if name == "type" && i == len(s.path)-1 && v.word() != "" {
		n = changeType(k, n, v.word(), s.src.layer)
	}
	c := keyUnder(k, name)
	if k != nil && k.Kind == Sources {
		c = k.Elem.child(name)
	}
	value := l.put(n.get(name), c, s, i+1, v)
	if value == nil {
		return nil
	}
	return n.with(pair{name, s.pos(), value})
}

// oneSource is a path alone, written as the source that it stands for.
func oneSource(path *node, inList bool) *node {
	m := &node{shape: mapping, pairs: []pair{{"path", path.pos, path}}, pos: path.pos, src: path.src}
	if !inList {
		return m
	}
	return &node{shape: list, items: []*node{m}, pos: path.pos, src: path.src}
}

func (l *loader) putItem(n *node, k *Key, s *setting, i int, v *node) *node {
	index, _ := strconv.Atoi(s.path[i])
	have := 0
	if n != nil && n.shape == list {
		have = len(n.items)
	}
	if index >= have {
		l.problems.Add(s.pos(), strings.Join(s.path[:i+1], "."), "there is no entry %d; the list has %s, counted from 0", index, count(have, "entry", "entries"))
		return nil
	}
	out := *n
	out.items = append([]*node(nil), n.items...)
	item := out.items[index]
	if k.Kind == Sources && item.shape == scalar && i+1 < len(s.path) {
		item = oneSource(item, false)
	}
	if out.items[index] = l.put(item, k.Elem, s, i+1, v); out.items[index] == nil {
		return nil
	}
	return &out
}

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
