package tokenizer

import (
	"sort"
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

func (t *pipeline) append(dst []int32, text string, counts counter) []int32 {
	e := t.take()
	defer t.put(e)
	return e.append(dst, text, counts)
}

func (t *pipeline) encode(known Encoded, from int, text string, counts counter) ([]int32, []int) {
	e := t.take()
	defer t.put(e)
	return e.encode(known, from, text, counts)
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
	a := t.find(id)
	return a != nil && a.control
}

// find is the added token of this id, nil for none.
func (t *pipeline) find(id int32) *added {
	i := sort.Search(len(t.added), func(i int) bool { return t.added[i].id >= id })
	if i == len(t.added) || t.added[i].id != id {
		return nil
	}
	return &t.added[i]
}

// parts: a token that is looked for before anything else is done to the text, and that leaves the space behind it alone.
func (t *pipeline) parts(id int32) bool {
	a := t.find(id)
	return a != nil && a.control && !a.normalized && !a.rstrip
}

func (t *pipeline) longest() int {
	if t.raw == nil {
		return 0
	}
	return t.raw.long
}
