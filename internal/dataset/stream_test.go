package dataset

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"trainer/recipe"
)

// spelled writes what a stream has read, one line a row.
func spelled(dst []byte, row Passing) ([]byte, error) {
	switch row.Format {
	case "ids":
		return fmt.Appendf(dst, "%s %v\n", row.At, row.IDs), nil
	case "text":
		return fmt.Appendf(dst, "%s %q\n", row.At, row.Text), nil
	}
	for _, ex := range row.Examples {
		dst = fmt.Appendf(dst, "%s %s %v %v\n", row.At, row.Format, ex.IDs, ex.Weights)
	}
	return dst, nil
}

func stream(t *testing.T, s Stream, in string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	s.Name, s.Render = "in.jsonl", spelled
	if s.Template == nil {
		s.Template = byteTemplate(t, recipe.Chat{})
	}
	err := s.Run(context.Background(), strings.NewReader(in), &out)
	return out.String(), err
}

func TestStream(t *testing.T) {
	packed := func(text string) string {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		_, _ = io.WriteString(z, text)
		_ = z.Close()
		return b.String()
	}
	for _, c := range []struct {
		name     string
		stream   Stream
		in, want string
		fault    string
	}{
		{"text", Stream{}, "{\"text\": \"a\\n\"}\n\n{\"text\": \"\", \"more\": 1}", "in.jsonl:1 \"a\\n\"\nin.jsonl:3 \"\"\n", ""},
		{"a list of rows", Stream{}, `[{"text": "a"}, {"text": "b"}]`, "in.jsonl:1 \"a\"\nin.jsonl:1 \"b\"\n", ""},
		{"gzip", Stream{}, packed(`{"text": "a"}`), "in.jsonl:1 \"a\"\n", ""},
		{"a limit", Stream{Limit: 1}, "{\"text\": \"a\"}\n{", "in.jsonl:1 \"a\"\n", ""},
		{"ids", Stream{IDs: true}, "{\"ids\": [1, 2]}\n{\"ids\": []}", "in.jsonl:1 [1 2]\nin.jsonl:2 []\n", ""},
		{"rows that train nothing", Stream{}, `{"messages": [{"role": "user", "content": "q"}]}`, "in.jsonl:1 messages [256 259 113 257] [0 0 0 0]\n", ""},
		{"bad JSON behind sound rows", Stream{}, "{\"text\": \"a\"}\n{\"text\": 1}\n{\"text\": \"b\"}", "in.jsonl:1 \"a\"\n", "in.jsonl:2: text: a number where text is due"},
		{"no UTF-8", Stream{}, "{\"text\": \"\xff\"}", "", "in.jsonl:1: not JSON: byte 11: \xff is no UTF-8"},
		{"nothing", Stream{}, "\n", "", "in.jsonl: empty; there is no row in it"},
		{"a first row of no use", Stream{}, "{\n{\"text\": \"a\"}", "", "in.jsonl:1: not JSON"},
		{"another shape", Stream{}, "{\"text\": \"a\"}\n{\"prompt\": \"a\"}", "in.jsonl:1 \"a\"\n", "in.jsonl:2: text: missing; the row has prompt"},
		{"no known shape", Stream{}, `{"x": 1}`, "", "in.jsonl:1: auto: no format is known by the columns x"},
		{"an id that is none", Stream{IDs: true}, `{"ids": [1.5]}`, "", "in.jsonl:1: ids.0: \"1.5\" is not a token id"},
		{"no ids", Stream{IDs: true}, `{"text": "a"}`, "", "in.jsonl:1: ids: missing; the row has text"},
		{"Parquet", Stream{}, "PAR1....", "", "in.jsonl: a Parquet file is not read as a stream"},
		{"gzip that is cut off", Stream{}, packed(`{"text": "a"}`)[:12], "", "in.jsonl: "},
		{"a list that is cut off", Stream{}, `[{"text": "a"},`, "in.jsonl:1 \"a\"\n", "in.jsonl:1: the list ends without its ]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := stream(t, c.stream, c.in)
			if got != c.want {
				t.Errorf("wrote %q, want %q", got, c.want)
			}
			if (err == nil) != (c.fault == "") || err != nil && !strings.HasPrefix(err.Error(), strings.ReplaceAll(c.fault, "\xff is no UTF-8", "")) {
				t.Errorf("got %v, want %s", err, c.fault)
			}
		})
	}
}

func TestAStreamKeepsOrder(t *testing.T) {
	var in, want strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&in, "{\"text\": \"%d\"}\n", i)
		fmt.Fprintf(&want, "in.jsonl:%d \"%d\"\n", i+1, i)
	}
	got, err := stream(t, Stream{}, in.String())
	if err != nil || got != want.String() {
		t.Errorf("rows came out of order: %v", err)
	}
}

func TestAStreamEndsWithItsWriter(t *testing.T) {
	full := errors.New("no room")
	s := Stream{Name: "in", Render: spelled}
	err := s.Run(context.Background(), strings.NewReader(strings.Repeat("{\"text\": \"a\"}\n", 50_000)), failing{full})
	if !errors.Is(err, full) {
		t.Errorf("got %v, want %v", err, full)
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	stopped := errors.New("stopped")
	cancel(stopped)
	if err := s.Run(ctx, strings.NewReader(`{"text": "a"}`), io.Discard); !errors.Is(err, stopped) && err != nil {
		t.Errorf("got %v, want %v", err, stopped)
	}
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }
