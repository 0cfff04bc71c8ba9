package jinja

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// hostile are templates that would run for long, take much memory or end the process if nothing stopped them.
func hostile() map[string]string {
	deep := func(open, inner, end string, n int) string {
		return strings.Repeat(open, n) + inner + strings.Repeat(end, n)
	}
	grow := func(start, step string) string {
		return `{% set ns = namespace(s=` + start + `, t=` + start + `) %}{% for i in range(99999) %}{% set ns.s = ` + step + ` %}{% endfor %}`
	}
	scan := func(text, use string) string {
		return `{% set s = ` + text + ` %}{% for i in range(99999) %}{% set x = ` + use + ` %}{% endfor %}`
	}
	return map[string]string{
		"a macro calls itself":           `{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}`,
		"within an expression":           `{% macro f() %}{{ "a" ~ f() }}{% endmacro %}{{ f() }}`,
		"two call each other":            `{% macro f() %}{{ g() }}{% endmacro %}{% macro g() %}{{ f() }}{% endmacro %}{{ f() }}`,
		"as a caller":                    `{% macro f() %}{% call f() %}{% endcall %}{{ caller() }}{% endmacro %}{% call f() %}x{% endcall %}`,
		"twice each":                     `{% macro f(n) %}{% if n > 0 %}{{ f(n-1) }}{{ f(n-1) }}{% endif %}{% endmacro %}{{ f(100) }}`,
		"as its own default":             `{% macro f(x=f()) %}{% endmacro %}{{ f() }}`,
		"within a filter":                `{% set ns = namespace() %}{% macro f() %}{{ [1]|map('string')|join(ns.f()) }}{% endmacro %}{% set ns.f = f %}{{ f() }}`,
		"a huge range":                   `{% for i in range(10**9) %}x{% endfor %}`,
		"loops within loops":             `{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}`,
		"loops that keep nothing":        `{% for a in range(99999) %}{% for b in range(99999) if b < 0 %}{% endfor %}{% endfor %}`,
		"text doubles":                   grow(`"ab"`, `ns.s + ns.s`),
		"text doubles by ~":              grow(`"ab"`, `ns.s ~ ns.s`),
		"text doubles by replace":        grow(`"aaaaaaaa"`, `ns.s|replace("a", ns.s)`),
		"text doubles by join":           grow(`"ab"`, `[ns.s, ns.s]|join(ns.s)`),
		"text doubles by format":         grow(`"ab"`, `"%s%s" % (ns.s, ns.s)`),
		"text doubles by braces":         grow(`"ab"`, `"{0}{0}".format(ns.s)`),
		"text doubles by escaping":       grow(`"<<"`, `ns.s|e|string|e`) + `{{ 1/0 }}`,
		"text doubles in a macro":        `{% set ns = namespace(s="ab") %}{% macro f() %}{{ ns.s }}{{ ns.s }}{% endmacro %}{% for i in range(99) %}{% set ns.s = f() %}{% endfor %}`,
		"text grows bit by bit":          grow(`"ab" * 9999`, `ns.s ~ "a"`),
		"a list doubles":                 grow(`[1]`, `ns.s + ns.s`),
		"a list doubles by sum":          grow(`[1]`, `[ns.s, ns.s]|sum(start=[])`),
		"a number squares":               grow(`9`, `ns.s * ns.s`),
		"a shared list is printed":       grow(`[1]`, `[ns.s, ns.s] if i < 99 else ns.s`) + `{{ ns.s }}`,
		"a shared list becomes JSON":     grow(`[1]`, `[ns.s, ns.s] if i < 99 else ns.s`) + `{{ ns.s|tojson }}`,
		"shared lists are compared":      grow(`[1]`, `[ns.s, ns.s] if i < 99 else ns.s`) + grow(`[1]`, `[ns.s, ns.s] if i < 99 else ns.s`) + `{{ ns.s == ns.s + [] }}{{ [[ns.s], 1] < [[ns.s + []], 1] }}{{ 1/0 }}`,
		"a shared tuple is a key":        grow(`(1,)`, `(ns.s, ns.s) if i < 99 else ns.s`) + `{{ {ns.s: 1} }}`,
		"a deep list is printed":         grow(`[]`, `[ns.s]`) + `{{ ns.s }}`,
		"a deep list becomes JSON":       grow(`[]`, `[ns.s]`) + `{{ ns.s|tojson }}`,
		"a deep list is compared":        grow(`[]`, `[ns.s]`) + `{% set a = ns.s %}` + grow(`[]`, `[ns.s]`) + `{{ a == ns.s }}`,
		"a deep tuple is a key":          grow(`()`, `(ns.s,)`) + `{{ {ns.s: 1} }}`,
		"a deep tuple is a subscript":    grow(`()`, `(ns.s,)`) + `{{ {}[ns.s] }}{{ 1/0 }}`,
		"a namespace within itself":      `{% set ns = namespace() %}{% set ns.x = ns %}{{ ns }}`,
		"filters on filters":             grow(`[1]`, `ns.s|map('string')`) + `{{ ns.s|list }}`,
		"text is repeated":               `{{ "a" * 10**10 }}`,
		"a list is repeated":             `{{ [1] * 10**10 }}`,
		"a power":                        `{{ 10 ** (10 ** 8) }}`,
		"padding":                        `{{ "a".ljust(10**10) }}`,
		"zeros":                          `{{ "a".zfill(10**10) }}`,
		"indent":                         `{{ "a\na"|indent(10**10) }}`,
		"indent of JSON":                 `{{ [1]|tojson(indent=10**10) }}`,
		"deep indent of JSON":            `{% set ns = namespace(s=[1]) %}{% for i in range(800) %}{% set ns.s = [ns.s] %}{% endfor %}{{ ns.s|tojson(indent=10**6) }}`,
		"a width":                        `{{ "%9999999999d" % 1 }}`,
		"a smaller width":                `{{ "%999999999d" % 1 }}`,
		"a precision":                    `{{ "%.9999999f" % 1 }}`,
		"a width in braces":              `{{ "{:999999999}".format(1) }}`,
		"a precision in braces":          `{{ "{:.9999999f}".format(1.0) }}`,
		"braces within braces":           `{{ "{:{:{:{}}}}".format(1,2,3,4) }}`,
		"split":                          scan(`"a " * 10000000`, `s.split()`),
		"count":                          scan(`"a" * 10000000`, `s.count("b")`),
		"length":                         scan(`"é" * 10000000`, `s|length`),
		"in":                             scan(`"a" * 10000000`, `"b" in s`),
		"an index":                       scan(`"é" * 10000000`, `s[9999999]`),
		"a slice":                        scan(`"é" * 10000000`, `s[::-1]`),
		"startswith":                     scan(`"é" * 10000000`, `s.startswith("b", 9999999)`),
		"equality":                       scan(`"a" * 10000000`, `s == "a" * 10000000`),
		"trim":                           scan(`" " * 10000000 ~ "a"`, `s|trim`),
		"a set of characters":            scan(`"b" * 1000000`, `s.strip("a" * 1000000 ~ "b")`),
		"lower":                          scan(`"A" * 10000000`, `s.lower()`),
		"int":                            scan(`"1" * 10000000`, `s|int`),
		"a long key":                     scan(`"k" * 10000000`, `{"a": 1}[s]`),
		"output":                         `{% for i in range(99999) %}{{ "a" * 100000 }}{% endfor %}`,
		"the time":                       `{{ strftime_now("%Y" * 100000000) }}`,
		"sort by many attributes":        `{{ (range(99999)|list)|sort(attribute="a," * 100000) }}`,
		"a long path of attributes":      `{{ (range(99999)|list)|map(attribute="a." * 100000)|list }}`,
		"arguments":                      `{% macro f() %}{{ varargs|length }}{% endmacro %}{% for i in range(9999) %}{{ f(*range(99999)) }}{% endfor %}`,
		"parentheses in the source":      "{{ " + deep("(", "1", ")", 25000) + " }}",
		"lists in the source":            "{{ " + deep("[", "", "]", 25000) + " }}",
		"not in the source":              "{{ " + deep("not ", "1", "", 25000) + " }}",
		"minus in the source":            "{{ " + deep("-", "1", "", 25000) + " }}",
		"ifs in the source":              deep("{% if 1 %}", "", "{% endif %}", 10000),
		"inline ifs in the source":       "{{ " + deep("1 if 1 else ", "1", "", 10000) + " }}",
		"targets in the source":          "{% set " + deep("(", "a", ")", 25000) + " = 1 %}",
		"a sum in the source":            "{{ " + deep("1+", "1", "", 60000) + " }}",
		"filters in the source":          "{{ 1" + deep("|e", "", "", 60000) + " }}",
		"subscripts in the source":       "{{ a" + deep("[0]", "", "", 60000) + " }}",
		"calls in the source":            "{{ a" + deep("()", "", "", 60000) + " }}",
		"comparisons in the source":      "{{ 1" + deep("<1", "", "", 60000) + " }}",
		"filters of a set in the source": "{% set x" + deep("|e", "", "", 60000) + " %}{% endset %}",
		"a source that is too long":      deep("{{ 1 }}", "", "", 1000000),
		"elifs in the source":            "{% if 0 %}" + deep("{% elif 0 %}", "", "", 10000) + "{% endif %}{{ 1/0 }}",
		"sets in ifs in the source":      deep("{% if 1 %}{% set a = 1 %}", "", "{% endif %}", 140) + "{{ 1/0 }}",
		"names in many branches": func() string {
			var b strings.Builder
			for i := range 6000 {
				fmt.Fprintf(&b, "{%% set a%d = 1 %%}{%% if 1 %%}{%% endif %%}", i)
			}
			return b.String()
		}(),
		"many names in a loop": func() string {
			var b strings.Builder
			b.WriteString("{% for i in range(99999) %}{% for j in range(99999) %}")
			for i := range 5000 {
				fmt.Fprintf(&b, "{%% set a%d = 1 %%}", i)
			}
			return b.String() + "{% endfor %}{% endfor %}"
		}(),
		"long numbers":                    `{% set n = 7 ** 20000 %}{% for i in range(99999) %}{% set m = (n * n - 1) / n %}{% set m = n // 3 %}{% endfor %}`,
		"many named arguments":            `{% set d = dict.fromkeys(range(50000)|map('string')) %}{% macro f(a, b) %}{{ kwargs|length }}{% endmacro %}{% for i in range(9999) %}{{ f(**d) }}{% endfor %}`,
		"long tuples as keys":             grow(`(1,)`, `ns.s + (i,)`) + `{{ [ns.s]|unique|list }}`,
		"names in branches in the source": deep("{% if 1 %}{% set a = 1 %}{% else %}{% set b = 1 %}{% endif %}", "", "", 3500) + "{{ 1/0 }}",
	}
}

// Each ends in an error by counting, whatever the machine, and takes no more memory than a few times the limit. The limits
// are a tenth of the usual ones, so that the test is quick.
func TestHostile(t *testing.T) {
	limits := Limits{Steps: defaultSteps / 10, Memory: 32 << 20}
	for name, source := range hostile() {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			tpl, err := Parse(source)
			if err == nil {
				_, err = tpl.Render(nil, Options{Limits: limits, Now: noon})
			}
			runtime.ReadMemStats(&after)
			if !is[*Error](err) {
				t.Fatalf("no error: %v", err)
			}
			if mib := int(after.TotalAlloc-before.TotalAlloc) >> 20; mib > 8*limits.Memory>>20 {
				t.Errorf("%d MiB allocated until %v", mib, err)
			}
		})
	}
}

// A limit trips at the same place each time, as nothing but the template decides it.
func TestLimitsAreExact(t *testing.T) {
	tpl, err := Parse(`{% for i in range(100) %}{{ "abc" }}{% endfor %}`)
	if err != nil {
		t.Fatal(err)
	}
	if out, err := tpl.Render(nil, Options{Limits: Limits{Output: 300}}); err != nil || len(out.Text) != 300 {
		t.Errorf("300 bytes of 300 allowed: %v", err)
	}
	if _, err := tpl.Render(nil, Options{Limits: Limits{Output: 299}}); fmt.Sprint(err) != "1:29: the template writes more than 299 bytes (LimitError)" {
		t.Errorf("300 bytes of 299 allowed: %v", err)
	}
	steps := func(n int) error {
		_, err := tpl.Render(nil, Options{Limits: Limits{Steps: n}})
		return err
	}
	least := 1
	for steps(least) != nil {
		least++
	}
	for range 3 {
		if steps(least) != nil || steps(least-1) == nil {
			t.Fatalf("%d steps are enough, and %d are not, but not always", least, least-1)
		}
	}
	if _, err := tpl.Render(nil, Options{Limits: Limits{Memory: 100}}); err == nil {
		t.Error("300 bytes built of 100 allowed")
	}
	nested, _ := Parse(`{% macro f(n) %}{% if n %}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(9) }}`)
	if _, err := nested.Render(nil, Options{Limits: Limits{Depth: 9}}); fmt.Sprint(err) != "1:30: calls within each other more than 9 deep (RecursionError)" {
		t.Errorf("10 calls of 9 allowed: %v", err)
	}
	if _, err := nested.Render(nil, Options{Limits: Limits{Depth: 10}}); err != nil {
		t.Errorf("10 calls of 10 allowed: %v", err)
	}
}
