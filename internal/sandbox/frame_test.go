package sandbox

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
)

// frames is a log of n records.
func frames(n int) (log []byte, ends []int) {
	var chain uint32
	for i := range n {
		body := bytes.Repeat([]byte{byte(i)}, i*3)
		front, back, crc := seal(chain, fmt.Appendf(nil, `{"kind":"%d"}`, i), body)
		log = slices.Concat(log, front, body, back)
		chain = crc
		ends = append(ends, len(log))
	}
	return log, ends
}

func TestALogIsReadUpToItsLastWholeRecord(t *testing.T) {
	log, ends := frames(5)
	for size := range len(log) + 1 {
		whole := 0
		for whole < len(ends) && ends[whole] <= size {
			whole++
		}
		want := 0
		if whole > 0 {
			want = ends[whole-1]
		}
		n := 0
		good, _, err := scan(bytes.NewReader(log[:size]), int64(size), func(head []byte, body span) error {
			if got := log[body.at : body.at+body.size]; string(head) != fmt.Sprintf(`{"kind":"%d"}`, n) || len(got) != n*3 {
				t.Errorf("record %d of a log of %d bytes: got %q and %d bytes", n, size, head, len(got))
			}
			n++
			return nil
		})
		if err != nil || n != whole || good != int64(want) {
			t.Errorf("a log of %d bytes: got %d records, %d bytes, %v; want %d records, %d bytes", size, n, good, err, whole, want)
		}
	}
}

func TestADamagedByteIsNeverReadOver(t *testing.T) {
	log, ends := frames(5)
	for i := range log {
		bad := slices.Clone(log)
		bad[i] ^= 0x10
		whole := 0
		for whole < len(ends) && ends[whole] <= i {
			whole++
		}
		n := 0
		_, _, err := scan(bytes.NewReader(bad), int64(len(bad)), func([]byte, span) error { n++; return nil })
		if n != whole {
			t.Errorf("byte %d damaged: got %d records, want the %d before it", i, n, whole)
		}
		if last := whole == len(ends)-1; (err == nil) != last {
			t.Errorf("byte %d damaged: got %v; want an error where records follow, and a cut at the end", i, err)
		}
	}
}

func FuzzScan(f *testing.F) {
	log, _ := frames(3)
	f.Add(log)
	f.Add(log[:len(log)-1])
	f.Add(make([]byte, 64))
	f.Add([]byte{1, 0, 0, 0, 255, 255, 255, 255, 'x', 0, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		good, _, _ := scan(bytes.NewReader(b), int64(len(b)), func(head []byte, body span) error {
			if len(head) == 0 || body.at+body.size > int64(len(b)) {
				t.Errorf("a record outside of the log: %d bytes at %d of %d", body.size, body.at, len(b))
			}
			return newState().replay(head, body)
		})
		if good < 0 || good > int64(len(b)) {
			t.Errorf("%d of %d bytes are good", good, len(b))
		}
	})
}
