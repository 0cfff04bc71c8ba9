package recipe

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"unicode"
	"unicode/utf8"

	"trainer/internal/diag"
)

// maxFile bounds a recipe: a thousand times what people write, and nothing to parse.
const maxFile = 1 << 20

// readFile reads a recipe, or says in one problem why it is none. Its kind and size are asked before it is opened: a
// device or a pipe could block for ever, a large file would cost its size.
func readFile(path string) ([]byte, *diag.Problem) {
	no := func(format string, a ...any) ([]byte, *diag.Problem) {
		return nil, &diag.Problem{Pos: diag.Pos{File: path}, Msg: fmt.Sprintf(format, a...)}
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return no("no such file%s", meant(path))
	case err != nil:
		return no("reading the recipe: %v", cause(err))
	case info.IsDir():
		return no("is a folder; name the recipe in it")
	case !info.Mode().IsRegular():
		return no("is not a regular file")
	case info.Size() > maxFile:
		return no("has %d bytes; a recipe has at most %d: is it a data file?", info.Size(), maxFile)
	}
	f, err := os.Open(path)
	if err != nil {
		return no("reading the recipe: %v", cause(err))
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return no("reading the recipe: %v", cause(err))
	}
	if len(data) > maxFile {
		return no("has more than %d bytes: is it a data file?", maxFile)
	}
	return data, nil
}

// meant is the file that a path most likely means, as "; did you mean …?", or "". Only the folder that the path names
// is looked at.
func meant(path string) string {
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		return ""
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return diag.DidYouMean(filepath.Base(path), names)
}

// cause is an error without the path that the place already gives.
func cause(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

// checkText finds what no text file holds; it returns the text without a byte order mark.
func checkText(data []byte, file string) ([]byte, *diag.Problem) {
	if bytes.HasPrefix(data, []byte{0xff, 0xfe}) || bytes.HasPrefix(data, []byte{0xfe, 0xff}) {
		return nil, &diag.Problem{Pos: diag.Pos{File: file, Line: 1, Col: 1}, Msg: "is UTF-16; save it as UTF-8"}
	}
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	line, col, start := 1, 1, 0
	for i := 0; i < len(data); {
		r, size := utf8.DecodeRune(data[i:])
		at := diag.Pos{File: file, Line: line, Col: col}
		switch {
		case r == utf8.RuneError && size == 1:
			return nil, &diag.Problem{Pos: at, Msg: fmt.Sprintf("byte 0x%02X, byte %d of the line, is not UTF-8; save the file as UTF-8", data[i], i-start+1)}
		case r == 0:
			return nil, &diag.Problem{Pos: at, Msg: "is not text: it has a zero byte"}
		case unicode.IsControl(r) && r != '\n' && r != '\r' && r != '\t' && r != '\u0085' || r == '\ufeff' || r == '\ufffe' || r == '\uffff':
			return nil, &diag.Problem{Pos: at, Msg: fmt.Sprintf("the character U+%04X can't stand in YAML; write it as an escape in double quotes", r)}
		}
		i, col = i+size, col+1
		if r == '\n' || r == '\r' && !bytes.HasPrefix(data[i:], []byte("\n")) {
			line, col, start = line+1, 1, i
		}
	}
	return data, nil
}
