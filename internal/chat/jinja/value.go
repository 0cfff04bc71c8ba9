package jinja

import (
	"math/big"
	"unicode/utf8"
)

// Value is a value of Python. Its dynamic type is one of nil (None), bool, int64, *big.Int (integers beyond int64),
// float64, string, *List and *Dict, which Decode makes, and markup, *tuple, *view, *rangeValue, *generator, *undefined,
// *namespace, *function, *macro and *loopState, which only templates make.
type Value = any

// List is a Python list. Once it is given to a render nothing may change it.
type List struct{ Items []Value }

// markup is text marked as safe by |safe or |escape: + escapes its other side.
type markup string

// tuple is a Python tuple; names are its fields, nil for none (groupby has them).
type tuple struct {
	items []Value
	names []string
}

// view is what keys, values and items of a dict return.
type view struct {
	dict *Dict
	part string // keys, values or items
}

type rangeValue struct{ start, stop, step int64 }

// generator is a lazy sequence that can be read once.
type generator struct {
	name  string // Python's name of the type
	next  func() (Value, bool)
	depth int // lazy filters below this one
}

// namespace is the only value that a template can change: {% set ns.x = ... %}.
type namespace struct{ attrs *Dict }

// callable is a function that the engine provides.
type callable struct {
	name string
	call func(x *exec, a *args) Value
}

// undefined is what a name, key or attribute without a value evaluates to. It prints as nothing and is false; almost
// every other use is an error, composed only then, as most undefined values are just tested.
type undefined struct {
	what  undefinedKind
	name  string // of the variable, attribute or key
	owner string // Python's type of what lacks it
}

type undefinedKind uint8

const (
	isUndefined undefinedKind = iota // a variable
	noAttribute                      // owner has no attribute
	noElement                        // owner has no element
	notProvided                      // a parameter
	isUnsafe                         // an attribute that the sandbox hides
	noSuchValue                      // name says what
)

func (u *undefined) fail() {
	switch u.what {
	case noAttribute:
		fail("UndefinedError", "'%s object' has no attribute '%s'", u.owner, u.name)
	case noElement:
		fail("UndefinedError", "'%s object' has no element %s", u.owner, u.name)
	case notProvided:
		fail("UndefinedError", "the parameter '%s' is not provided", u.name)
	case isUnsafe:
		fail("SecurityError", "the attribute '%s' of a '%s object' is not for templates", u.name, u.owner)
	case noSuchValue:
		fail("UndefinedError", "%s", u.name)
	}
	fail("UndefinedError", "'%s' is undefined", u.name)
}

// mustBeDefined fails for an undefined value.
func mustBeDefined(v Value) {
	if u, ok := v.(*undefined); ok {
		u.fail()
	}
}

type absent struct{ why string }

var (
	// missing is a variable without a value.
	missing = &absent{"variable"}
	// unset is an optional parameter without an argument.
	unset = &absent{"argument"}
)

// typeName is type(v).__name__ of Python.
func typeName(v Value) string {
	switch t := v.(type) {
	case nil:
		return "NoneType"
	case bool:
		return "bool"
	case int64, *big.Int:
		return "int"
	case float64:
		return "float"
	case string:
		return "str"
	case markup:
		return "Markup"
	case *List:
		return "list"
	case *tuple:
		return "tuple"
	case *Dict:
		return "dict"
	case *view:
		return "dict_" + t.part
	case *rangeValue:
		return "range"
	case *generator:
		return t.name
	case *undefined:
		return "Undefined"
	case *namespace:
		return "Namespace"
	case *macro:
		return "Macro"
	case *loopState:
		return "LoopContext"
	}
	return "function"
}

func truth(v Value) bool {
	switch t := v.(type) {
	case nil, *undefined:
		return false
	case bool:
		return t
	case int64:
		return t != 0
	case float64:
		return t != 0
	case string:
		return t != ""
	case markup:
		return t != ""
	}
	if n, ok := length(v); ok {
		return n != 0
	}
	return true
}

// length is len(v); ok is false where v has none.
func length(v Value) (n int, ok bool) {
	switch t := v.(type) {
	case string:
		return utf8.RuneCountInString(t), true
	case markup:
		return utf8.RuneCountInString(string(t)), true
	case *List:
		return len(t.Items), true
	case *tuple:
		return len(t.items), true
	case *Dict:
		return t.Len(), true
	case *view:
		return t.dict.Len(), true
	case *rangeValue:
		return t.len(), true
	case *undefined:
		return 0, true
	case *loopState:
		return t.length(), true
	}
	return 0, false
}

func (r *rangeValue) len() int {
	switch {
	case r.step > 0 && r.start < r.stop:
		return int((r.stop-r.start-1)/r.step) + 1
	case r.step < 0 && r.start > r.stop:
		return int((r.start-r.stop-1)/-r.step) + 1
	}
	return 0
}

// text is the characters of a str or Markup.
func text(v Value) (s string, ok bool) {
	switch t := v.(type) {
	case string:
		return t, true
	case markup:
		return string(t), true
	}
	return "", false
}

// like gives s the type of model: what is made of Markup is Markup.
func like(model Value, s string) Value {
	if _, ok := model.(markup); ok {
		return markup(s)
	}
	return s
}

// isSequence tells what has a length and an index.
func isSequence(v Value) bool {
	switch v.(type) {
	case *List, *tuple, *Dict, *rangeValue, *undefined, string, markup:
		return true
	}
	return false
}

func isIterable(v Value) bool {
	switch v.(type) {
	case *view, *generator:
		return true
	}
	return isSequence(v)
}

// isCallable is callable(v): an Undefined has a __call__, which fails.
func isCallable(v Value) bool {
	switch v.(type) {
	case *callable, *macro, *undefined, *loopState:
		return true
	}
	return false
}
