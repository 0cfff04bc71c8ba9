package jinja

import (
	"slices"
	"time"
)

// Template is a parsed template. It is read-only, and any number of goroutines may render it at once.
type Template struct {
	src   string
	body  []stmt
	fn    *function
	frame frame
	given []string // the names that it reads from its caller
	lib   *library
}

// Parse compiles a template. Lines may end in \n, \r\n or \r. The error is an *Error.
func Parse(source string) (t *Template, err error) {
	src, at := "", -1
	defer func() { caught(&err, src, &at, recover()) }()
	src = normalize(source)
	lib := newLibrary()
	p := &parser{tokens: lex(src), lib: lib}
	body := p.body()
	b := &binder{given: map[string]int32{}}
	s := newScope(nil, true)
	s.analyze(body)
	b.body(s, body)
	return &Template{src: src, body: body, fn: s.fn, frame: b.frame(s), given: b.names, lib: lib}, nil
}

// Reads tells whether the template anywhere reads a variable of this name that its caller may give.
func (t *Template) Reads(name string) bool {
	return slices.Contains(t.given, name)
}

// Variables are the names that the template reads from its caller, functions among them.
func (t *Template) Variables() []string { return slices.Clone(t.given) }

// Options of a render.
type Options struct {
	Limits Limits
	// Now is what strftime_now tells; nil makes its use an error.
	Now func() time.Time
	// Traced are objects among the variables. While a loop stands at one of them, what is written is its.
	Traced []*Dict
}

// Span is a range of bytes of the text, Start <= End.
type Span struct{ Start, End int }

// TracedSpan is text that was written while a loop stood at Options.Traced[Index].
type TracedSpan struct {
	Index int
	Span
}

// Output is what a render wrote.
type Output struct {
	Text string
	// Generation are the {% generation %} blocks in the order in which they ended. A block whose text went through a
	// variable or a filter has none: where it went is not known.
	Generation []Span
	// Traced are in order and do not overlap: where a loop at one traced object contains a loop at another, the inner
	// object has what the inner loop writes. None is empty.
	Traced []TracedSpan
}

// Render runs the template with these variables. vars may be nil. The error is an *Error.
func (t *Template) Render(vars *Dict, o Options) (out *Output, err error) {
	x := newExec(t, o)
	defer func() { caught(&err, t.src, &x.at, recover()) }()
	if vars == nil {
		vars = &Dict{}
	}
	for i, name := range t.given {
		if v, ok := vars.Get(name); ok {
			x.given[i] = v
		} else if v, ok := t.lib.globals[name]; ok {
			x.given[i] = v
		} else {
			x.given[i] = missing
		}
	}
	e := x.newEnv(t.fn, nil)
	x.enter(e, &t.frame)
	x.run(t.body, e)
	return x.output(), nil
}
