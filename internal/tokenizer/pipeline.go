package tokenizer

import (
	"slices"
	"sync"
)

// pipeline is a tokenizer as files describe them: added tokens are cut out of the text, the rest is normalized, tokens that are
// looked for in normalized text are cut out, the rest is split into words, and the words are encoded by the model.
type pipeline struct {
	raw, late  *matcher // added tokens that are looked for before and after normalizing
	normalizer normalizer
	splits     []splitter
	placed     bool // whether a splitter asks where a piece stood
	model      *bpe
	decoders   []decoder // nil where the texts of tokens are bytes
	shown      []string  // by id: the text of the token as the decoders take it
	absent     map[int32]bool

	added   []added          // in order of id
	control map[string]int32 // control tokens by their content
	begin   []int32
	extra   []added // those of added that came from files beside the vocabulary

	mutex sync.Mutex
	idle  []*encoder // that no call uses
}

// keepIdle bounds what is remembered between calls: more encoders than that are for a burst of callers.
const keepIdle = 64

func (t *pipeline) size() int { return len(t.shown) }

func (t *pipeline) known(id int32) bool { return !t.absent[id] }

func (t *pipeline) encode(dst []int32, text string, counts counter, ends bool) ([]int32, []int) {
	e := t.take()
	defer t.put(e)
	return e.encode(dst, text, counts, ends)
}

func (t *pipeline) take() *encoder {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if n := len(t.idle); n > 0 {
		e := t.idle[n-1]
		t.idle = t.idle[:n-1]
		return e
	}
	return newEncoder(t)
}

func (t *pipeline) put(e *encoder) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if len(t.idle) < keepIdle {
		t.idle = append(t.idle, e)
	}
}

func (t *pipeline) controlID(name string) (int32, bool) {
	id, ok := t.control[name]
	return id, ok
}

func (t *pipeline) isControl(id int32) bool {
	i, ok := slices.BinarySearchFunc(t.added, id, func(a added, id int32) int { return int(a.id) - int(id) })
	return ok && t.added[i].control
}
