package jinja

import "slices"

// library is what the language brings along. It is read-only.
type library struct {
	filters, tests map[string]*builtin
	methods        map[string]map[string]*builtin // by Python's name of the type
	globals        map[string]Value
}

func newLibrary() *library {
	return &library{filters: filters, tests: tests, globals: globals, methods: map[string]map[string]*builtin{
		"str": strMethods, "Markup": strMethods, "dict": dictMethods, "list": listMethods, "tuple": tupleMethods,
		"float": floatMethods,
	}}
}

// method is the method of v, nil for none.
func (l *library) method(v Value, name string) *builtin {
	switch v.(type) {
	case string, *Dict, *List, markup, *tuple, float64:
		return l.methods[typeName(v)][name]
	}
	return nil
}

// What Python or Jinja has and this package has not, so that it is told from what nobody has.
var (
	otherFilters = []string{"batch", "center", "filesizeformat", "forceescape", "pprint", "random", "slice", "striptags",
		"truncate", "urlencode", "urlize", "wordcount", "wordwrap", "xmlattr"}
	notBuilt = map[string][]string{
		"str": {"casefold", "center", "encode", "expandtabs", "format_map", "isidentifier", "isprintable", "istitle",
			"maketrans", "swapcase", "translate"},
		"Markup": {"casefold", "center", "encode", "expandtabs", "format_map", "isidentifier", "isprintable", "istitle",
			"maketrans", "swapcase", "translate", "striptags", "unescape", "escape"},
		"int": {"real", "imag", "numerator", "denominator", "conjugate", "as_integer_ratio", "bit_length", "bit_count",
			"to_bytes", "from_bytes"},
		"bool": {"real", "imag", "numerator", "denominator", "conjugate", "as_integer_ratio", "bit_length", "bit_count",
			"to_bytes", "from_bytes"},
		"float":       {"real", "imag", "conjugate", "as_integer_ratio", "fromhex", "hex"},
		"range":       {"start", "stop", "step", "count", "index"},
		"dict_keys":   {"isdisjoint", "mapping"},
		"dict_values": {"mapping"},
		"dict_items":  {"isdisjoint", "mapping"},
		"generator":   {"send", "throw", "close", "gi_frame", "gi_running", "gi_code", "gi_yieldfrom", "gi_suspended"},
		"Macro":       {"name", "arguments", "catch_kwargs", "catch_varargs", "caller", "explicit_caller"},
		"function":    {"fromkeys"},
	}
)

func (l *library) noFilter(name string, at int) {
	if slices.Contains(otherFilters, name) {
		failAt(at, "Unsupported", "the filter '%s' is not supported in a chat template", name)
	}
	failAt(at, "TemplateAssertionError", "there is no filter named '%s'", name)
}

func (l *library) noTest(name string, at int) {
	failAt(at, "TemplateAssertionError", "there is no test named '%s'", name)
}
