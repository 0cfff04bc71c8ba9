package dataset

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"
	"unicode/utf8"
)

func seeds() []string {
	return []string{``, ` `, `{}`, `[]`, `null`, `{"a":1}`, `{"a":{"b":[1,2,{"c":null}]},"d":"\u00e9\ud83d\ude00\n"}`, `[1,-0,0.5,1e9,1E-2,-1.5e+3]`, `01`, `1.`, `-`, `1e`,
		`"\x"`, `"\u12"`, `"\ud800"`, `"\ud800\ud800"`, `"\udc00\ud800"`, "\"\xff\"", "\"\t\"", `"a`, `{"a" 1}`, `{"a":1,}`, `{,}`, `[1,]`, `[,]`, `{"a":1 "b":2}`, `tru`, `true false`, `"\"`, `{"a":1,"a":2}`,
		"\ufeff{}", `{"":""}`, "[\n1,\r\n 2]", `{"a":"]}"}`, strings.Repeat("[", 300), strings.Repeat("[", 150) + strings.Repeat("]", 150)}
}

// FuzzCheck holds the checker against encoding/json: what it lets through is valid and means the same; what it refuses
// is invalid, or one of what this room refuses on purpose.
func FuzzCheck(f *testing.F) {
	for _, s := range seeds() {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		err := check(raw)
		if err != nil {
			onPurpose := !utf8.Valid(raw) || strings.Contains(err.Error(), "stands here twice") ||
				strings.Contains(err.Error(), "half of a pair") || strings.Contains(err.Error(), "nested more")
			if json.Valid(raw) && !onPurpose {
				t.Fatalf("%q is valid, but: %v", raw, err)
			}
			return
		}
		var want any
		d := json.NewDecoder(bytes.NewReader(raw))
		d.UseNumber()
		if err := d.Decode(&want); err != nil {
			t.Fatalf("%q is let through, but: %v", raw, err)
		}
		got, err := tree(trimmed(raw))
		if err != nil {
			t.Fatalf("%q: %v", raw, err)
		}
		if a, b := fmt.Sprintf("%#v", got), fmt.Sprintf("%#v", want); a != b {
			t.Fatalf("%q is read as %s, want %s", raw, a, b)
		}
	})
}

// tree reads a value by the same steps as the formats do.
func tree(v value) (any, error) {
	switch {
	case v.isNull():
		return nil, nil
	case v.isText():
		return v.text(), nil
	case v.isList():
		out := []any{}
		for i, item := range v.items() {
			if i != len(out) || string(v.item(i)) != string(item) {
				return nil, fmt.Errorf("element %d comes as number %d", len(out), i)
			}
			sub, err := tree(item)
			if err != nil {
				return nil, err
			}
			out = append(out, sub)
		}
		return out, nil
	case v.isObject():
		out := map[string]any{}
		for key, item := range v.members() {
			if string(v.member(string(key))) != string(item) {
				return nil, fmt.Errorf("member %q is not found by its key", key)
			}
			sub, err := tree(item)
			if err != nil {
				return nil, err
			}
			out[string(key)] = sub
		}
		return out, nil
	}
	if is, ok := v.truth(); ok {
		return is, nil
	}
	n, ok := v.number()
	if want, err := json.Number(v).Float64(); !ok || (n != want && !math.IsInf(n, 0)) {
		return nil, fmt.Errorf("number %s is read as %v, want %v (%v)", v, n, want, err)
	}
	return json.Number(v), nil
}

// FuzzSplit holds the splitter against plain splitting: of lines by bytes.Split, of a list by encoding/json; and each
// row must be found again at its offset and line. A small limit and a small buffer reach their branches.
func FuzzSplit(f *testing.F) {
	for _, s := range seeds() {
		f.Add([]byte(s))
	}
	for _, s := range []string{"{}\n{}", "\n\n{}\r\n \n{}\n", "[{},{}]", " [ {\"a\":\n[1]} ,\r\n{} ] ", "[1,\"a,]\",null]", "[{} {}]", "[{},]", "[{", "[]x", "[}]", "[\"\\\"\",2]", "\ufeff[{}]", "\ufeff\n{}"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		rows, where, err := splitAll(bytes.NewReader(file), 1<<20)
		for i, row := range rows {
			at := where[i]
			if got := file[at.offset : at.offset+int64(at.length)]; !bytes.Equal(got, row) {
				t.Fatalf("%q: row %q is said to be at %d, where %q is", file, row, at.offset, got)
			}
			if line := 1 + bytes.Count(file[:at.offset], []byte("\n")); line != at.line {
				t.Fatalf("%q: row %q is said to be in line %d, not %d", file, row, at.line, line)
			}
		}
		body := bytes.TrimPrefix(file, []byte("\ufeff"))
		var list []json.RawMessage
		switch start := bytes.TrimLeft(body, " \t\r\n"); {
		case bytes.HasPrefix(start, []byte("[")):
			if json.Unmarshal(body, &list) == nil && (err != nil || len(list) != len(rows)) {
				t.Fatalf("%q is a list of %d, split into %d rows (%v)", file, len(list), len(rows), err)
			}
			if sound := err == nil && !bytes.ContainsFunc(file, func(r rune) bool { return r == utf8.RuneError }); sound && json.Unmarshal(body, &list) != nil {
				for _, row := range rows {
					if !json.Valid(row) {
						return // the row's own check refuses it
					}
				}
				t.Fatalf("%q is no list, but splits into sound rows %q", file, rows)
			}
		case err == nil:
			n := 0
			for _, line := range bytes.Split(body, []byte("\n")) {
				if len(bytes.Trim(line, " \t\r")) > 0 {
					n++
				}
			}
			if n != len(rows) {
				t.Fatalf("%q has %d lines, split into %d rows", file, n, len(rows))
			}
		}
		short, _, _ := splitAll(bytes.NewReader(file), 8)
		for _, row := range short {
			if len(row) > 8 {
				t.Fatalf("%q: a row of %d bytes passes a limit of 8", file, len(row))
			}
		}
	})
}

func splitAll(r io.Reader, limit int) (rows [][]byte, where []rawRow, err error) {
	s, err := newSplitter(r)
	if err != nil {
		return nil, nil, err
	}
	s.max = limit
	for {
		row, at, err := s.next(nil)
		if err == io.EOF {
			return rows, where, nil
		}
		if err != nil {
			return rows, where, err
		}
		if !at.long {
			rows, where = append(rows, row), append(where, at)
		}
	}
}

func TestARowBeyondTheLimitIsSkippedWhole(t *testing.T) {
	long := `{"a": "` + strings.Repeat("x", 3<<20) + `"}`
	for name, file := range map[string]string{
		"lines": "{}\n" + long + "\n{}\n",
		"list":  "[{},\n" + long + ",\n{}]",
	} {
		s, err := newSplitter(strings.NewReader(file))
		if err != nil {
			t.Fatal(err)
		}
		s.max = 2 << 20
		var got []string
		for {
			row, at, err := s.next(nil)
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, fmt.Sprint(string(row), at.line, at.long))
		}
		if want := "[{}1 false 2 true {}3 false]"; fmt.Sprint(got) != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
}

func TestSkipPlainStopsAtWhatItShould(t *testing.T) {
	for at := range 20 {
		for b := range 256 {
			s := []byte(strings.Repeat("a", 24))
			s[at], s[22] = byte(b), '"'
			want := at
			if b >= 0x20 && b < 0x80 && b != '"' && b != '\\' {
				want = 22
			}
			for from := range at + 1 {
				if got := skipPlain(s, from); got != want {
					t.Fatalf("byte 0x%02x at %d, from %d: stops at %d, want %d", b, at, from, got, want)
				}
			}
		}
	}
}
