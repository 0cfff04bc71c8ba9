package jinja

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestPlaceOfAnError(t *testing.T) {
	for _, c := range []struct{ name, source, want string }{
		{"a variable", "a\n  {{ x.y }}", "2:8: 'x' is undefined (UndefinedError)"},
		{"an attribute", "{{ d.nope.y }}", "1:11: 'dict object' has no attribute 'nope' (UndefinedError)"},
		{"an operator", "é {{ 'a' + 1 }}", "1:10: unsupported operand types for +: 'str' and 'int' (TypeError)"},
		{"a filter", "{{ d | upper(1) }}", "1:8: upper() takes at most 0 arguments, not 1 (TypeError)"},
		{"an unknown filter", "{{ d | nosuch }}", "1:8: there is no filter named 'nosuch' (TemplateAssertionError)"},
		{"a filter that is not built", "{{ d | wordwrap }}", "1:8: the filter 'wordwrap' is not supported in a chat template (Unsupported)"},
		{"a method", "{{ d.get() }}", "1:6: get() lacks the argument 'key' (TypeError)"},
		{"a macro", "{% macro m(a) %}{% endmacro %}\n{{ m(b=1) }}", "2:4: macro 'm' takes no argument named 'b' (TypeError)"},
		{"within a macro", "{% macro m(a) %}{{ 1 + a }}{% endmacro %}\n{{ m(none) }}", "1:22: unsupported operand types for +: 'int' and 'NoneType' (TypeError)"},
		{"what a template raises", "{{ raise_exception('no ' ~ 1) }}", "1:4: no 1 (TemplateError)"},
		{"a tag", "{% if x %}", "1:11: the template ends where {% elif %} or {% else %} or {% endif %} is due (TemplateSyntaxError)"},
		{"a character", "{{ a ? b }}", "1:6: unexpected character '?' (TemplateSyntaxError)"},
		{"a bracket", "{{ (a] }}", "1:6: unexpected ']', ')' is due (TemplateSyntaxError)"},
		{"Windows lines", "a\r\n\r\n{{ x() }}", "3:4: 'x' is undefined (UndefinedError)"},
		{"a loop over a number", "{% for a in 1 %}{% endfor %}", "1:4: 'int' object is not iterable (TypeError)"},
		{"unpacking", "{% set a, b = [1] %}", "1:4: 1 values to unpack, 2 are due (ValueError)"},
		{"a method that changes", "{{ l.append(1) }}", "1:6: the attribute 'append' of a 'list object' is not for templates (SecurityError)"},
		{"the time without a clock", "{{ strftime_now('%Y') }}", "1:4: the template asks for the time, and has no clock (LimitError)"},
		{"a time that is unknown", "{{ strftime_now('%Q') }}", "1:4: the template asks for the time, and has no clock (LimitError)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			tpl, err := Parse(c.source)
			if err == nil {
				_, err = tpl.Render(NewDict("d", NewDict("a", int64(1)), "l", &List{}), Options{})
			}
			if fmt.Sprint(err) != c.want {
				t.Errorf("%q:\n got  %v\n want %s", c.source, err, c.want)
			}
		})
	}
}

func TestStrftime(t *testing.T) {
	at := time.Date(2025, time.March, 4, 5, 6, 7, 89000, time.UTC)
	want := "2025-03-04 Mar March Tue Tuesday 05:06:07 AM 063 4/3/25 000089 2 2 %|"
	if got := strftime(at, "%Y-%m-%d %b %B %a %A %H:%M:%S %p %j %-d/%-m/%y %f %w %u %%|%Z"); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// spanned renders and shows the spans as text.
func spanned(t *testing.T, source string, vars *Dict, traced ...*Dict) (text string, generation, items []string) {
	t.Helper()
	tpl, err := Parse(source)
	if err != nil {
		t.Fatal(err)
	}
	out, err := tpl.Render(vars, Options{Traced: traced})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range out.Generation {
		generation = append(generation, out.Text[s.Start:s.End])
	}
	for _, s := range out.Traced {
		items = append(items, fmt.Sprintf("%d%s", s.Index, out.Text[s.Start:s.End]))
	}
	return out.Text, generation, items
}

func TestGenerationSpans(t *testing.T) {
	for _, c := range []struct {
		name, source string
		want         []string
	}{
		{"a block", "a{% generation %}b{% endgeneration %}c", []string{"b"}},
		{"several", "{% for i in 'xyz' %}{{ loop.index }}{% generation %}{{ i }}{% endgeneration %}{% endfor %}", []string{"x", "y", "z"}},
		{"an empty one", "a{% generation %}{% endgeneration %}", []string{""}},
		{"in a macro that is printed", "{% macro m(x) %}<{% generation %}{{ x }}{% endgeneration %}>{% endmacro %}a{{ m('b') }}{{ m('c') }}", []string{"b", "c"}},
		{"in a call", "{% macro m() %}<{{ caller() }}>{% endmacro %}a{% call m() %}{% generation %}b{% endgeneration %}{% endcall %}", []string{"b"}},
		{"in a macro whose text is changed", "{% macro m() %}{% generation %}b{% endgeneration %}{% endmacro %}a{{ m() | upper }}", nil},
		{"in a variable", "{% set x %}{% generation %}b{% endgeneration %}{% endset %}a{{ x }}", nil},
		{"with a macro within", "{% macro m() %}{{ 'm' }}{% endmacro %}{% generation %}a{{ m() }}b{% endgeneration %}", []string{"amb"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, got, _ := spanned(t, c.source, nil); !slices.Equal(got, c.want) {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

func TestTracedSpans(t *testing.T) {
	a, b, c := NewDict("c", "A"), NewDict("c", "B"), NewDict("c", "C")
	vars := NewDict("ms", &List{[]Value{a, b, c}}, "other", &List{[]Value{NewDict("c", "A")}})
	for _, test := range []struct {
		name, source string
		want         []string
	}{
		{"a loop", "x{% for m in ms %}<{{ m.c }}>{% endfor %}y", []string{"0<A>", "1<B>", "2<C>"}},
		{"a part of them", "{% for m in ms[1:] %}{{ m.c }}{% endfor %}", []string{"1B", "2C"}},
		{"some of them", "{% for m in ms if m.c != 'B' %}{{ m.c }}{% endfor %}", []string{"0A", "2C"}},
		{"with break and continue", "{% for m in ms %}{{ m.c }}{% if loop.first %}{% continue %}{% endif %}-{% break %}{% endfor %}z", []string{"0A", "1B-"}},
		{"backwards through a filter", "{% for m in ms|reverse %}{{ m.c }}{% endfor %}", []string{"2C", "1B", "0A"}},
		{"one loop within another", "{% for m in ms %}<{% for n in ms[1:2] %}{{ n.c }}{% endfor %}>{% endfor %}", []string{"0<", "1B", "0>", "1<B>", "2<", "1B", "2>"}},
		{"in a macro", "{% macro all(l) %}{% for m in l %}{{ m.c }}{% endfor %}{% endmacro %}x{{ all(ms) }}", []string{"0A", "1B", "2C"}},
		{"a macro for each", "{% macro one(m) %}<{{ m.c }}>{% endmacro %}{% for m in ms %}{{ one(m) }}{% endfor %}", []string{"0<A>", "1<B>", "2<C>"}},
		{"within a variable", "{% set x %}{% for m in ms %}{{ m.c }}{% endfor %}{% endset %}{{ x }}", nil},
		{"a variable for each", "{% for m in ms %}{% set x %}{% for n in ms %}{{ n.c }}{% endfor %}{% endset %}{{ x }}{% endfor %}", []string{"0ABC", "1ABC", "2ABC"}},
		{"an equal object", "{% for m in other %}{{ m.c }}{% endfor %}", nil},
		{"nothing written", "{% for m in ms %}{% endfor %}x", nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			if text, _, got := spanned(t, test.source, vars, a, b, c); !slices.Equal(got, test.want) {
				t.Errorf("%s: %q, want %q", text, got, test.want)
			}
		})
	}
}

func TestReads(t *testing.T) {
	tpl, err := Parse("{{ a }}{% set b = 1 %}{{ b }}{% for c in d %}{{ c }}{% endfor %}{% macro m(e) %}{{ e }}{{ f }}{% endmacro %}")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"a": true, "b": false, "c": false, "d": true, "e": false, "f": true, "g": false} {
		if tpl.Reads(name) != want {
			t.Errorf("reads %s: %t", name, !want)
		}
	}
}

func TestDecode(t *testing.T) {
	for source, want := range map[string]string{
		`{"b": 1, "a": [1.0, 1e400, -0.0, 12345678901234567890, null, true, "\ud83d\ude00\\ud800"], "b": 2}`: `{'b': 2, 'a': [1.0, inf, -0.0, 12345678901234567890, None, True, '😀\\ud800']}`,
		`[]`: "[]", `"\u00e9"`: "é", ` 1 `: "1",
	} {
		v, err := Decode([]byte(source))
		if err != nil {
			t.Errorf("%s: %v", source, err)
			continue
		}
		if got, err := renderText("{{ v }}", NewDict("v", v)); got != want {
			t.Errorf("%s: %s %v, want %s", source, got, err, want)
		}
	}
	for source, want := range map[string]string{
		`"\ud800"`: "half a character", `"\udc00\ud800"`: "half a character", `"\ud800\ud800"`: "half a character", "\"\xff\"": "not UTF-8",
		`1 2`: "something follows", `NaN`: "invalid character", `[1`: "EOF", ``: "EOF", `{"a"}`: "invalid character",
		strings.Repeat("[", 1000): "nested more than", strings.Repeat("9", 5000): "digits",
	} {
		if _, err := Decode([]byte(source)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40s: %v, want %s", source, err, want)
		}
	}
}

// A render leaves nothing behind: neither in the template nor in the variables.
func TestRendersAreApart(t *testing.T) {
	tpl, err := Parse("{% set ns = namespace(n=0) %}{% for m in ms %}{% set ns.n = ns.n + m %}{% endfor %}{{ ns.n }}{{ x }}{% set x = 2 %}")
	if err != nil {
		t.Fatal(err)
	}
	vars := NewDict("ms", &List{[]Value{int64(1), int64(2)}}, "x", int64(1))
	done := make(chan string)
	for range 8 {
		go func() {
			out, err := tpl.Render(vars, Options{})
			done <- fmt.Sprint(out.Text, err)
		}()
	}
	for range 8 {
		if got := <-done; got != "31<nil>" {
			t.Errorf("got %s", got)
		}
	}
}

func FuzzRender(f *testing.F) {
	for _, source := range hostile() {
		if len(source) < 2000 {
			f.Add(source, `{"a": [1, "x"]}`)
		}
	}
	f.Add("{% for m in messages %}{{ m.role ~ ': ' ~ m['content'] | trim }}{% endfor %}", `{"messages": [{"role": "user", "content": "hi"}]}`)
	f.Add("{{ a | tojson(indent=2) }}{{ '%5s' % a }}{{ '{:>5}'.format(a) }}{{ a[1:] }}", `{"a": {"b": [null, 1.5, "é"]}}`)
	limits := Limits{Steps: 20000, Memory: 1 << 20, Output: 1 << 20}
	f.Fuzz(func(t *testing.T, source, vars string) {
		tpl, err := Parse(source)
		if err != nil {
			wantPlace(t, err, source)
			return
		}
		v, _ := Decode([]byte(vars))
		d, _ := v.(*Dict)
		out, err := tpl.Render(d, Options{Limits: limits, Now: noon})
		if err != nil {
			wantPlace(t, err, source)
			return
		}
		if again, err := tpl.Render(d, Options{Limits: limits, Now: noon}); err != nil || again.Text != out.Text {
			t.Errorf("%q renders %q, then %q, %v", source, out.Text, again.Text, err)
		}
	})
}

func wantPlace(t *testing.T, err error, source string) {
	t.Helper()
	e, ok := err.(*Error)
	if !ok || e.Kind == "" || e.Msg == "" || e.Line > 1+strings.Count(source, "\n")+strings.Count(source, "\r") {
		t.Errorf("%q: %#v", source, err)
	}
}
