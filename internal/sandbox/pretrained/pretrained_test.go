package pretrained

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"testing"

	"trainer/internal/sandbox/engine"
	"trainer/internal/sandbox/pretrained/curriculum"
)

// The file's hash. What the model was trained from, and every run on it, has these weights.
const fileHash = "0b884753a4ec9dba80bd74c296aeab24b1895c0e47ae5940091cfa33289b08e2"

func TestTheFileIsTheOneThatWasTaught(t *testing.T) {
	if got := fmt.Sprintf("%x", sha256.Sum256(file)); got != fileHash {
		t.Errorf("tiny.safetensors has the hash %s, want %s", got, fileHash)
	}
	if len(file) >= 1e6 {
		t.Errorf("tiny.safetensors has %d bytes, want less than a million", len(file))
	}
	if got := Tiny().Config(); got != curriculum.Shape() {
		t.Errorf("the file's shape is %+v, want %+v", got, curriculum.Shape())
	}
	// Another version of the engine would teach other weights.
	if !bytes.Contains(file[:4096], []byte(`"engine":"`+engine.Version+`"`)) {
		t.Errorf("tiny.safetensors was not taught by %s: teach the model anew, see CONTRIBUTING.md", engine.Version)
	}
}

// What sandbox/pretrained-tiny knows before anything is trained on it: greedy answers, right to the letter and to their end, to
// questions whose contents were never trained. docs/sandbox.md has the measured shares.
func TestWhatTheModelKnows(t *testing.T) {
	w := engine.NewModel(Tiny(), nil).Publish()
	for task, floor := range map[string]float64{
		"copy": 0.95, "upper": 0.95, "reverse": 0.75, "last": 0.9, "largest": 0.9, "count": 0.9, "sum": 0.4, "add": 0.4, "story": 0.95,
	} {
		lessons := curriculum.Exam(task, 100)
		got, err := curriculum.Grade(w, lessons)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: %.2f of %d", task, got, len(lessons))
		if got < floor {
			t.Errorf("%s: %.2f of %d answers are right, want %.2f", task, got, len(lessons), floor)
		}
	}
}
