package runner

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// Sampled is what a file of samples says of a completion.
type Sampled struct {
	Row      int       `json:"row"`    // of the prompt in its set, from 0
	Member   int       `json:"member"` // of its group, from 0; -1: the prompt was not sampled, and the rest is empty
	Prompt   string    `json:"prompt"` // as it was rendered
	Text     string    `json:"text"`
	Stop     string    `json:"stop"`
	Tokens   []int32   `json:"tokens"`   // [T], the one that ended it among them
	Logprobs []float64 `json:"logprobs"` // [T], natural logs
}

// EvalSamples is the file of a run folder with what its evaluation behind done steps has sampled, in its newest session;
// empty where it sampled nothing.
func EvalSamples(dir string, done int) string {
	for gen := mostRollbacks + 1; gen >= 0; gen-- {
		path := filepath.Join(dir, filepath.FromSlash(evalFile(done, gen)))
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	return ""
}

// ReadSamples gives the lines of a file of samples to each, in order. It ends at the first error.
func ReadSamples(path string, each func(Sampled) error) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	for dec := json.NewDecoder(bufio.NewReader(f)); dec.More(); {
		var s Sampled
		if err := dec.Decode(&s); err != nil {
			return fmt.Errorf("read %s: %w", path, err)
		}
		if err := each(s); err != nil {
			return err
		}
	}
	return nil
}
