package recipe

import (
	"path/filepath"
	"strings"

	"trainer/loss"
)

// Loop is the loop that the loss type decides, and with a loss that can learn from rows, whether a teacher is asked.
func (r *Recipe) Loop() loss.Loop {
	k, ok := lossKind(r.Loss.Type)
	if !ok {
		return ""
	}
	return k.In(r.Rollout != nil || r.Teacher != nil)
}

// Taught says that the rows have what a teacher made of their tokens, in their teacher_logprobs. They go through the loop of what is
// computed from scores, as those of preferences do.
func (r *Recipe) Taught() bool { return r.Loss.Type == "reverse_kl" && r.Loop() == loss.Preference }

// RunName is what a run is called: the name, or the stem of the file with what a folder's name can't hold everywhere
// replaced by "-".
func (r *Recipe) RunName() string {
	if r.Name != "" {
		return r.Name
	}
	stem := strings.TrimSuffix(filepath.Base(r.path), filepath.Ext(r.path))
	var b strings.Builder
	for _, c := range stem {
		if nameFault("a"+string(c)+"a") != "" {
			c = '-'
		}
		if b.Len() < maxName {
			b.WriteRune(c)
		}
	}
	if name := strings.TrimRight(b.String(), "."); nameFault(name) == "" {
		return name
	}
	return "run"
}

// Resolved is the recipe as a file with every value of its loop, each with its origin in a comment. Load reads it back
// from any folder, with the same values and the same Hash.
func (r *Recipe) Resolved() []byte {
	var b strings.Builder
	for _, l := range r.lines() {
		indent := strings.Repeat("  ", l.depth)
		if l.item {
			indent = indent[2:] + "- "
		}
		b.WriteString(indent)
		b.WriteString(quote(l.name) + ":")
		if !l.head {
			b.WriteString(" " + l.text + " # " + l.origin.String())
		}
		b.WriteByte('\n')
	}
	return []byte(b.String())
}
