// Package jinja renders chat templates. It is the Jinja language over Python's values, as Hugging Face transformers
// compiles it: jinja2's immutable sandbox with trim_blocks, lstrip_blocks, loop controls and {% generation %}. A template
// that renders in Python renders here to the same bytes, and one that raises there is an error here: text that is silently
// another is worse for training than no text. What the language has and chat templates do not need (include, extends,
// recursive loops, wordwrap, ...) is refused by name.
//
// The output comes with spans, so that masks are made from what the template did and never from searching the text: the
// bytes written by each {% generation %} block, and the bytes written while a loop stood at a given item.
//
// A template is a stranger's program. It sees the variables it is given and nothing else: no file, no environment, no
// clock but the one passed in. Its steps, depth, memory and output are bounded by counting, never by a clock, so that a
// limit trips at the same place on every machine.
//
// Inside the package an error is a panic of *Error, which Parse and Render turn into what they return, as text/template
// does; no panic leaves the package.
package jinja
