package tokenizer

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"unicode/utf8"
)

func itoa(i int) string { return strconv.Itoa(i) }

// tokenizerJSON reads a tokenizer.json; extra are tokens of the files beside it, which count where it lacks them.
func tokenizerJSON(file, src string, extra []added) (*pipeline, error) {
	s := &scanner{file: file, src: src}
	if !utf8.ValidString(src) {
		return nil, fmt.Errorf("%s: not UTF-8", file)
	}
	top, err := s.fields("tokenizer")
	if err == nil {
		err = s.finish()
	}
	if err != nil {
		return nil, err
	}
	b := &builder{t: &pipeline{control: map[string]int32{}}}
	for _, step := range []struct {
		name string
		read func(fields) error
	}{{"normalizer", b.normalizers}, {"pre_tokenizer", b.preTokenizer}, {"model", b.readModel}, {"decoder", b.decoder}, {"post_processor", b.postProcessor}} {
		part, ok, err := top.part(step.name)
		if err != nil {
			return nil, err
		}
		switch {
		case ok:
			err = step.read(part)
		case step.name == "model":
			err = s.fail(0, "model: missing; is this a tokenizer.json?")
		case step.name == "decoder":
			b.t.decoders = []decoder{spaceJoined}
		}
		if err != nil {
			return nil, err
		}
	}
	if err := b.addedTokens(top); err != nil {
		return nil, err
	}
	for _, t := range extra {
		if err := b.addExtra(file, t); err != nil {
			return nil, err
		}
	}
	return b.finish(top)
}

// part is sub of the top of the file, whose name nobody wants to read in paths.
func (f fields) part(name string) (fields, bool, error) {
	s, ok := f.value(name)
	if !ok {
		return fields{}, false, nil
	}
	part, err := s.fields(name)
	return part, true, err
}

// builder makes a pipeline out of the parts of a file.
type builder struct {
	t       *pipeline
	ids     map[string]int32 // of the model's vocabulary as the file spells it
	count   int              // of its entries
	byID    []string         // spelt as in the file, "" for an id without a token
	has     []bool
	tokens  []added
	growth  int            // how many times longer its steps may make a text
	indexOf map[string]int // in tokens, by content
	ranks   bool           // the vocabulary is bytes, not spelt in their alphabet
}

// normalizers reads the normalizer.
func (b *builder) normalizers(f fields) (err error) {
	b.t.normalizer, err = b.normalizer(f)
	return err
}

func (b *builder) normalizer(f fields) (normalizer, error) {
	kind, err := f.string("type")
	if err != nil {
		return nil, err
	}
	switch kind {
	case "NFC", "NFD", "NFKC", "NFKD":
		return form{unicodeForms(), kind[2] == 'K', kind[len(kind)-1] == 'C'}, nil
	case "Prepend":
		head, err := f.string("prepend")
		if err == nil && len(head) > maxGrowth {
			err = f.refuse("prepend", "%d bytes are not supported, %d are", len(head), maxGrowth)
		}
		return prepended(head), err
	case "Replace":
		from, to, err := b.replacement(f)
		return replaced{from, to}, err
	case "Sequence":
		var all inOrder
		err := f.each("normalizers", func(f fields) error {
			n, err := b.normalizer(f)
			all = append(all, n)
			return err
		})
		return all, err
	}
	return nil, f.unsupported(kind, "normalizers: NFC, NFD, NFKC, NFKD, Prepend, Replace, Sequence")
}

// maxGrowth bounds how many times longer the steps of a file may make a text: " " to "▁" is three times.
const maxGrowth = 64

// replacement reads what a Replace replaces, and by what.
func (b *builder) replacement(f fields) (from, to string, err error) {
	if from, err = f.literal("pattern"); err != nil {
		return "", "", err
	}
	if to, err = f.string("content"); err != nil {
		return "", "", err
	}
	b.growth = max(b.growth, 1) * max(1, (len(to)+len(from)-1)/len(from))
	if b.growth > maxGrowth {
		err = f.refuse("content", "makes texts more than %d times longer: not supported", maxGrowth)
	}
	return from, to, err
}

// unsupported refuses a type.
func (f fields) unsupported(kind, known string) error {
	return f.refuse("type", "%q is not supported: it would have to be exact, and only these are: %s", kind, known)
}

// literal is the text of a pattern that stands for itself.
func (f fields) literal(name string) (string, error) {
	pattern, ok, err := f.sub(name)
	if err != nil || !ok {
		return "", cmp.Or(err, f.refuse(name, "missing; a pattern should be here"))
	}
	text, err := pattern.optional("String")
	if err == nil && text == "" {
		err = pattern.fail(pattern.start, "%s: only a pattern String that is not empty is supported here", pattern.path)
	}
	return text, err
}

// preTokenizer reads the splitters. ByteLevel is the last, if there is one: what follows would see its alphabet.
func (b *builder) preTokenizer(f fields) error {
	if b.byteLevel() {
		return f.fail(f.start, "%s: a pre-tokenizer behind ByteLevel is not supported", f.path)
	}
	kind, err := f.string("type")
	if err != nil {
		return err
	}
	switch kind {
	case "Sequence":
		return f.each("pretokenizers", b.preTokenizer)
	case "ByteLevel":
		return b.preByteLevel(f)
	case "Split":
		s, err := split(f)
		b.t.splits = append(b.t.splits, s)
		return err
	case "Digits":
		single, err := f.flag("individual_digits", false)
		how := contiguous
		if single {
			how = isolated
		}
		digit := func(s string, i int) int { return matched(i, classes().digits(s, i, 1)) }
		b.t.splits = append(b.t.splits, patternSplit{next: digit, behavior: how})
		return err
	case "Metaspace":
		s, err := readMetaspace(f)
		b.t.splits, b.t.placed = append(b.t.splits, s), b.t.placed || s.scheme == "first"
		return err
	}
	return f.unsupported(kind, "pre-tokenizers: ByteLevel, Digits, Metaspace, Sequence, Split")
}

func (b *builder) byteLevel() bool { return b.t.model != nil && b.t.model.byteLevel }

func (b *builder) preByteLevel(f fields) error {
	b.t.model = &bpe{byteLevel: true}
	prefix, err := f.flag("add_prefix_space", true)
	if err != nil {
		return err
	}
	if prefix {
		b.t.splits = append(b.t.splits, spaced{})
	}
	regex, err := f.flag("use_regex", true)
	if regex {
		b.t.splits = append(b.t.splits, patternSplit{next: knownPattern(gpt2Pattern), behavior: isolated})
	}
	return err
}

// split reads a Split.
func split(f fields) (patternSplit, error) {
	var s patternSplit
	how, err := f.string("behavior")
	if err != nil {
		return s, err
	}
	s.behavior = behavior(how)
	if !slices.Contains([]behavior{isolated, removed, mergedWithPrevious, mergedWithNext, contiguous}, s.behavior) {
		return s, f.refuse("behavior", "%q is none of Isolated, Removed, MergedWithPrevious, MergedWithNext, Contiguous", how)
	}
	if s.invert, err = f.flag("invert", false); err != nil {
		return s, err
	}
	pattern, ok, err := f.sub("pattern")
	if err != nil || !ok {
		return s, cmp.Or(err, f.refuse("pattern", "missing; a pattern should be here"))
	}
	if _, ok := pattern.value("Regex"); !ok {
		text, err := f.literal("pattern")
		s.next = literal(text)
		return s, err
	}
	regex, err := pattern.string("Regex")
	if s.next = knownPattern(regex); err == nil && s.next == nil {
		err = pattern.refuse("Regex", "%q is not supported: only the patterns of Qwen, GPT, Llama 3, GLM, DeepSeek, Mistral and Kimi are, by their exact text", regex)
	}
	return s, err
}

func readMetaspace(f fields) (metaspace, error) {
	s := metaspace{}
	mark, err := f.string("replacement")
	if err != nil {
		return s, err
	}
	if utf8.RuneCountInString(mark) != 1 {
		return s, f.refuse("replacement", "%q is not one character", mark)
	}
	scheme, err := f.optional("prepend_scheme")
	if err != nil {
		return s, err
	}
	s.mark, s.scheme = mark, cmp.Or(scheme, "always")
	if !slices.Contains([]string{"always", "first", "never"}, s.scheme) {
		return s, f.refuse("prepend_scheme", "%q is none of always, first, never", s.scheme)
	}
	prefix, err := f.flag("add_prefix_space", true)
	if err != nil {
		return s, err
	}
	if !prefix && scheme != "" && scheme != "never" {
		return s, f.refuse("add_prefix_space", "false, and prepend_scheme is %q: they contradict each other", scheme)
	}
	if !prefix {
		s.scheme = "never"
	}
	s.cut, err = f.flag("split", true)
	return s, err
}

// decoder reads the decoder, after the model.
func (b *builder) decoder(f fields) error {
	kind, err := f.string("type")
	if err == nil && kind == "ByteLevel" {
		return nil // decoders stay nil
	}
	b.t.decoders = []decoder{}
	if err == nil {
		err = b.decoderStep(f)
	}
	return err
}

func (b *builder) decoderStep(f fields) error {
	kind, err := f.string("type")
	if err != nil {
		return err
	}
	add := func(d decoder) { b.t.decoders = append(b.t.decoders, d) }
	switch kind {
	case "Sequence":
		return f.each("decoders", b.decoderStep)
	case "ByteLevel":
		add(unmapped)
	case "ByteFallback":
		add(unfallen)
	case "Fuse":
		add(fused)
	case "Replace":
		from, to, err := b.replacement(f)
		add(replacing(from, to))
		return err
	case "Strip":
		content, err := f.string("content")
		if err != nil {
			return err
		}
		if utf8.RuneCountInString(content) != 1 {
			return f.refuse("content", "%q is not one character", content)
		}
		start, err := f.number("start", 0)
		if err != nil {
			return err
		}
		stop, err := f.number("stop", 0)
		add(stripping(content, start, stop))
		return err
	case "Metaspace":
		s, err := readMetaspace(f)
		add(metaspaced(s))
		return err
	default:
		return f.unsupported(kind, "decoders: ByteFallback, ByteLevel, Fuse, Metaspace, Replace, Sequence, Strip")
	}
	return nil
}

// postProcessor reads what comes before a lone text.
func (b *builder) postProcessor(f fields) error {
	kind, err := f.string("type")
	if err != nil {
		return err
	}
	switch kind {
	case "ByteLevel": // trims offsets, which ours are not
		return nil
	case "Sequence":
		return f.each("processors", b.postProcessor)
	case "TemplateProcessing":
		return b.template(f)
	}
	return f.unsupported(kind, "post-processors: ByteLevel, Sequence, TemplateProcessing")
}

func (b *builder) template(f fields) error {
	special, _, err := f.sub("special_tokens")
	if err != nil {
		return err
	}
	text := false
	return f.each("single", func(piece fields) error {
		token, ok, err := piece.sub("SpecialToken")
		if err != nil || !ok || text {
			text = text || !ok
			return err
		}
		name, err := token.string("id")
		if err != nil {
			return err
		}
		entry, ok, err := special.sub(name)
		if err != nil || !ok {
			return cmp.Or(err, token.refuse("id", "%q is not among the special_tokens", name))
		}
		s, ok := entry.value("ids")
		if !ok {
			return entry.refuse("ids", "missing; a list should be here")
		}
		return s.array(entry.path+".ids", func(int) error {
			id, err := s.id()
			b.t.begin = append(b.t.begin, id)
			return err
		})
	})
}
