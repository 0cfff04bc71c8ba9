package recipe

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"trainer/internal/diag"
)

// The bounds of a document. Aliases may stand for aliased nodes in all: a bomb of a few lines would stand for billions.
const (
	maxDepth   = 64
	maxAliased = 10_000
)

// parser turns one YAML document into nodes, collecting problems.
type parser struct {
	src      *source
	place    func(line, col int) diag.Pos
	problems *diag.List
	open     map[*yaml.Node]bool // aliases being expanded
	aliased  int
	stopped  bool // the document is past a bound: said once
}

// parseFile returns the mapping of a file, or nil when a problem keeps it from being read.
func parseFile(src *source, problems *diag.List) *node {
	data, bad := checkText(src.data, src.file)
	if bad != nil {
		*problems = append(*problems, *bad)
		return nil
	}
	place := func(line, col int) diag.Pos { return diag.Pos{File: src.file, Line: line, Col: col} }
	doc, bad := parseYAML(data, place)
	if bad != nil {
		*problems = append(*problems, *bad)
		return nil
	}
	if doc == nil {
		problems.Add(diag.Pos{File: src.file}, "", "is empty; a recipe needs base_model, dataset.train and loss.type")
		return nil
	}
	p := &parser{src: src, place: place, problems: problems, open: map[*yaml.Node]bool{}}
	n := p.node(doc, "", 0)
	if n != nil && n.shape != mapping {
		problems.Add(n.pos, "", "a recipe is a mapping of keys to values, not %s", n.show())
		return nil
	}
	return n
}

// parseYAML reads one document; nil without a problem is an empty one. The YAML library panics on no known input, but
// what it reads comes from strangers.
func parseYAML(data []byte, place func(line, col int) diag.Pos) (doc *yaml.Node, bad *diag.Problem) {
	defer func() {
		if r := recover(); r != nil {
			doc, bad = nil, &diag.Problem{Pos: place(1, 0), Msg: "is not YAML that can be read"}
		}
	}()
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var first, second yaml.Node
	if err := dec.Decode(&first); errors.Is(err, io.EOF) {
		return nil, nil
	} else if err != nil {
		return nil, syntax(err, data, place)
	}
	if err := dec.Decode(&second); err == nil {
		return nil, &diag.Problem{Pos: place(second.Line, second.Column), Msg: "a second document; a recipe is one, without --- between its parts"}
	} else if !errors.Is(err, io.EOF) {
		return nil, syntax(err, data, place)
	}
	if len(first.Content) == 0 {
		return nil, nil
	}
	return first.Content[0], nil
}

var (
	syntaxLine    = regexp.MustCompile(`^yaml: (?:line (\d+): )?(.*)$`)
	unknownAnchor = regexp.MustCompile(`^unknown anchor '(.+)' referenced$`)
)

// syntax is the library's error with its place; a tab that indents is named, because it can't be seen.
func syntax(err error, data []byte, place func(line, col int) diag.Pos) *diag.Problem {
	m := syntaxLine.FindStringSubmatch(err.Error())
	if m == nil {
		return &diag.Problem{Pos: place(1, 0), Msg: err.Error()}
	}
	line := 1 // what the library leaves out is the first
	if n, err := strconv.Atoi(m[1]); err == nil {
		line = n
	}
	lines := strings.Split(string(bytes.ReplaceAll(data, []byte("\r\n"), []byte("\n"))), "\n")
	for _, l := range []int{line, line + 1, line - 1} {
		if l >= 1 && l <= len(lines) {
			if at := indentTab(lines[l-1]); at > 0 {
				return &diag.Problem{Pos: place(l, at), Msg: "a tab can't indent; use spaces"}
			}
		}
	}
	if a := unknownAnchor.FindStringSubmatch(m[2]); a != nil {
		for i, l := range lines {
			if at := strings.Index(l, "*"+a[1]); at >= 0 {
				return &diag.Problem{Pos: place(i+1, len([]rune(l[:at]))+1), Msg: fmt.Sprintf("*%s has no anchor &%s before it; a text that starts with * needs quotes", a[1], a[1])}
			}
		}
	}
	switch m[2] {
	case "found incompatible YAML document":
		m[2] = "leave out the %YAML line"
	case "mapping values are not allowed in this context":
		m[2] += "; is the indentation right? a text with ': ' in it needs quotes"
	case "found character that cannot start any token":
		m[2] += "; a text that starts with @, ` or % needs quotes"
	}
	return &diag.Problem{Pos: place(line, 0), Msg: m[2]}
}

// indentTab is the column of a tab among the leading blanks, or 0.
func indentTab(line string) int {
	blank := line[:len(line)-len(strings.TrimLeft(line, " \t"))]
	return strings.Index(blank, "\t") + 1
}

// node converts y, which stands at key. nil: a problem was said.
func (p *parser) node(y *yaml.Node, key string, depth int) *node {
	n := &node{pos: p.place(y.Line, y.Column), src: p.src}
	switch {
	case p.stopped:
		return nil
	case depth > maxDepth:
		return p.stop(n.pos, key, "nested deeper than %d levels", maxDepth)
	case len(p.open) > 0:
		if p.aliased++; p.aliased > maxAliased {
			return p.stop(n.pos, key, "aliases stand for more than %d values", maxAliased)
		}
	}
	if y.Kind == yaml.AliasNode {
		return p.alias(y, key, depth)
	}
	if !p.tagged(y, n.pos, key) {
		return nil
	}
	switch y.Kind {
	case yaml.MappingNode:
		n.shape = mapping
		n.pairs = p.pairs(y, key, depth)
	case yaml.SequenceNode:
		n.shape = list
		for i, c := range y.Content {
			if item := p.node(c, join(key, strconv.Itoa(i)), depth+1); item != nil {
				n.items = append(n.items, item)
			}
		}
	default:
		p.scalar(n, y, key)
	}
	return n
}

func (p *parser) stop(at diag.Pos, key, format string, a ...any) *node {
	p.problems.Add(at, key, format, a...)
	p.stopped = true
	return nil
}

func (p *parser) alias(y *yaml.Node, key string, depth int) *node {
	if p.open[y.Alias] {
		p.problems.Add(p.place(y.Line, y.Column), key, "*%s stands inside what it names", y.Value)
		return nil
	}
	p.open[y.Alias] = true
	defer delete(p.open, y.Alias)
	return p.node(y.Alias, key, depth)
}

// tagged refuses a tag that is not of YAML's core.
func (p *parser) tagged(y *yaml.Node, at diag.Pos, key string) bool {
	if y.Style&yaml.TaggedStyle == 0 {
		return true
	}
	switch tag := y.ShortTag(); tag {
	case "!!str", "!!int", "!!float", "!!bool", "!!null", "!!map", "!!seq":
		return true
	default:
		p.problems.Add(at, key, "the tag %s has no meaning in a recipe; leave it out", tag)
		return false
	}
}

// scalar keeps the text as written: what it means depends on what is due at its key.
func (p *parser) scalar(n *node, y *yaml.Node, key string) {
	tagged := y.Style&yaml.TaggedStyle != 0
	n.text = y.Value
	n.quoted = y.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) != 0
	if tagged {
		n.quoted = y.ShortTag() == "!!str"
	}
	n.null = !n.quoted && nullWord(y.Value)
	if name := secret(n.text); name != "" {
		p.problems.Add(n.pos, key, "this looks like %s; secrets come from the environment, never from a recipe", name)
	}
	if strings.Contains(n.text, "${env:") && !strings.Contains("."+key+".", ".headers.") {
		p.problems.Add(n.pos, key, "${env:NAME} works in headers of http rewards and environments only")
	}
}

func nullWord(s string) bool {
	switch s {
	case "", "~", "null", "Null", "NULL":
		return true
	}
	return false
}
