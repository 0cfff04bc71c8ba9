package tokenizer

import (
	"strings"
	"unicode/utf8"
)

// match is the end of the match of a pattern that starts at s[i], or -1; i < len(s), and s is all the pattern can see.
type match func(s string, i int) int

// The patterns of published tokenizers, by their exact text. A pattern that is not here is refused: to run a regular expression
// in another engine than the reference's would give other words in rare places, and nobody would notice.
const (
	tail          = `|\s*[\r\n]+|\s+(?!\S)|\s+`
	contractions  = `(?i:'s|'t|'re|'ve|'m|'ll|'d)`
	upperRun      = `[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]`
	lowerRun      = `[\p{Ll}\p{Lm}\p{Lo}\p{M}]`
	beforeWord    = `[^\r\n\p{L}\p{N}]?`
	upperNoHan    = `[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]`
	lowerNoHan    = `[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]`
	gpt2Pattern   = `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`
	cl100kPattern = contractions + `|` + beforeWord + `\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*` + tail
	o200kPattern  = beforeWord + upperRun + `*` + lowerRun + `+` + contractions + `?|` + beforeWord + upperRun + `+` + lowerRun + `*` + contractions + `?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*` + tail
	kimiPattern   = `[\p{Han}]+|` + beforeWord + upperNoHan + `*` + lowerNoHan + `+` + contractions + `?|` + beforeWord + upperNoHan + `+` + lowerNoHan + `*` + contractions + `?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*` + tail
	deepseekRest  = "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+"
)

// knownPattern is the splitter of a pattern, or nil.
func knownPattern(pattern string) match {
	t := classes()
	plain := wide{t, letter, 3}
	narrow := cased{classTable: t, digits: 3, contracted: true, slash: true}
	switch pattern {
	case gpt2Pattern:
		return gpt2{t}.next
	case cl100kPattern: // GPT-4, Llama 3, GLM 4
		return plain.next
	case contractions + `|` + beforeWord + `\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*` + tail: // Qwen 2, 2.5, 3
		plain.digits = 1
		return plain.next
	case contractions + `|` + beforeWord + `[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*` + tail: // Qwen 3.5
		plain.digits, plain.letters = 1, letter|mark
		return plain.next
	case o200kPattern: // GPT-4o, GPT-OSS
		return narrow.next
	case beforeWord + upperRun + `*` + lowerRun + `+|` + beforeWord + upperRun + `+` + lowerRun + `*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*` + tail: // Mistral's Tekken
		narrow.digits, narrow.contracted = 1, false
		return narrow.next
	case kimiPattern:
		narrow.han, narrow.slash = true, false
		return narrow.next
	case `\p{N}{1,3}`: // DeepSeek V3, the first of three
		return func(s string, i int) int { return matched(i, t.digits(s, i, 3)) }
	case "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+":
		return ideographs
	case deepseekRest:
		return deepseek{t}.next
	}
	return nil
}

// matched is end, or -1 where nothing was matched.
func matched(i, end int) int {
	if end == i {
		return -1
	}
	return end
}

// digits is the end of at most n characters of \p{N}.
func (t *classTable) digits(s string, i, n int) int {
	for ; n > 0 && i < len(s); n-- {
		c, size := t.at(s, i)
		if c&number == 0 {
			break
		}
		i += size
	}
	return i
}

// spaces is the end of \s*[\r\n]+|\s+(?!\S)|\s+ at i, where a space stands: up to the last line end of the run, else all but the
// last character where something follows. Without lines it is \s+(?!\S)|\s+.
func (t *classTable) spaces(s string, i int, lines bool) int {
	end, last, line := i, i, -1
	for end < len(s) {
		c, n := t.at(s, end)
		if c&space == 0 {
			break
		}
		last = end
		end += n
		if c&newline != 0 {
			line = end
		}
	}
	switch {
	case lines && line >= 0:
		return line
	case end == len(s) || last == i:
		return end
	}
	return last
}

// contraction is the length of 's|'t|'re|'ve|'m|'ll|'d at i, or 0. Folded, it is the pattern under (?i:…), which 'ſ matches too.
func contraction(s string, i int, folded bool) int {
	if i+1 >= len(s) || s[i] != '\'' {
		return 0
	}
	a, b := s[i+1], byte(0)
	if i+2 < len(s) {
		b = s[i+2]
	}
	if folded {
		a, b = a|0x20, b|0x20
	}
	switch {
	case a == 's' || a == 't' || a == 'm' || a == 'd':
		return 2
	case (a == 'r' || a == 'v') && b == 'e', a == 'l' && b == 'l':
		return 3
	case folded && strings.HasPrefix(s[i+1:], "ſ"):
		return 3
	}
	return 0
}

// afterSpace is the place behind the optional space of the patterns that start with " ?".
func afterSpace(s string, i int) int {
	if s[i] == ' ' && i+1 < len(s) {
		return i + 1
	}
	return i
}

// gpt2 is the pattern of ByteLevel's own use_regex.
type gpt2 struct{ *classTable }

func (g gpt2) next(s string, i int) int {
	if n := contraction(s, i, false); n > 0 {
		return i + n
	}
	j := afterSpace(s, i)
	c, n := g.at(s, j)
	switch {
	case c&letter != 0:
		return g.run(s, j+n, letter)
	case c&number != 0:
		return g.run(s, j+n, number)
	case c&space == 0:
		return g.until(s, j+n, space|letter|number)
	}
	return g.spaces(s, i, false)
}

// wide is the family of cl100k: contractions, words with what is before them, digits in groups, the rest.
type wide struct {
	*classTable
	letters class // what words are made of
	digits  int   // how many to a group
}

func (w wide) next(s string, i int) int {
	c, n := w.at(s, i)
	if c&w.letters != 0 && c&letter != 0 {
		return w.run(s, i+n, w.letters)
	}
	if n := contraction(s, i, true); n > 0 {
		return i + n
	}
	if c&(newline|letter|number) == 0 { // beforeWord
		if i+n < len(s) {
			if c, _ := w.at(s, i+n); c&w.letters != 0 {
				return w.run(s, i+n, w.letters)
			}
		}
		if c&w.letters != 0 { // a mark alone
			return i + n
		}
	}
	if c&number != 0 {
		return w.classTable.digits(s, i, w.digits)
	}
	j := afterSpace(s, i)
	if k := w.until(s, j, space|w.letters|number); k > j {
		return w.run(s, k, newline)
	}
	return w.spaces(s, i, true)
}

// cased is the family of o200k, whose words end where lower case turns into upper.
type cased struct {
	*classTable
	digits     int
	contracted bool // contractions belong to the word before
	slash      bool // [\r\n/]* behind punctuation, else [\r\n]*
	han        bool // [\p{Han}]+ comes first, and no word has any
}

func (p cased) next(s string, i int) int {
	c, n := p.at(s, i)
	if p.han && c&han != 0 {
		return p.run(s, i+n, han)
	}
	if end := p.word(s, i, c, n); end >= 0 {
		if p.contracted {
			end += contraction(s, end, true)
		}
		return end
	}
	if c&number != 0 {
		return p.classTable.digits(s, i, p.digits)
	}
	j := afterSpace(s, i)
	if k := p.until(s, j, space|letter|number); k > j {
		for k < len(s) && (s[k] == '\r' || s[k] == '\n' || p.slash && s[k] == '/') {
			k++
		}
		return k
	}
	return p.spaces(s, i, true)
}

// word is the end of the first of four ways to read a word at i, or -1: with the character before the word and without it,
// upper*lower+; then the same two with upper+lower*. The order matters, as a mark may be either.
func (p cased) word(s string, i int, c class, n int) int {
	before := c&(newline|letter|number) == 0
	if before {
		if end := p.lowered(s, i+n); end >= 0 {
			return end
		}
	}
	if end := p.lowered(s, i); end >= 0 {
		return end
	}
	if before {
		if end := p.raised(s, i+n); end >= 0 {
			return end
		}
	}
	return p.raised(s, i)
}

// lowered is the end of upper*lower+ at i, or -1: as many of upper as leave one of lower.
func (p cased) lowered(s string, i int) int {
	back := -1 // behind the last that is both
	for i < len(s) {
		c, n := p.cased(s, i)
		if c&upper == 0 {
			if c&lower == 0 {
				return back
			}
			return p.casedRun(s, i, lower)
		}
		i += n
		if c&lower != 0 {
			back = i
		}
	}
	return back
}

// raised is the end of upper+lower* at i, or -1.
func (p cased) raised(s string, i int) int {
	end := p.casedRun(s, i, upper)
	if end == i {
		return -1
	}
	return p.casedRun(s, end, lower)
}

// cased is at, but a character of Han has no case where the pattern takes those out.
func (p cased) cased(s string, i int) (class, int) {
	c, n := p.at(s, i)
	if p.han && c&han != 0 {
		c &^= upper | lower
	}
	return c, n
}

func (p cased) casedRun(s string, i int, mask class) int {
	for i < len(s) {
		c, n := p.cased(s, i)
		if c&mask == 0 {
			break
		}
		i += n
	}
	return i
}

// ideographs is the second of DeepSeek's three patterns.
func ideographs(s string, i int) int {
	end := i
	for end < len(s) {
		r, n := utf8.DecodeRuneInString(s[end:])
		if (r < 0x4e00 || r > 0x9fa5) && (r < 0x3040 || r > 0x30ff) {
			break
		}
		end += n
	}
	return matched(i, end)
}

// deepseek is the third of DeepSeek's three patterns; control characters match nothing.
type deepseek struct{ *classTable }

func (d deepseek) next(s string, i int) int {
	if b := s[i]; b > ' ' && b < 0x7f && !alphanumeric(b) && i+1 < len(s) && alphabetic(s[i+1]) {
		end := i + 2
		for end < len(s) && alphabetic(s[end]) {
			end++
		}
		return end
	}
	c, n := d.at(s, i)
	if c&(letter|mark) != 0 {
		return d.run(s, i+n, letter|mark)
	}
	if c&(newline|punctuation|symbol) == 0 && i+n < len(s) {
		if c, _ := d.at(s, i+n); c&(letter|mark) != 0 {
			return d.run(s, i+n, letter|mark)
		}
	}
	j := afterSpace(s, i)
	if k := d.run(s, j, punctuation|symbol); k > j {
		return d.run(s, k, newline)
	}
	if c&space != 0 {
		return d.spaces(s, i, true)
	}
	return -1
}

func alphabetic(b byte) bool   { b |= 0x20; return b >= 'a' && b <= 'z' }
func alphanumeric(b byte) bool { return alphabetic(b) || b >= '0' && b <= '9' }
