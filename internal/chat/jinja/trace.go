package jinja

// tracer keeps which traced object the loops stand at, and cuts the text where that changes.
type tracer struct {
	objects []*Dict
	index   map[*Dict]int // of objects, once it is needed
	near    int           // the one that was found last
	stack   []int         // the objects of the loops around, the innermost last
	from    int           // where the text of the innermost one began
	spans   []TracedSpan
}

// find is the index of d. Most loops go from one object to the next.
func (t *tracer) find(d *Dict) (i int, ok bool) {
	if len(t.objects) == 0 {
		return 0, false
	}
	if t.index == nil {
		for i := max(0, t.near-1); i <= t.near+1 && i < len(t.objects); i++ {
			if t.objects[i] == d {
				t.near = i
				return i, true
			}
		}
		t.index = make(map[*Dict]int, len(t.objects))
		for i, d := range t.objects {
			t.index[d] = i
		}
	}
	i, ok = t.index[d]
	return i, ok
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
	i, ok := x.trace.find(d)
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
