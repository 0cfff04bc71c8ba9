package runs

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

func TestPath(t *testing.T) {
	for _, c := range []struct {
		env  map[string]string
		want string
	}{
		{map[string]string{"XDG_STATE_HOME": "/s", "HOME": "/h"}, "/s/trainer/runs.jsonl"},
		{map[string]string{"HOME": "/h"}, "/h/.local/state/trainer/runs.jsonl"},
		{map[string]string{"XDG_STATE_HOME": "relative", "HOME": "/h"}, "/h/.local/state/trainer/runs.jsonl"},
		{nil, ""},
	} {
		got, err := Path(func(k string) string { return c.env[k] })
		if got != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%v: got %q, %v, want %q", c.env, got, err, c.want)
		}
	}
}

func TestWhatIsRememberedComesBack(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a", "b", "runs.jsonl")
	if got, err := List(path); len(got) != 0 || err != nil {
		t.Errorf("a file that is missing: %v, %v", got, err)
	}
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			if err := Remember(path, Entry{time.Unix(int64(i), 0), fmt.Sprint("run ", i), fmt.Sprintf("/runs/%d", i%10), "http://x"}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	// A line that a kill has cut, and what is no entry.
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString("[]\n{\"dir\":\"relative\"}\n{\"time\":\"20"); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	last := Entry{time.Unix(99, 0), "again", "/runs/3", ""}
	if err := Remember(path, last); err != nil {
		t.Fatal(err)
	}
	got, err := List(path)
	if err != nil || len(got) != 10 {
		t.Fatalf("%d entries, %v", len(got), err)
	}
	for _, e := range got {
		if e.Dir == "/runs/3" && (e.RunID != last.RunID || !e.Time.Equal(last.Time)) {
			t.Errorf("the newest of a folder is %+v", e)
		}
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}
