package jinja

import "strings"

// Most of what a template writes is a sum of texts. They are added in one piece, and where they are printed not even that.

func (n *sumExpr) eval(x *exec, e *env) Value {
	var room [8]string
	texts, other, ok := n.texts(x, e, room[:0])
	if !ok {
		return other
	}
	return x.joined(texts)
}

// print writes the sum.
func (n *sumExpr) print(x *exec, e *env) {
	var room [8]string
	texts, other, ok := n.texts(x, e, room[:0])
	if !ok {
		x.write(x.str(other))
		return
	}
	for _, s := range texts {
		x.write(s)
	}
}

// texts appends the terms to dst where all are str; where one is not, other is the sum.
func (n *sumExpr) texts(x *exec, e *env, dst []string) (texts []string, other Value, ok bool) {
	for i, term := range n.terms {
		v := term.eval(x, e)
		if i > 0 {
			x.at = n.ats[i-1]
		}
		s, ok := v.(string)
		if !ok {
			return nil, n.from(x, e, dst, i, v), false
		}
		dst = append(dst, s)
	}
	return dst, nil, true
}

// from is the sum where term i is v, no str, and those before it are texts.
func (n *sumExpr) from(x *exec, e *env, texts []string, i int, v Value) Value {
	if i > 0 {
		v = x.arith("+", x.joined(texts), v)
	}
	for i++; i < len(n.terms); i++ {
		next := n.terms[i].eval(x, e)
		x.at = n.ats[i-1]
		v = x.arith("+", v, next)
	}
	return v
}

// joined is the texts in one.
func (x *exec) joined(texts []string) string {
	if len(texts) == 1 {
		return texts[0]
	}
	size := 0
	for _, s := range texts {
		size += len(s)
	}
	x.charge(size)
	return strings.Join(texts, "")
}
