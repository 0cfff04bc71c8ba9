package jinja

import (
	"bufio"
	"encoding/json"
	"flag"
	"os"
	"testing"
	"time"
)

var golden = flag.String("golden", "testdata/golden.jsonl", "templates with jinja2's answers, made by testdata/reference.py")

// Where Python renders, so do we, byte for byte; where it raises, so do we. What is Unsupported by name may be refused
// although Python renders it, and is counted; the features that chat templates use are none of it.
func TestGolden(t *testing.T) {
	lines := goldenLines(t)
	var vars map[string]json.RawMessage
	if err := json.Unmarshal(lines[0], &vars); err != nil {
		t.Fatal(err)
	}
	given, err := Decode(lines[0])
	if err != nil {
		t.Fatal(err)
	}
	same, refused, unsupported := 0, 0, 0
	for _, line := range lines[1:] {
		var c struct{ T, Err, Out string }
		if err := json.Unmarshal(line, &c); err != nil {
			t.Fatal(err)
		}
		got, err := renderText(c.T, given.(*Dict))
		e, _ := err.(*Error)
		switch {
		case c.Err != "" && err == nil:
			t.Errorf("%q renders %.200q, in Python it is a %s", c.T, got, c.Err)
		case c.Err != "":
			refused++
		case err == nil && got != c.Out:
			t.Errorf("%q\n got  %.300q\n want %.300q", c.T, got, c.Out)
		case err == nil:
			same++
		case e.Kind == "Unsupported":
			unsupported++
			t.Logf("%s: %v", c.T, err)
		default:
			t.Errorf("%q: %v, want %.100q", c.T, err, c.Out)
		}
	}
	t.Logf("%d texts are Python's, %d refused as there, %d refused as unsupported", same, refused, unsupported)
	if unsupported*20 > same {
		t.Errorf("%d templates are refused as unsupported, of %d that Python renders", unsupported, same+unsupported)
	}
}

// noon is the time that every test is at.
func noon() time.Time { return time.Date(2026, time.July, 4, 12, 0, 0, 0, time.UTC) }

func goldenLines(t *testing.T) (lines [][]byte) {
	f, err := os.Open(*golden)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	s := bufio.NewScanner(f)
	s.Buffer(nil, 1<<24)
	for s.Scan() {
		lines = append(lines, append([]byte(nil), s.Bytes()...))
	}
	if err := s.Err(); err != nil || len(lines) < 2 {
		t.Fatalf("%s: %d lines, %v", *golden, len(lines), err)
	}
	return lines
}

func renderText(source string, vars *Dict) (string, error) {
	t, err := Parse(source)
	if err != nil {
		return "", err
	}
	out, err := t.Render(vars, Options{Now: noon})
	if err != nil {
		return "", err
	}
	return out.Text, nil
}
