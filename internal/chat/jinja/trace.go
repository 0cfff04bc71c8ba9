package jinja

// tracer keeps which traced object the loops stand at, and cuts the text where that changes.
type tracer struct {
	index map[*Dict]int
	stack []int // the objects of the loops around, the innermost last
	from  int   // where the text of the innermost one began
	spans []TracedSpan
}

func (t *tracer) of(objects []*Dict) {
	if len(objects) == 0 {
		return
	}
	t.index = make(map[*Dict]int, len(objects))
	for i, d := range objects {
		t.index[d] = i
	}
}

// cut ends a piece of text at byte at.
func (t *tracer) cut(at int) {
	if n := len(t.stack); n > 0 && at > t.from {
		i := t.stack[n-1]
		if m := len(t.spans); m > 0 && t.spans[m-1].Index == i && t.spans[m-1].End == t.from {
			t.spans[m-1].End = at
		} else {
			t.spans = append(t.spans, TracedSpan{i, Span{t.from, at}})
		}
	}
	t.from = at
}

// begin notes that a loop stands at item; it tells whether item is traced, and then end is due.
func (x *exec) begin(item Value) bool {
	d, ok := item.(*Dict)
	if !ok || !x.direct() {
		return false
	}
	i, ok := x.trace.index[d]
	if ok {
		x.trace.cut(len(x.out))
		x.trace.stack = append(x.trace.stack, i)
	}
	return ok
}

// end notes that the loop goes on from a traced item.
func (x *exec) end() {
	x.trace.cut(len(x.out))
	x.trace.stack = x.trace.stack[:len(x.trace.stack)-1]
}
