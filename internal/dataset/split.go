package dataset

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"strings"

	"trainer/internal/dataset/parquet"
)

// maxRow bounds a row in bytes: a file without line ends must not fill the memory.
const maxRow = 64 << 20

// rawRow is where a row stands in its file. Line counts from 1: its first, where it has several.
type rawRow struct {
	offset int64
	length int
	line   int
	long   bool // more than maxRow bytes; none of them were kept
}

// splitter finds the rows of a file of JSON lines, or of one JSON list, in bounded memory. It looks no deeper than it
// must: whether a row is sound JSON is for check to say.
type splitter struct {
	r      *bufio.Reader
	offset int64 // of the next byte
	line   int   // of the next byte
	max    int

	list  bool
	begun bool // the first element of the list was read
	ended bool
}

// splitFault is a fault behind which no further row can be found.
type splitFault struct {
	line int
	msg  string
}

func (f *splitFault) Error() string { return fmt.Sprintf("line %d: %s", f.line, f.msg) }

// foreign are files of which one knows at once that no row stands in them, by how they begin.
var foreign = map[string]string{
	"PK\x03\x04":       "a zip archive; unpack it first",
	"BZh":              "compressed with bzip2; unpack it first, or pack it with gzip or zstd",
	"\xFD7zX":          "compressed with xz; unpack it first, or pack it with gzip or zstd",
	"\x1F\x8B":         "compressed twice; unpack it once",
	"\x28\xB5\x2F\xFD": "compressed twice; unpack it once",
	parquet.Magic:      "Parquet inside of a compressed file; unpack it first: Parquet is compressed by itself",
	"ARROW1":           "Arrow; write it as Parquet or JSON lines",
	"SQLite":           "a database; write its rows as Parquet or JSON lines",
	"\x80\x04":         "a pickle; write its rows as Parquet or JSON lines",

	"\x04\x22\x4D\x18":        "compressed with lz4; unpack it first, or pack it with gzip or zstd",
	"\xFF\x06\x00\x00sNaPpY":  "compressed with snappy; unpack it first, or pack it with gzip or zstd",
	"7z\xBC\xAF":              "an archive; unpack it first",
	"Rar!":                    "an archive; unpack it first",
	"Obj\x01":                 "Avro; write its rows as Parquet or JSON lines",
	"ORC":                     "ORC; write its rows as Parquet or JSON lines",
	"\x93NUMPY":               "an array of NumPy; write its rows as JSON lines, {\"tokens\": […]} where it holds token ids",
	"\x89HDF":                 "HDF5; write its rows as Parquet or JSON lines",
	"%PDF":                    "a PDF; write its text as JSON lines, {\"text\": …}",
	"<!DOCTYPE":               webPage,
	"<!doctype":               webPage,
	"<html":                   webPage,
	"<?xml":                   "XML; write its rows as Parquet or JSON lines",
	"version https://git-lfs": "a pointer of Git LFS and not the file that it points to; `git lfs pull` fetches that",
	"\x00\x00\x00\x00":        "zero bytes; is the file whole?",
}

const webPage = "a web page; was it downloaded as it should be? a refused download, or the page about a file, looks so"

// tarName is where a tar archive says that it is one.
const tarName = 257

// newSplitter reads as far as it takes to tell lines from a list.
func newSplitter(r io.Reader) (*splitter, error) {
	s := &splitter{r: bufio.NewReaderSize(r, 1<<20), line: 1, max: maxRow}
	start, err := s.r.Peek(tarName + len("ustar"))
	if err != nil && err != io.EOF {
		return nil, err
	}
	switch {
	case len(start) > tarName && bytes.HasPrefix(start[tarName:], []byte("ustar")):
		return nil, &splitFault{1, "a tar archive; unpack it first"}
	case bytes.HasPrefix(start, []byte("\xEF\xBB\xBF")):
		s.skipBytes(3)
	case bytes.HasPrefix(start, []byte("\xFF\xFE\x00\x00")), bytes.HasPrefix(start, []byte("\x00\x00\xFE\xFF")):
		return nil, &splitFault{1, "UTF-32; save it as UTF-8"}
	case bytes.HasPrefix(start, []byte("\xFF\xFE")), bytes.HasPrefix(start, []byte("\xFE\xFF")):
		return nil, &splitFault{1, "UTF-16; save it as UTF-8"}
	case len(start) > 1 && (start[0] == 0) != (start[1] == 0) && strings.ContainsAny(string(start[:2]), "{["):
		return nil, &splitFault{1, "UTF-16 or UTF-32 without a byte order mark; save it as UTF-8"}
	}
	for magic, what := range foreign {
		if bytes.HasPrefix(start, []byte(magic)) {
			return nil, &splitFault{1, what}
		}
	}
	b, err := s.peekPastSpace()
	if err == io.EOF {
		return s, nil
	}
	switch s.list = b == '['; {
	case err != nil:
	case s.list:
		s.skipBytes(1)
	default:
		lines, _ := s.r.Peek(s.r.Buffered())
		err = notLines(lines, s.line)
	}
	return s, err
}

// notLines is the fault of a file that cannot be JSON lines, by the lines that it begins with: a table, or a row that goes over
// several lines. A single line that is no row is a bad row as any.
func notLines(start []byte, line int) error {
	first, rest, _ := bytes.Cut(start, []byte("\n"))
	second, _, _ := bytes.Cut(rest, []byte("\n"))
	first, second = bytes.TrimSpace(first), bytes.TrimSpace(second)
	if string(first) == "{" && !bytes.HasPrefix(second, []byte("{")) {
		return &splitFault{line, "a row over several lines; in JSON lines a row is one line, as `jq -c .` writes it: or make the file a list, [ … ]"}
	}
	if bytes.HasPrefix(first, []byte("{")) || bytes.HasPrefix(second, []byte("{")) {
		return nil
	}
	for _, between := range []string{"\t", ",", ";"} {
		if n := bytes.Count(first, []byte(between)); n > 0 && n == bytes.Count(second, []byte(between)) {
			return &splitFault{line, fmt.Sprintf("it looks like a table, as in CSV, which is not read; this writes JSON lines of it: "+
				`python3 -c 'import csv,json,sys; [print(json.dumps(r)) for r in csv.DictReader(sys.stdin, delimiter=%q)]'`, between)}
		}
	}
	return nil
}

// next appends the bytes of the next row to dst. The error is io.EOF at the end, a *splitFault where the file cannot be
// split further, or of reading.
func (s *splitter) next(dst []byte) ([]byte, rawRow, error) {
	if s.list {
		return s.element(dst)
	}
	return s.row(dst)
}

// row reads a line that is not blank, without its line end.
func (s *splitter) row(dst []byte) ([]byte, rawRow, error) {
	base := len(dst)
	for {
		row := rawRow{offset: s.offset, line: s.line}
		for {
			part, err := s.r.ReadSlice('\n')
			s.offset += int64(len(part))
			if dst = append(dst, part...); len(dst)-base > s.max+2 {
				dst, row.long = dst[:base], true
			}
			if err == bufio.ErrBufferFull {
				continue
			}
			if err != nil && err != io.EOF {
				return dst[:base], rawRow{}, err
			}
			if err == io.EOF && s.offset == row.offset {
				return dst[:base], rawRow{}, io.EOF
			}
			break
		}
		s.line++
		if dst = trimSpace(dst, base); row.long || len(dst)-base > s.max {
			row.long = true
			return dst[:base], row, nil
		}
		if row.length = len(dst) - base; row.length > 0 {
			return dst, row, nil
		}
	}
}

// trimSpace cuts the space behind dst[base:]; what is all space is cut whole.
func trimSpace(dst []byte, base int) []byte {
	for len(dst) > base && isSpace(dst[len(dst)-1]) {
		dst = dst[:len(dst)-1]
	}
	return dst
}

// element reads an element of the list.
func (s *splitter) element(dst []byte) ([]byte, rawRow, error) {
	b, err := s.peekPastSpace()
	switch {
	case err == io.EOF && s.ended:
		return dst, rawRow{}, io.EOF
	case err == io.EOF:
		return dst, rawRow{}, &splitFault{s.line, "the list ends without its ]; is the file whole?"}
	case err != nil:
		return dst, rawRow{}, err
	case s.ended:
		return dst, rawRow{}, &splitFault{s.line, fmt.Sprintf("%q follows the end of the list", b)}
	}
	if b == ']' && !s.begun {
		s.skipBytes(1)
		s.ended = true
		return s.element(dst)
	}
	s.begun = true
	dst, row, err := s.scan(dst)
	if err != nil {
		return dst, rawRow{}, err
	}
	return dst, row, s.separator()
}

// separator reads what stands between two elements, or ends the list.
func (s *splitter) separator() error {
	b, err := s.peekPastSpace()
	switch {
	case err == io.EOF:
		return nil // the next call says so
	case err != nil:
		return err
	case b == ',':
		s.skipBytes(1)
	case b == ']':
		s.skipBytes(1)
		s.ended = true
	default:
		return &splitFault{s.line, fmt.Sprintf("a comma or ] is due behind a row of the list, not %q", b)}
	}
	return nil
}

// nesting is where in an element the scan is.
type nesting struct {
	depth           int
	inText, escaped bool
}

// scan reads to the end of an element: where the brackets that it opened are closed, or where a comma or ] stands
// outside of any.
func (s *splitter) scan(dst []byte) ([]byte, rawRow, error) {
	row := rawRow{offset: s.offset, line: s.line}
	base := len(dst)
	var at nesting
	for ended := false; !ended; {
		part, err := s.buffered()
		if err == io.EOF {
			return dst[:base], row, &splitFault{row.line, "the row is not closed by the end of the file; is the file whole?"}
		}
		if err != nil {
			return dst[:base], row, err
		}
		var n int
		n, ended = at.over(part)
		if dst = append(dst, part[:n]...); len(dst)-base > s.max {
			dst, row.long = dst[:base], true
		}
		s.line += bytes.Count(part[:n], []byte{'\n'})
		s.skipBytes(n)
	}
	if row.long {
		return dst[:base], row, nil
	}
	dst = trimSpace(dst, base)
	if row.length = len(dst) - base; row.length == 0 {
		return dst, row, &splitFault{row.line, "a row is due in the list, not a comma or ]"}
	}
	return dst, row, nil
}

// buffered is what is at hand to read, at least a byte.
func (s *splitter) buffered() ([]byte, error) {
	if _, err := s.r.Peek(1); err != nil {
		return nil, err
	}
	return s.r.Peek(s.r.Buffered())
}

// over steps through part, to behind the end of the element where that is in it.
func (at *nesting) over(part []byte) (n int, ended bool) {
	for n < len(part) {
		if at.inText && !at.escaped {
			if n = skipPlain(part, n); n == len(part) {
				break
			}
		}
		b := part[n]
		if !at.inText && at.depth == 0 && (b == ',' || b == ']') {
			return n, true
		}
		n++
		switch {
		case at.escaped:
			at.escaped = false
		case at.inText:
			at.escaped, at.inText = b == '\\', b != '"'
		case b == '"':
			at.inText = true
		case b == '{' || b == '[':
			at.depth++
		case b == '}' || b == ']':
			at.depth--
		}
		if at.depth <= 0 && !at.inText && (b == '}' || b == ']' || b == '"') {
			return n, true
		}
	}
	return n, false
}

func (s *splitter) peekPastSpace() (byte, error) {
	for {
		b, err := s.r.Peek(1)
		if err != nil {
			return 0, err
		}
		if !isSpace(b[0]) {
			return b[0], nil
		}
		s.count(b[0])
		if _, err := s.r.Discard(1); err != nil {
			return 0, err
		}
	}
}

func (s *splitter) count(b byte) {
	s.offset++
	if b == '\n' {
		s.line++
	}
}

// skipBytes steps over n bytes that were peeked at, whose line ends are counted.
func (s *splitter) skipBytes(n int) {
	n, _ = s.r.Discard(n)
	s.offset += int64(n)
}
