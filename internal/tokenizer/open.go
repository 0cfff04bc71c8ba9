package tokenizer

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// maxFile bounds the files that are read; the largest vocabulary published is a tenth of it.
const maxFile = 512 << 20

// Open reads the tokenizer of a folder as models are published in, or of a file, in which case nothing beside it counts:
// tokenizer.json; tiktoken.model or *.tiktoken; tekken.json. Where several stand in a folder, the first of these is it. What of a
// file is not supported is an error that names it and its place.
//
// In a folder, tokens of tokenizer_config.json (added_tokens_decoder), or of added_tokens.json where that has none, count where the
// vocabulary lacks them. Kimi's own code cuts a text after 400,000 characters, and after 25,000 without a change between white space and
// the rest, before it looks at it; we do not.
func Open(path string) (*Tokenizer, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("tokenizer: %w", err)
	}
	if !info.IsDir() {
		return openFile(path, companions{})
	}
	beside, err := readCompanions(path)
	if err != nil {
		return nil, err
	}
	file, err := vocabularyFile(path)
	if err != nil {
		return nil, err
	}
	t, err := openFile(file, beside)
	if err != nil {
		return nil, err
	}
	t.config, t.templates = beside.config, beside.templates
	return t, beside.finish(t)
}

// vocabularyFile is the file of a folder that holds the vocabulary.
func vocabularyFile(folder string) (string, error) {
	for _, pattern := range []string{"tokenizer.json", "tiktoken.model", "*.tiktoken", "tekken.json"} {
		found, err := filepath.Glob(filepath.Join(escapeGlob(folder), pattern))
		if err != nil {
			return "", fmt.Errorf("tokenizer: %w", err)
		}
		if len(found) > 1 {
			return "", fmt.Errorf("%s: several vocabularies, %s and %s; name one", folder, filepath.Base(found[0]), filepath.Base(found[1]))
		}
		if len(found) == 1 {
			return found[0], nil
		}
	}
	for _, other := range []string{"tokenizer.model", "spiece.model", "sentencepiece.bpe.model", "vocab.txt"} {
		if _, err := os.Stat(filepath.Join(folder, other)); err == nil {
			return "", unread(filepath.Join(folder, other))
		}
	}
	return "", fmt.Errorf("%s: no tokenizer.json, tiktoken.model, *.tiktoken or tekken.json", folder)
}

// unread refuses a file that no vocabulary is read from, with the one to bring.
func unread(path string) error {
	switch name := filepath.Base(path); {
	case strings.HasSuffix(name, ".model"):
		return fmt.Errorf("%s: a vocabulary of SentencePiece, which is not read as it is; bring the tokenizer.json that "+
			"AutoTokenizer.from_pretrained(FOLDER).save_pretrained(FOLDER) of transformers writes beside it", path)
	case name == "vocab.txt":
		return fmt.Errorf("%s: a vocabulary of WordPiece, which is not supported; %s", path, otherwise)
	}
	return fmt.Errorf("%s: a tokenizer is tokenizer.json, tiktoken.model, *.tiktoken, tekken.json, or a folder with one of these", path)
}

// otherwise is what helps where a vocabulary is of a kind that we have not.
const otherwise = "rows that its own program has turned into ids need no tokenizer here (dataset.format: tokens)"

func escapeGlob(path string) string {
	return strings.NewReplacer(`*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}

// openFile reads a vocabulary by the kind of file it is.
func openFile(path string, beside companions) (*Tokenizer, error) {
	data, err := readFile(path)
	if err != nil {
		return nil, err
	}
	return parse(path, data, beside)
}

// parse is openFile of what was read.
func parse(path, data string, beside companions) (*Tokenizer, error) {
	h := sha256.New()
	h.Write([]byte(data))
	var p *pipeline
	var err error
	switch name := filepath.Base(path); {
	case strings.HasPrefix(name, "tekken") && strings.HasSuffix(name, ".json"):
		p, err = tekken(path, data)
	case strings.HasSuffix(name, ".json"):
		if p, err = tokenizerJSON(path, data, beside.added); err == nil && len(p.extra) > 0 {
			fmt.Fprintf(h, "%+v", p.extra)
		}
	case name == "tiktoken.model" || strings.HasSuffix(name, ".tiktoken"):
		var kind tiktokenKind
		if kind, err = beside.tiktoken(name); err == nil {
			p, err = tiktoken(path, data, kind)
			fmt.Fprintf(h, "%+v", kind)
		}
	default:
		err = unread(path)
	}
	if err != nil {
		return nil, err
	}
	name := filepath.Base(path)
	if name == "tokenizer.json" || name == "tiktoken.model" || name == "tekken.json" {
		name = cmp.Or(strings.TrimPrefix(filepath.Base(filepath.Dir(path)), "."), name)
	}
	return &Tokenizer{name: name, hash: hex.EncodeToString(h.Sum(nil)), vocabulary: p, begin: p.begin, end: -1}, nil
}

func readFile(path string) (string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", fmt.Errorf("tokenizer: %w", err)
	}
	if info.Size() > maxFile {
		return "", fmt.Errorf("%s: %d bytes are more than any tokenizer has; at most %d are read", path, info.Size(), maxFile)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("tokenizer: %w", err)
	}
	if bytes.HasPrefix(data, []byte("version https://git-lfs")) {
		return "", fmt.Errorf("%s: a pointer of Git LFS, not the file: git lfs pull fetches it", path)
	}
	return string(data), nil
}

// optionalFile is a file that may be missing.
func optionalFile(path string) (data string, ok bool, err error) {
	data, err = readFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", false, nil
	}
	return data, err == nil, err
}
