package report

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"trainer/internal/download"
)

func TestBytes(t *testing.T) {
	for n, want := range map[int64]string{0: "0 B", 999: "999 B", 1000: "1.0 kB", 183605: "183.6 kB", 999_960: "1.0 MB", 4_200_000_000: "4.2 GB", 7_000_000_000_000: "7.0 TB"} {
		if got := Bytes(n); got != want {
			t.Errorf("%d: got %q, want %q", n, got, want)
		}
	}
}

// A download of 100 MB in three files, of which one was there, and one takes 30 s.
func moves(to *Transfer) {
	const mb = 1_000_000
	s := download.State{File: "a", Here: 20 * mb, Whole: 20 * mb, Done: true, Skipped: true, Bytes: 20 * mb, Size: 100 * mb, Files: 3}
	to.Open()
	to.Move(s)
	for i := range 30 {
		time.Sleep(time.Second)
		to.Move(download.State{File: "b", Here: int64(i+1) * 2 * mb, Whole: 60 * mb, Bytes: int64(20+2*(i+1)) * mb, Size: 100 * mb, Files: 3})
	}
	to.Move(download.State{File: "b", Here: 60 * mb, Whole: 60 * mb, Done: true, Bytes: 80 * mb, Size: 100 * mb, Files: 3})
	to.Move(download.State{File: "c\x1b[2J", Here: 20 * mb, Whole: 20 * mb, Done: true, Bytes: 100 * mb, Size: 100 * mb, Files: 3})
	to.Close()
}

func TestTransferInLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		moves(&Transfer{Out: &out})
		want := "a is there\n40.0 MB of 100.0 MB  2.0 MB/s  eta 30s\n60.0 MB of 100.0 MB  2.0 MB/s  eta 20s\n80.0 MB of 100.0 MB  2.0 MB/s  eta 10s\nb, 60.0 MB\nc?[2J, 20.0 MB\n"
		if out.String() != want {
			t.Errorf("got\n%swant\n%s", out.String(), want)
		}
	})
}

func TestTransferOnATerminal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		moves(&Transfer{Out: &out, TTY: true, Width: 100})
		for _, want := range []string{"a is there\n", "b, 60.0 MB\n", "c?[2J, 20.0 MB\n", "60.0 MB of 100.0 MB  2.0 MB/s  eta 20s", "█", "100.0 MB of 100.0 MB"} {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%q is not in %q", want, out.String())
			}
		}
	})
}
