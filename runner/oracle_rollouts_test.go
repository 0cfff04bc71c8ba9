package runner_test

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
)

// rollouts: a step trains from a rollout batch whose samples are on disk before its first intent, drawn under weights that are
// ancestors of those that it changes; every completion of it says that it is of the version that the batch is of.
func (o *oracle) rollouts(dir string) {
	per := 0 // steps that a batch feeds: samples are under the number of its first one
	for _, e := range o.records {
		if s := e.number("step"); e.text("type") == "intent" && e.text("kind") == "sample" && s > 0 && (per == 0 || s < per) {
			per = s
		}
	}
	stored := map[int]entry{}
	for _, e := range o.records {
		switch e.text("type") {
		case "rollout":
			stored[e.number("batch")] = e
			o.samples(dir, e)
		case "create":
			if from, ok := e["from"].(map[string]any); ok {
				for b, r := range stored {
					if r.number("version") > entry(from).number("updates") {
						delete(stored, b)
					}
				}
			}
		case "intent":
			if per == 0 || e.text("kind") != "forward_backward" {
				continue
			}
			if r, ok := stored[e.number("step")/per]; !ok {
				o.fault("record %d: step %d is trained before its samples are stored", e.number("n"), e.number("step"))
			} else if r.number("version") > e.number("expect") {
				o.fault("record %d: step %d has %d updates, and its samples are of %d", e.number("n"), e.number("step"), e.number("expect"), r.number("version"))
			}
		}
	}
}

// samples holds the file of a rollout batch to its record.
func (o *oracle) samples(dir string, e entry) {
	data, err := os.ReadFile(filepath.Join(dir, e.text("file")))
	if err != nil {
		o.fault("rollout batch %d: %v", e.number("batch"), err)
		return
	}
	if sum := sha256.Sum256(data); hex.EncodeToString(sum[:]) != e.text("sha256") {
		o.fault("rollout batch %d: its file is not that of its record", e.number("batch"))
	}
	for in := bufio.NewScanner(bytes.NewReader(data)); in.Scan(); {
		var c struct {
			Member  int
			Version int `json:"weights_version"`
		}
		if err := json.Unmarshal(in.Bytes(), &c); err != nil {
			o.fault("rollout batch %d: %v", e.number("batch"), err)
		} else if c.Member >= 0 && c.Version != e.number("weights_version") {
			o.fault("rollout batch %d: a completion is of version %d, the batch of %d", e.number("batch"), c.Version, e.number("weights_version"))
		}
	}
}
