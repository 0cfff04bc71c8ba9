package recipe

import "trainer/loss"

// merge lays over on top of base: mappings merge, everything else replaces. Where over changes a type, what below it
// belonged to the old type does not carry over; where that type is the loss's, the keys of the old loop do not either.
func merge(base, over *node) *node {
	if base == nil {
		return over
	}
	if was, is := lossType(base), lossType(over); is != "" && LoopOf(is) != "" && loopOf(is, base, over) != loopOf(was, base) {
		base = leaveLoop(base, root, loopOf(was, base), loopOf(is, base, over), over.src.layer)
	}
	return mergeAt(root, base, over)
}

func lossType(n *node) string { return n.get("loss").get("type").word() }

func mergeAt(k *Key, base, over *node) *node {
	if base == nil || base.shape != mapping || over.shape != mapping || !mergeable(k) {
		return over
	}
	if typ := over.get("type").word(); typ != "" {
		base = changeType(k, base, typ, over.src.layer)
	}
	out := *over
	out.pairs = append([]pair(nil), base.pairs...)
	index := make(map[string]int, len(base.pairs))
	for i, p := range base.pairs {
		index[p.name] = i
	}
	for _, p := range over.pairs {
		if i, ok := index[p.name]; ok {
			p.value = mergeAt(keyUnder(k, p.name), base.pairs[i].value, p.value)
			out.pairs[i] = p
		} else {
			out.pairs = append(out.pairs, p)
		}
	}
	return &out
}

// mergeable: a mapping that is one value among other shapes (a source, a column) replaces as a whole.
func mergeable(k *Key) bool { return k == nil || k.Kind != Sources && k.Kind != Column }

// keyUnder is the key of a name in a mapping at k; nil where the schema has none.
func keyUnder(k *Key, name string) *Key {
	if k == nil {
		return nil
	}
	if k.Kind == DictOf || k.Kind == ListOf || k.Kind == Sources {
		return k.Elem
	}
	return k.child(name)
}

// changeType drops from a mapping, if it had another type, the params and the keys that the new type does not know.
// What stands in layers from layer up stays: the new type's own layer is answerable for it.
func changeType(k *Key, n *node, typ string, layer int) *node {
	was := n.get("type").word()
	if was == typ || k == nil || k.child("type") == nil {
		return n
	}
	out := *n
	out.pairs = nil
	for _, p := range n.pairs {
		foreign := p.name == "params" && was != "" || !known(k, typ, p.name)
		if foreign {
			if p.value = upper(p.value, layer); p.value == nil {
				continue
			}
		}
		out.pairs = append(out.pairs, p)
	}
	return &out
}

// known: a name that no type knows is a fault, not something to drop in silence.
func known(k *Key, typ, name string) bool {
	if k.Path == "loss" && name == "reduction" {
		return LoopOf(typ) == "" || reductionOf(typ) != ""
	}
	if k.knows(typ, name) {
		return true
	}
	if k.child(name) != nil {
		return false
	}
	for _, v := range k.Variants {
		if find(v.Keys, name) != nil {
			return false
		}
	}
	return true
}

// leaveLoop drops the keys that have no effect in the loop is, or were of the samples that the loop was trains on, but for what
// stands in layers from layer up.
func leaveLoop(n *node, k *Key, was, is loss.Loop, layer int) *node {
	if n.shape != mapping || k == nil || k.Kind != Mapping {
		return n
	}
	out := *n
	out.pairs = nil
	for _, p := range n.pairs {
		c := k.child(p.name)
		if c != nil && (!c.In(is) || ofSamples[c.Path] && !ofRows(was) && ofRows(is)) {
			p.value = upper(p.value, layer)
		} else {
			p.value = leaveLoop(p.value, c, was, is, layer)
		}
		if p.value != nil {
			out.pairs = append(out.pairs, p)
		}
	}
	return &out
}

// upper is what of n stands in layers from layer up; nil when nothing does.
func upper(n *node, layer int) *node {
	if n.src.layer >= layer {
		return n
	}
	out := *n
	out.pairs = nil
	for _, p := range n.pairs {
		if p.value = upper(p.value, layer); p.value != nil {
			out.pairs = append(out.pairs, p)
		}
	}
	if len(out.pairs) == 0 {
		return nil
	}
	return &out
}
