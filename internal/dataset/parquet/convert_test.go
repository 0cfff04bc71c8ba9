package parquet

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"math/big"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

func convert(t testing.TB, file []byte, limit int) (string, error) {
	t.Helper()
	var out bytes.Buffer
	w := bufio.NewWriter(&out)
	err := Convert(context.Background(), bytes.NewReader(file), int64(len(file)), limit, w)
	if flushed := w.Flush(); flushed != nil {
		t.Fatal(flushed)
	}
	return out.String(), err
}

func goldens(t testing.TB) []string {
	t.Helper()
	names, err := filepath.Glob("testdata/*.parquet")
	if err != nil || len(names) < 10 {
		t.Fatalf("%v in testdata (%v)", names, err)
	}
	return names
}

func read(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// The rows are those that pyarrow reads.
func TestConvertAsPyarrow(t *testing.T) {
	for _, name := range goldens(t) {
		t.Run(filepath.Base(name), func(t *testing.T) {
			got, err := convert(t, read(t, name), -1)
			if err != nil {
				t.Fatal(err)
			}
			want := strings.SplitAfter(string(read(t, strings.TrimSuffix(name, ".parquet")+".jsonl")), "\n")
			lines := strings.SplitAfter(got, "\n")
			if len(lines) != len(want) {
				t.Fatalf("%d rows, want %d", len(lines)-1, len(want)-1)
			}
			for i := range lines[:len(lines)-1] {
				if a, b := tree(t, lines[i]), tree(t, want[i]); !reflect.DeepEqual(a, b) {
					t.Errorf("row %d:\ngot  %swant %s", i+1, lines[i], want[i])
				}
			}
		})
	}
}

// tree is a row with its numbers as exact fractions.
func tree(t *testing.T, row string) any {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(row))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%s: %v", row, err)
	}
	return exact(v)
}

func exact(v any) any {
	switch v := v.(type) {
	case json.Number:
		if r, ok := new(big.Rat).SetString(string(v)); ok {
			return r.RatString()
		}
	case []any:
		for i := range v {
			v[i] = exact(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = exact(v[k])
		}
	}
	return v
}

func TestLimitStopsEarly(t *testing.T) {
	whole, err := convert(t, read(t, "testdata/zstd-v2.parquet"), -1)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(whole, "\n")
	for _, limit := range []int{0, 1, 7, 8, 99, 100, 101} {
		got, err := convert(t, read(t, "testdata/zstd-v2.parquet"), limit)
		if want := strings.Join(lines[:min(limit, 100)], ""); err != nil || got != want {
			t.Errorf("limit %d: %d bytes (%v), want %d", limit, len(got), err, len(want))
		}
	}
}

func TestConvertStopsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancelCause(context.Background())
	cause := errors.New("enough")
	cancel(cause)
	b := read(t, "testdata/plain.parquet")
	if err := Convert(ctx, bytes.NewReader(b), int64(len(b)), -1, bufio.NewWriter(io.Discard)); !errors.Is(err, cause) {
		t.Errorf("got %v, want %v", err, cause)
	}
}

// A file that was cut anywhere, or of which a byte was changed, gives an error, or rows that are no more than the file's
// own, and never brings the program down.
func TestTornFiles(t *testing.T) {
	for _, name := range goldens(t) {
		b := read(t, name)
		for _, n := range []int{0, 1, 4, 11, 12, len(b) / 2, len(b) - 9, len(b) - 1} {
			if _, err := convert(t, b[:n], -1); err == nil {
				t.Errorf("%s: its first %d bytes of %d are taken for a file", name, n, len(b))
			}
		}
		for i := 0; i < len(b); i += 1 + len(b)/100 {
			torn := bytes.Clone(b)
			torn[i] ^= 0xff
			// nothing is promised but an end, and that it is told in words of the file
			if _, err := convert(t, torn, -1); err != nil && strings.Contains(err.Error(), "runtime error") {
				t.Errorf("%s: byte %d is torn: %v", name, i, err)
			}
		}
	}
}

func TestSizesAreNotBelieved(t *testing.T) {
	b := read(t, "testdata/plain.parquet")
	binary.LittleEndian.PutUint32(b[len(b)-8:], 1<<31)
	if _, err := convert(t, b, -1); err == nil || !strings.HasPrefix(err.Error(), "damaged: a description of 2147483648 bytes") {
		t.Errorf("a description of 2 GiB: %v", err)
	}
	b = read(t, "testdata/plain.parquet")
	copy(b[len(b)-4:], "PARE")
	if _, err := convert(t, b, -1); err == nil || err.Error() != "encrypted; that is not read" {
		t.Errorf("an encrypted file: %v", err)
	}
}

func TestACodecThatTrustsItsInputIsRefused(t *testing.T) {
	want := `column ["n"]: a page at byte 18: compressed with LZ4_RAW, which is not read; write the file with snappy, zstd, gzip or brotli`
	if _, err := convert(t, read(t, "testdata/refused/lz4.parquet"), -1); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func FuzzConvert(f *testing.F) {
	for _, name := range goldens(f) {
		if b := read(f, name); len(b) < 8000 {
			f.Add(b)
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		out, err := convert(t, b, 1000)
		if rows := strings.Count(out, "\n"); err == nil && rows > 1000 {
			t.Fatalf("%d rows beyond the limit", rows)
		}
	})
}
