package sandbox

import (
	"bytes"
	"net/http"
	"strings"
	"testing"

	"trainer/internal/wire"
)

// inference makes an inference checkpoint and returns the addresses of its merged files by name.
func (c *client) inference() map[string]string {
	c.t.Helper()
	id := c.tiny()
	c.learn(id, 1, row("hello"))
	var saved wire.InferenceCheckpointOutput
	c.run(id, wire.KindInferenceCheckpoint, "", &saved)
	var files wire.CheckpointFiles
	c.ok("GET", wire.PathCheckpoints+"/"+saved.Checkpoint.ID+"/download?variant="+string(wire.VariantMerged), "", &files)
	out := map[string]string{}
	for _, f := range files.Data {
		out[f.Filename] = strings.TrimPrefix(f.URL, host)
	}
	return out
}

func TestFilesComeInRanges(t *testing.T) {
	bothWays(t, func(t *testing.T, open opener) {
		_, c := open(t, Options{})
		path := c.inference()["model.safetensors"]
		whole := c.try("GET", path, "")
		tag, n := whole.header.Get("Etag"), len(whole.body)
		if whole.status != 200 || tag == "" || whole.header.Get("Accept-Ranges") != "bytes" {
			t.Fatalf("the whole: %d, %v", whole.status, whole.header)
		}
		for _, tt := range []struct {
			name     string
			ask      []string
			status   int
			from, to int // of the body
		}{
			{"the first bytes", []string{"Range", "bytes=0-9"}, 206, 0, 10},
			{"from an offset on", []string{"Range", "bytes=1000-"}, 206, 1000, n},
			{"the last bytes", []string{"Range", "bytes=-7"}, 206, n - 7, n},
			{"beyond the end is cut", []string{"Range", "bytes=1000-99999999999"}, 206, 1000, n},
			{"only behind the end", []string{"Range", "bytes=99999999999-"}, 416, 0, 0},
			{"backwards is no range", []string{"Range", "bytes=9-3"}, 416, 0, 0},
			{"another unit is ignored", []string{"Range", "tokens=0-9"}, 200, 0, n},
			{"of the same file", []string{"Range", "bytes=5-9", "If-Range", tag}, 206, 5, 10},
			{"of a file that has changed", []string{"Range", "bytes=5-9", "If-Range", `"other"`}, 200, 0, n},
			{"what is known already", []string{"If-None-Match", tag}, 304, 0, 0},
		} {
			got := c.try("GET", path, "", tt.ask...)
			if got.status != tt.status || got.err != nil {
				t.Errorf("%s: got %d, %v; want %d", tt.name, got.status, got.err, tt.status)
			}
			if tt.status < 300 && !bytes.Equal(got.body, whole.body[tt.from:tt.to]) {
				t.Errorf("%s: got %d bytes, want those from %d to %d", tt.name, len(got.body), tt.from, tt.to)
			}
			if ranged := got.header.Get("Content-Range") != ""; ranged != (tt.status == 206 || tt.status == 416) {
				t.Errorf("%s: Content-Range is %q", tt.name, got.header.Get("Content-Range"))
			}
		}
	})
}

func TestARangeNeedsTheSignature(t *testing.T) {
	_, c := open(t, Options{})
	path, _, _ := strings.Cut(c.inference()["config.json"], "?")
	if got := c.try("GET", path+"?sig=x", "", "Range", "bytes=0-1"); got.status != http.StatusForbidden {
		t.Errorf("got %d", got.status)
	}
}

func TestAStaleAddressIsRefusedOnce(t *testing.T) {
	bothWays(t, func(t *testing.T, open opener) {
		_, c := open(t, Options{}, "stale-address:at=1")
		path := c.inference()["config.json"]
		first, second := c.try("GET", path, ""), c.try("GET", path, "")
		if first.status != http.StatusForbidden || !bytes.Contains(first.body, []byte("expired_address")) || second.status != 200 {
			t.Errorf("got %d %s, then %d", first.status, first.body, second.status)
		}
	})
}
