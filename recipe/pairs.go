package recipe

import (
	"gopkg.in/yaml.v3"

	"trainer/internal/diag"
)

// pairs converts the keys and values of a mapping. What << brings in comes last and never replaces an explicit key,
// wherever the << stands.
func (p *parser) pairs(y *yaml.Node, key string, depth int) []pair {
	var out, merged []pair
	seen := map[string]diag.Pos{}
	var merge *yaml.Node
	for i := 0; i+1 < len(y.Content) && !p.stopped; i += 2 {
		k, v := y.Content[i], y.Content[i+1]
		at := p.place(k.Line, k.Column)
		if k.Kind == yaml.ScalarNode && k.Tag == "!!merge" {
			if merge != nil {
				p.problems.Add(at, key, "a second <<; the first is on line %d: write one, <<: [*a, *b], where the first wins", merge.Line)
				continue
			}
			merge, merged = k, p.merged(v, key, depth)
			continue
		}
		name, ok := p.name(k, at, key)
		if !ok {
			continue
		}
		full := join(key, name)
		if first, twice := seen[name]; twice {
			p.problems.Add(at, full, "given twice; the first is on line %d", first.Line)
			continue
		}
		seen[name] = at
		n := p.node(v, full, depth+1)
		if n == nil {
			continue
		}
		if n.null && n.text == "" {
			n.pos = at // nothing stands there to point at
		}
		out = append(out, pair{name, at, n})
	}
	for _, m := range merged {
		if _, explicit := seen[m.name]; !explicit {
			out = append(out, m)
		}
	}
	return out
}

// name is the text of a key, through an alias.
func (p *parser) name(k *yaml.Node, at diag.Pos, key string) (string, bool) {
	if k.Kind == yaml.AliasNode {
		k = k.Alias
	}
	if k.Kind != yaml.ScalarNode {
		p.problems.Add(at, key, "a key is a word, not a list or a mapping")
		return "", false
	}
	if name := secret(k.Value); name != "" {
		p.problems.Add(at, key, "a key looks like %s; secrets come from the environment, never from a recipe", name)
		return "", false
	}
	return k.Value, p.tagged(k, at, key)
}

// merged is what << brings in: a mapping, or a list of them of which the first wins.
func (p *parser) merged(v *yaml.Node, key string, depth int) []pair {
	n := p.node(v, key, depth+1)
	if n == nil {
		return nil
	}
	sources := []*node{n}
	if n.shape == list {
		sources = n.items
	}
	var out []pair
	seen := map[string]bool{}
	for _, s := range sources {
		if s.shape != mapping {
			p.problems.Add(s.pos, key, "<< takes a mapping or a list of mappings, not %s", s.show())
			continue
		}
		for _, m := range s.pairs {
			if !seen[m.name] {
				seen[m.name] = true
				out = append(out, m)
			}
		}
	}
	return out
}
