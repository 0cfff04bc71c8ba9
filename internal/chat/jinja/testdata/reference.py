"""Small templates with jinja2's answers, as Hugging Face transformers compiles them: one JSON object a line,
{"t": template, "out": text} or {"t": template, "err": class of the error}; the first line holds the variables.

    pip install transformers==5.24.0 jinja2==3.1.6
    python reference.py > golden.jsonl              # what the tests read
    python reference.py --full > somewhere.jsonl    # far more: go test -run Golden . -golden somewhere.jsonl

Without --full the operands of the expressions are thinned out by a fixed seed.
"""
import copy
import json
import pathlib
import random
import re
import sys

from transformers.utils.chat_template_utils import _compile_jinja_template

VARIABLES = {
    "messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "yo <b>&'\""}],
    "s": "Hello, Wörld ǆ ß İ ΑΣ", "e": "", "n": None, "i": 7, "neg": -7, "f": 2.5, "big": 12345678901234567890123,
    "t": True, "l": [3, 1, 2], "el": [], "d": {"b": 1, "a": 2, "C": [1, {"x": None}], "items": "shadow"}, "ed": {},
    "nested": {"a": {"b": {"c": [10, 20, {"k": "v"}]}}}, "ws": "  a b\t c \n d  ", "ml": "l1\nl2\r\nl3\n\nl5\u2028l6",
    "objs": [{"n": "b", "g": 1, "o": {"p": 5}}, {"n": "A", "g": 2}, {"n": "c", "g": 1, "o": {"p": 3}}],
    "html": "<a href='x'>T & \"q\"</a>", "uni": "日本語🤖e\u0301", "a": "A", "x": "X", "ms": [3, 4], "b": None,
    "js": {"k": [1, 2.0, 1e-7, 1e16, 1e22, -0.0, 0.1, 123456789.123], "u": "é\u0007\u007f\u2028", "e": {}, "l": []},
}

ATOMS = ["s", "e", "n", "i", "neg", "f", "big", "t", "l", "el", "d", "ed", "undef", "messages", "ws", "ml", "uni", "html|safe",
         "'x'", "3", "0", "1.5", "-0.0", "(1,2)", '{"a":1}', "[]", "none", "false", "undef.x", "d.C", "range(3)",
         "l|map('string')", "d.items()", "nested.a", "js", "10**30", "objs"]
OPERATORS = ["+", "-", "*", "/", "//", "%", "**", "~", "<", "<=", "==", "!=", ">", "in", "not in", "and", "or"]
TESTS = ["defined", "undefined", "none", "boolean", "true", "false", "string", "number", "integer", "float", "mapping", "iterable",
         "sequence", "callable", "escaped", "odd", "even", "lower", "upper", "divisibleby(2)", "divisibleby 3", "in([1,2,3])",
         "in 'xyz'", "eq(3)", "sameas(none)", "sameas(true)", "ge 2", "lt 5", "ne none", "nosuch", "filter", "test"]
FILTERS = ["upper", "lower", "capitalize", "title", "string", "safe", "e", "trim", "trim('x')", 'replace("l","L")',
           'replace("l","L",1)', "replace('', '-')", "replace(none, 1)", "indent", "indent(2)", "indent(2,true)",
           'indent("> ",true,true)', "indent(first=true)", "tojson", "tojson(indent=2)", "tojson(indent=0)", "tojson(sort_keys=true)",
           'tojson(separators=(",",":"))', "tojson(ensure_ascii=true)", 'tojson(indent="--")', "tojson(none, 1, (';', '='), true)",
           "int", "int(5)", "int(default=-1)", "int(0,16)", "float", "float(1.5)", "abs", "round", "round(1)", 'round(0,"floor")',
           'round(1,"ceil")', "length", "count", 'default("D")', 'd("D",true)', "default", "first", "last", "reverse", "reverse|list",
           "list", "items", "items|list", "join", 'join(",")', 'join(", ","n")', "join(attribute='n')", "sort", "sort(reverse=true)",
           'sort(attribute="n")', "sort(false, true)", "sort(attribute='g,n')", "unique|list", "unique(true)|list", "dictsort",
           'dictsort(by="value")', "dictsort(true)", "dictsort(reverse=true)", 'map("upper")|list', 'map(attribute="n")|list',
           'map(attribute="n",default="Z")|list', "map(attribute='o.p', default=0)|list", "map('replace','a','b')|list", "map|list",
           "select|list", 'select("string")|list', "reject|list", 'reject("none")|list', "reject('equalto', 3)|list",
           'selectattr("n")|list', 'selectattr("n","equalto","b")|list', 'rejectattr("g","gt",1)|list', "rejectattr('role')|list",
           "selectattr|list", "sum", 'sum("g")', "sum(start=5)", "min", "max", "min(attribute='g')", "max(true)", 'groupby("g")|list',
           "groupby('n', case_sensitive=true)|list", 'attr("x")', 'attr("role")', "unknownfilter", 'format("a")', "format(a=1)",
           "wordcount", "string|length", "upper(1)"]
METHODS = [".x", '["x"]', "[0]", "[-1]", "[5]", "[1:]", "[:-1]", "[::-1]", "[::2]", "[-2:]", "[5:1:-1]", "[:100]", "[none:2]", "[:]",
           '["items"]', ".items", '.get("a")', '.get("zz","D")', ".get()", ".keys()|list", ".values()|list", ".items()|list",
           ".append(1)", ".pop()", ".update({})", ".copy()", ".upper()", ".strip()", ".split()", '.split(",")', '.split("l",1)',
           ".split(none, 1)", ".rsplit(None,1)", '.rsplit("l",1)', ".rsplit()", ".split('')", ".splitlines()", ".splitlines(true)",
           '.startswith("H")', '.startswith(("x","H"))', '.endswith("")', ".startswith('e', 1)", ".endswith('o', 0, 5)",
           ".startswith('', 99)", ".startswith(1)", '.find("l")', '.find("l",4)', ".find('', 99)", ".find('l', -100, 4)", '.index("l")',
           '.rfind("l")', '.count("l")', ".count('')", '.replace("l","L")', '.replace("","-")', ".replace('l','L',-1)",
           '.join(["a","b"])', ".join([1])", ".title()", ".capitalize()", ".ljust(30)", '.rjust(30,"é")', ".zfill(30)", '.partition(",")',
           '.rpartition(",")', '.removeprefix("He")', '.removesuffix("Σ")', ".isdigit()", ".isalpha()", ".isalnum()", ".isupper()",
           ".islower()", ".isspace()", ".isascii()", ".isdecimal()", ".isnumeric()", ".format(1,a=2)", '.lstrip("He")', ".rstrip()",
           ".rstrip('\\n ')", ".index(1)", ".count(1)", ".index(1, 1, 2)", ".__class__", '["__class__"]', "._x", "()", ".0", ".1.x",
           ".nope.nope", ".setdefault('q', 1)", "|length", ".is_integer()", ".strip(1)", ".strip('a', 'b')", ".lower(1)"]
SHAPES = ["{%% for x in (%s) %%}[{{ x }}{{ loop.index }}{{ loop.last }}{{ loop.length }}]{%% else %%}none{%% endfor %%}",
          "{%% for x, y in (%s) %%}[{{ x }}={{ y }}]{%% endfor %%}", "{%% set a, b = (%s) %%}{{ a }}{{ b }}",
          "{%% set x = (%s) %%}{{ x }}{%% if x %%}T{%% else %%}F{%% endif %%}{{ not x }}", "{{ -(%s) }}", "{{ +(%s) }}",
          '{{ "a" if (%s) }}', "{{ {(%s): 1} }}", "{{ d[(%s)] }}", "{{ l[(%s)] }}", "{{ s[(%s)] }}", "{{ l[(%s):] }}", "{{ uni[:(%s)] }}",
          '{{ "%%s|%%r" %% ((%s), 1) }}', '{{ "%%d" %% (%s) }}', '{{ "%%5.1f|" %% (%s) }}', '{{ "%%-8s|" %% (%s) }}', '{{ "%%05d" %% (%s) }}',
          '{{ "%%g" %% (%s) }}', '{{ "%%x" %% (%s) }}', '{{ "%%(a)s" %% (%s) }}', '{{ "{}|{!r}".format((%s), (%s)) }}',
          '{{ "{:>8}|{:<8}|{:^9}".format(%s,%s,%s) }}', '{{ "{:,}|{:08.2f}|{:+}".format(%s,%s,%s) }}', '{{ "{:.2f}{:e}{:g}".format(%s,%s,%s) }}',
          '{{ "{0[a]}{0.a}".format(%s) }}', "{{ range(%s) }}{{ range(%s)|list }}", "{{ range(1, %s, 2)|list }}", "{{ dict(%s) }}",
          "{{ namespace(%s).a }}", "{{ namespace(a=%s) }}", "{{ [%s, 1]|sort }}", "{{ [1.5, %s]|min }}", "{{ (%s) == (%s) }}",
          "{{ raise_exception(%s) }}", "{%% macro m(q, r=(%s)) %%}{{ q }}{{ r }}{%% endmacro %%}{{ m(%s) }}{{ m(*%s) }}", "{{ dict(**(%s)) }}"]


def expressions(rng, full):
    """Every operator, test, filter and method on every operand; a sample of them unless full."""
    out = ["{{ (%s) %s (%s) }}" % (a, op, b) for op in OPERATORS for a in ATOMS for b in ATOMS
           if op != "**" or not {a, b} & {"big", "10**30", "-0.0", "f", "1.5"}]
    out += ["{{ (%s) is %s }}|{{ (%s) is not %s }}" % (a, t, a, t) for a in ATOMS for t in TESTS]
    out += ["{{ (%s)|%s }}" % (a, f) for a in ATOMS for f in FILTERS]
    out += ["{{ (%s)%s }}" % (a, m) for a in ATOMS for m in METHODS]
    out += [shape.replace("%%", "\0").replace("%s", a).replace("\0", "%") for a in ATOMS for shape in SHAPES]
    return out if full else rng.sample(out, 1000)


class Whitespace:
    """Random text, tags and white space control."""

    PIECES = ["", "", " ", "  ", "\n", "\n\n", " \n ", "\t", "\r\n", "\r", " \n", "\n  ", "a", "b c", "x\n", "\ny", " z ", "{", "}", "%}",
              "}}", "#}", "{ {", "-", "+", "é", "\u00a0", "\u2028", " \x1c\n", "\x0b", "'", '"', "\\"]

    def __init__(self, rng):
        self.pick = rng.choice
        self.rng = rng

    def space(self):
        return "".join(self.pick(self.PIECES) for _ in range(self.rng.randint(0, 4)))

    def sign(self):
        return self.pick(["", "", "", "-", "+"])

    def tag(self, s):
        return "{%" + self.sign() + self.pick([" ", "", "\n"]) + s + self.pick([" ", "", "\n "]) + self.sign() + "%}"

    def variable(self):
        s = self.pick(["1", "'q'", "x", "'}}'", "\"%}\"", "{'a':{'b':1}}.a.b", "[1,2][0]", "'\\n'", "1 -1", "-1", "x|upper", "'a' 'b'", "x.0.1",
                       "007", "0x1F", "1_000", "1e3", "1.5e-7", "'\\x41\\u00e9\\101\\q'"])
        return "{{" + self.pick(["", "-", "+"]) + " " + s + self.pick([" ", ""]) + self.pick(["", "-"]) + "}}"

    def comment(self):
        return "{#" + self.sign() + self.pick([" c ", " {{ x }} ", " {% if %} ", "\n", "#", " - ", ""]) + self.sign() + "#}"

    def piece(self, depth):
        k = self.rng.random()
        if depth > 2 or k < 0.3:
            return self.variable()
        if k < 0.42:
            return self.comment()
        if k < 0.6:
            other = self.tag("else") + self.body(depth + 1) if self.rng.random() < 0.4 else ""
            return self.tag("if " + self.pick(["true", "x", "not x", "1 > 2"])) + self.body(depth + 1) + other + self.tag("endif")
        if k < 0.75:
            return self.tag("for i in [1,2]") + self.body(depth + 1) + self.tag("endfor")
        if k < 0.85:
            return self.tag(self.pick(["set y = 1", "set x = 'n'", "set z = x ~ '\\n'"]))
        if k < 0.9:
            return self.tag("set q") + self.body(depth + 1) + self.tag("endset") + "{{ q }}"
        if k < 0.95:
            return "{%" + self.sign() + " raw " + self.pick(["", "-"]) + "%}" + self.space() + "{{ x }}{% if" + self.space() + self.tag("endraw")
        return self.tag("generation") + self.body(depth + 1) + self.tag("endgeneration")

    def body(self, depth=0):
        return "".join(self.space() + self.piece(depth) for _ in range(self.rng.randint(1, 4))) + self.space()


class Scopes:
    """Random programs of set, if, for, with, macro and call, which read and assign a few names all over."""

    def __init__(self, rng):
        self.rng = rng
        self.pick = rng.choice

    def name(self):
        return self.pick(["a", "b", "c", "x", "y", "ms"])

    def expr(self, depth=0):
        k, inner = self.rng.random(), lambda: self.expr(depth + 1)
        if depth > 2 or k < 0.4:
            return self.name()
        if k < 0.5:
            return self.pick(["1", "'s'", "none", "true", "[1,2]", "ns.v", "ns.w", "loop.index", "m(1)", "m(a)", "k()", "caller()", "varargs",
                              "kwargs", "loop.last", "loop.previtem", "m(q=1)", "k(1, 2, z=3)"])
        if k < 0.6:
            return "(%s ~ %s)" % (inner(), inner())
        if k < 0.7:
            return "(%s if %s else %s)" % (inner(), inner(), inner())
        if k < 0.78:
            return "(%s or %s)" % (inner(), inner())
        if k < 0.84:
            return "(%s and %s)" % (inner(), inner())
        if k < 0.9:
            return "%s|default('D')" % self.name()
        if k < 0.95:
            return "(%s is defined)" % inner()
        return "(%s == %s)" % (inner(), inner())

    def stmt(self, depth=0, loop=False):
        k, body = self.rng.random(), lambda loop=False: self.body(depth + 1, loop)
        if depth > 3 or k < 0.35:
            return "{{ %s }};" % self.expr()
        if k < 0.5:
            return "{%% set %s = %s %%}" % (self.name(), self.expr())
        if k < 0.54:
            return "{%% set ns.%s = %s %%}" % (self.pick("vw"), self.expr())
        if k < 0.58:
            return "{%% set %s, %s = 1, %s %%}" % (self.name(), self.name(), self.expr())
        if k < 0.70:
            s = "{%% if %s %%}" % self.expr() + body(loop)
            if self.rng.random() < 0.4:
                s += "{%% elif %s %%}" % self.expr() + body(loop)
            if self.rng.random() < 0.5:
                s += "{% else %}" + body(loop)
            return s + "{% endif %}"
        if k < 0.84:
            s = "{%% for %s in %s" % (self.name(), self.pick(["[1,2]", "ms", "range(3)", "[]", self.name()]))
            if self.rng.random() < 0.4:
                s += " if %s" % self.expr()
            s += " %}" + body(True)
            if self.rng.random() < 0.3:
                s += "{% else %}" + body()
            return s + "{% endfor %}"
        if k < 0.9:
            return "{%% macro %s(%s%s) %%}" % (self.pick("mk"), self.name(), self.pick(["", " , q=%s" % self.expr()])) + body() + "{% endmacro %}"
        if k < 0.93:
            return "{%% set %s %%}" % self.name() + body(loop) + "{% endset %}"
        if k < 0.95:
            return "{%% with %s = %s %%}" % (self.name(), self.expr()) + body() + "{% endwith %}"
        if k < 0.97:
            return "{%% call%s %s(1) %%}" % (self.pick(["", "(z)", "(a, b=x)"]), self.pick("mk")) + body() + "{% endcall %}"
        if k < 0.98:
            return "{% generation %}" + body() + "{% endgeneration %}"
        if k < 0.985:
            return "{% filter upper %}" + body() + "{% endfilter %}"
        return self.pick(["{% break %}", "{% continue %}"]) if loop else "{{ %s }}" % self.expr()

    def body(self, depth, loop):
        return "".join(self.stmt(depth, loop) for _ in range(self.rng.randint(1, 3)))

    def program(self):
        return "{% set ns = namespace(v=0) %}" + "".join(self.stmt() for _ in range(self.rng.randint(2, 6)))


def answer(template):
    try:
        out = _compile_jinja_template.__wrapped__(template).render(**copy.deepcopy(VARIABLES))
        return {"out": re.sub(r" -?a-?t-? -?0-?x(-?[0-9a-fA-F])+", " at an address", out)}
    except Exception as e:
        return {"err": type(e).__name__}


def main():
    full = "--full" in sys.argv
    features = pathlib.Path(__file__).with_name("features.txt").read_text(encoding="utf-8").rstrip("\n").split("\n===\n")
    templates = features + expressions(random.Random(3), full)
    whitespace, scopes = Whitespace(random.Random(5)), Scopes(random.Random(11))
    templates += [whitespace.body() for _ in range(6000 if full else 150)]
    templates += [scopes.program() for _ in range(20000 if full else 300)]
    print(json.dumps(VARIABLES))
    for t in templates:
        print(json.dumps({"t": t, **answer(t)}))


main()
