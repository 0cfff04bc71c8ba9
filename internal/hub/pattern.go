package hub

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// glob is a pattern of the paths of a repository: * and ? within a name, ** over folders too, [a-z] and [!a-z] of sets.
type glob struct {
	text string
	re   *regexp.Regexp
}

func newGlob(text string) (glob, error) {
	text = strings.TrimPrefix(text, "./")
	var b strings.Builder
	b.WriteString("^")
	for i := 0; i < len(text); i++ {
		switch rest := text[i:]; {
		case strings.HasPrefix(rest, "**/"):
			b.WriteString("(?:.*/)?")
			i += 2
		case strings.HasPrefix(rest, "**"):
			b.WriteString(".*")
			i++
		case rest[0] == '*':
			b.WriteString("[^/]*")
		case rest[0] == '?':
			b.WriteString("[^/]")
		case rest[0] == '[':
			set, n, ok := readSet(rest)
			if !ok {
				return glob{}, fmt.Errorf("%s: a [ without its ]; it opens a set of characters", text)
			}
			b.WriteString(set)
			i += n - 1
		default:
			b.WriteString(regexp.QuoteMeta(rest[:1]))
		}
	}
	re, err := regexp.Compile(b.String() + "$")
	if err != nil {
		return glob{}, fmt.Errorf("%s: is no pattern of files", text)
	}
	return glob{text, re}, nil
}

// readSet turns [!a-z] into a set of an expression; n is its length.
func readSet(text string) (set string, n int, ok bool) {
	from := 1
	not := ""
	if strings.HasPrefix(text[1:], "!") || strings.HasPrefix(text[1:], "^") {
		from, not = 2, "^/"
	}
	end := strings.IndexByte(text[min(from+1, len(text)):], ']')
	if end < 0 {
		return "", 0, false
	}
	end += from + 1
	inside := strings.NewReplacer(`\`, `\\`, `[`, `\[`, `]`, `\]`, `^`, `\^`, `&`, `\&`).Replace(text[from:end])
	return "[" + not + inside + "]", end + 1, true
}

// fits leaves hidden files, and folders as __pycache__, to patterns that spell them.
func (g glob) fits(path string) bool {
	return g.re.MatchString(path) && unspelled(path) == unspelled(g.text)
}

// unspelled counts the parts of a path that a wildcard does not mean.
func unspelled(path string) (n int) {
	parts := strings.Split(path, "/")
	for i, p := range parts {
		if strings.HasPrefix(p, ".") || strings.HasPrefix(p, "__") && i < len(parts)-1 {
			n++
		}
	}
	return n
}

// pick are the entries that the patterns fit, in order of the patterns and of their paths, each once. A pattern that fits
// nothing is an error.
func pick(all []entry, patterns []string) (out []entry, err error) {
	taken := map[string]bool{}
	for _, p := range patterns {
		found := slices.DeleteFunc(slices.Clone(all), func(e entry) bool { return e.Path != p })
		if len(found) == 0 {
			g, err := newGlob(p)
			if err != nil {
				return nil, err
			}
			found = slices.DeleteFunc(slices.Clone(all), func(e entry) bool { return !g.fits(e.Path) })
		}
		if len(found) == 0 {
			return nil, fmt.Errorf("no file is %s; it has %s", p, some(all))
		}
		for _, e := range found {
			if !taken[e.Path] {
				taken[e.Path] = true
				out = append(out, e)
			}
		}
	}
	return out, nil
}

// some names the first files.
func some(all []entry) string {
	var names []string
	for i, e := range all {
		if i == 5 {
			return strings.Join(names, ", ") + ", …"
		}
		names = append(names, e.Path)
	}
	return strings.Join(names, ", ")
}
