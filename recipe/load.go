package recipe

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/go-playground/validator/v10"

	"trainer/internal/diag"
)

// Load reads the recipe at path with its parents, lays each set ("a.b=value") on top in order, decodes it strictly, fills
// in the defaults of its loop and checks it. The error is a diag.List: every problem found, each with its place. Load
// opens local files and nothing else, and never the dataset.
func Load(path string, set ...string) (*Recipe, error) {
	return (&loader{read: readFile}).recipe(path, set)
}

func (l *loader) recipe(path string, set []string) (*Recipe, error) {
	data, bad := l.read(path)
	if bad != nil {
		return nil, diag.List{*bad}
	}
	n := l.load(path, data, nil)
	if n == nil {
		return nil, l.ordered().Err()
	}
	n = l.apply(n, set)
	r := decode(n, path, l)
	if err := l.ordered().Err(); err != nil {
		return nil, err
	}
	return r, nil
}

// ordered puts the problems of the recipe first, then those of its parents as they were read, then those of --set.
func (l *loader) ordered() diag.List {
	rank := func(p diag.Problem) int {
		if i := slices.IndexFunc(l.sources, func(s *source) bool { return s.file == p.Pos.File }); i >= 0 {
			return i
		}
		return len(l.sources)
	}
	slices.SortStableFunc(l.problems, func(a, b diag.Problem) int { return cmp.Compare(rank(a), rank(b)) })
	for i, p := range l.problems {
		p.Pos.File, p.Key, p.Msg = oneLine(p.Pos.File), cut(oneLine(p.Key), 200), cut(oneLine(p.Msg), 600)
		l.problems[i] = p
	}
	return l.problems
}

// oneLine escapes what would break a line or a terminal: keys and values are a stranger's text.
func oneLine(s string) string {
	if strings.IndexFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) < 0 && utf8.ValidString(s) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if unicode.IsPrint(r) {
			b.WriteRune(r)
		} else {
			b.WriteString(strings.Trim(strconv.QuoteRune(r), "'"))
		}
	}
	return b.String()
}

// decode makes the recipe of the merged nodes; its problems are added to the loader's.
func decode(n *node, path string, l *loader) *Recipe {
	r := &Recipe{}
	d := &decoder{r: r, orphan: l.orphan, check: validator.New(), bad: map[string]bool{}, touched: map[string]bool{}, trace: newTrace(path, l.sources)}
	for _, p := range l.problems {
		if p.Key != "" {
			d.mark(p.Key)
		}
	}
	d.said = maps.Clone(d.bad)
	r.Loss.Type = lossType(n)
	d.loop = loopOf(r.Loss.Type, n.get("rollout") != nil || n.get("teacher") != nil)
	d.full = n.get("lora_config") != nil && n.get("lora_config").null
	d.trace.usesReference = needsReference(n)
	d.trace.note("", n)
	d.mapping(n, n.pos, "", root, reflectOf(r))
	r.trace = d.trace
	d.rules(n)
	l.problems = append(l.problems, d.problems...)
	return r
}

// needsReference: a KL term in the loss, which is grpo's alone, or in the reward.
func needsReference(n *node) bool {
	terms := []*node{n.get("advantage").get("kl_coef")}
	if lossType(n) == "grpo" {
		terms = append(terms, n.get("loss").get("params").get("beta"))
	}
	for _, at := range terms {
		if at.word() == "" {
			continue
		}
		if v, msg := number(at); msg == "" && v > 0 {
			return true
		}
	}
	return false
}
