package dataset

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"trainer/internal/chat"
	"trainer/internal/diag"
	"trainer/internal/hub"
	"trainer/loss"
	"trainer/recipe"
)

// Bounds of what is kept for a person to read, and of an epoch that weights make.
const (
	shownProblems = 20
	keptSkipped   = 1000
	maxEpochLen   = 1 << 30
)

// Data is a recipe's dataset, every row of it checked.
type Data struct {
	Train *Set
	Held  *Set // for evaluation; nil when the recipe asks for none

	Skipped     []diag.Problem // bad rows left out under on_bad_row: skip, the first 1000
	SkippedRows int            // all of them
	Identical   []diag.Problem // pairs left out under on_identical_pair: drop, the first 1000
	Same        int            // all of them
	Dropped     int            // rows left out as overlong
	Cut         int            // rows cut to max_length
	Leaked      int            // rows of Train whose equal is in Held: what an evaluation measures on those is memory

	sources []*source
}

// Sources lists the sources of the recipe, those of train before those of validation, with what became of their rows. Rows
// counts those that are in either set.
func (d *Data) Sources() []SourceInfo {
	out := make([]SourceInfo, len(d.sources))
	for i, s := range d.sources {
		out[i] = s.info()
		out[i].Rows = s.counts.Seen - s.counts.Bad - s.counts.Overlong - s.counts.Same
	}
	return out
}

// Open reads every row of the recipe's sources: renders it, masks it, and says all that is wrong at once. t may be nil
// where no tokenizer is at hand: then only rows of tokens can be read. The error is a diag.List where the recipe, files
// or rows are at fault, of which the first 20 bad rows are listed and the rest counted; else it is the context's.
func Open(ctx context.Context, r *recipe.Recipe, t *chat.Template, h *hub.Hub) (*Data, error) {
	o := &opener{r: r, x: &index{section: r.Dataset, template: t, copies: copiesIn(h.Cache)}, data: &Data{}, left: map[*source]*tally{}}
	if r.Loop() == loss.Supervised {
		o.x.soft, _ = r.Loss.Params.(*loss.ForwardKL)
	}
	train, err := o.find(ctx, h, r.Dataset.Train)
	if err != nil {
		return nil, err
	}
	held, err := o.find(ctx, h, r.Dataset.Validation)
	if err != nil {
		return nil, err
	}
	o.validationWeights()
	if err := o.x.scan(ctx, slices.Concat(train, held), o.collect); err != nil {
		return nil, err
	}
	o.data.sources = slices.Concat(train, held)
	for _, s := range o.data.sources {
		o.judge(s)
	}
	o.data.Train = o.set("train", train, r.Dataset.Shuffle)
	if len(held) > 0 {
		o.data.Held = o.set("validation", held, false)
	}
	if len(o.problems) == 0 && r.Dataset.ValidationSplit != nil {
		o.holdOut(*r.Dataset.ValidationSplit)
	}
	if len(o.problems) == 0 {
		o.epochLength()
		o.data.Leaked = leaked(o.data.Train, o.data.Held)
	}
	if o.hidden > 0 {
		all := diag.Pos{File: fmt.Sprintf("%d of %d rows are at fault", o.hidden+shownProblems, o.seen)}
		o.problems.Add(all, "", "%d of them are not listed; dataset.on_bad_row: skip leaves bad rows out", o.hidden)
	}
	if err := o.problems.Err(); err != nil {
		return nil, err
	}
	return o.data, nil
}

// copiesIn is the folder of unpacked copies in a cache.
func copiesIn(cache string) string {
	if cache == "" {
		return ""
	}
	return filepath.Join(cache, "rows")
}

// opener collects what a dataset is made of, and every problem of it.
type opener struct {
	r    *recipe.Recipe
	x    *index
	data *Data
	left map[*source]*tally

	problems diag.List
	shown    int // bad rows among the problems
	hidden   int // bad rows that are only counted
	seen     int // rows
}

// tally is what is left of a source.
type tally struct {
	entries   []entry   // in file order
	broken    bool      // a problem says why it has not all its rows
	untrained untrained // and not skipped
	skipped   *placed   // the first bad row that was skipped
	same      int       // pairs of two equal sides
}

// fail adds a problem at a key of a source, as ".path".
func (o *opener) fail(s *source, key, format string, a ...any) {
	o.left[s].broken = true
	key = s.section.Key + key
	o.problems.Add(o.r.At(key), key, format, a...)
}

// find opens the files of the sources. The error is the context's.
func (o *opener) find(ctx context.Context, h *hub.Hub, sections []recipe.Source) ([]*source, error) {
	var out []*source
	for _, section := range sections {
		s := &source{section: section, base: len(o.x.files), takes: o.r.Formats(), graded: len(o.r.Reward) > 0, soft: o.x.soft != nil, taught: o.r.Taught(), teacher: o.r.Teacher}
		if l, ok := o.r.Loss.Params.(*loss.ReverseKL); ok {
			s.sampled = s.taught && l.IsCorrection
		}
		o.left[s] = &tally{}
		out = append(out, s)
		if section.Subset != nil && !strings.HasPrefix(section.Path, hub.Scheme) {
			o.fail(s, ".subset", "%q: only an hf:// dataset has subsets; leave it out", *section.Subset)
			continue
		}
		files, err := h.Rows(ctx, Named(section))
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if err != nil {
			o.fail(s, ".path", "%v", err)
			continue
		}
		s.files = files
		if want := section.SHA256; want != nil && !strings.EqualFold(*want, s.hash()) {
			o.fail(s, ".sha256", "%s is due, but what is there has %s", *want, s.hash())
		}
		for range files {
			o.x.owner = append(o.x.owner, s)
		}
		o.x.files = append(o.x.files, files...)
	}
	return out, nil
}

// validationWeights refuses weights that change nothing: an evaluation sees each row once.
func (o *opener) validationWeights() {
	for _, section := range o.r.Dataset.Validation {
		if key := section.Key + ".weight"; section.Weight != 1 {
			o.problems.Add(o.r.At(key), key, "%v: an evaluation sees every row once, so a weight has no effect here; leave it out", section.Weight)
		}
	}
}

// collect takes what came of some rows, in file order.
func (o *opener) collect(c checked) {
	left := o.left[c.source]
	left.add(c)
	left.same += len(c.same)
	rows := len(c.entries) + len(c.faults) + c.dropped + len(c.same)
	n := &c.source.counts
	n.Seen, n.Overlong, n.Cut, n.Same = n.Seen+rows, n.Overlong+c.dropped, n.Cut+c.cut, n.Same+len(c.same)
	o.seen += rows
	n.add(c.entries)
	o.data.Dropped += c.dropped
	o.data.Cut += c.cut
	o.data.Same += len(c.same)
	o.data.Identical = append(o.data.Identical, c.same[:min(len(c.same), keptSkipped-len(o.data.Identical))]...)
	for _, f := range c.faults {
		o.fault(c.source, f)
	}
	for _, p := range c.fatal {
		left.broken = true
		o.problems = append(o.problems, p)
	}
	if c.refused != nil {
		o.fail(c.source, c.refused.key, "%s", c.refused.msg)
	}
}

// fault counts a bad row, and shows it while few are.
func (o *opener) fault(s *source, f placed) {
	switch skip := o.r.Dataset.OnBadRow == "skip" && !f.overlong; {
	case skip:
		s.counts.Bad++
		if left := o.left[s]; left.skipped == nil {
			left.skipped = &f
		}
		if o.data.SkippedRows++; len(o.data.Skipped) < keptSkipped {
			o.data.Skipped = append(o.data.Skipped, f.at(f.pos))
		}
		if f.untrained {
			s.counts.Untrained++
		}
		return
	case f.untrained:
		o.left[s].untrained.add(f)
	case o.shown < shownProblems:
		o.shown++
		o.problems = append(o.problems, f.at(f.pos))
	default:
		o.hidden++
	}
	o.left[s].broken = true
}

// judge looks at a source when all of it was read.
func (o *opener) judge(s *source) {
	left := o.left[s]
	if left.untrained.rows > 0 {
		o.problems = append(o.problems, left.untrained.problem(s.counts.Seen))
	}
	if !left.broken && len(left.entries) == 0 {
		o.fail(s, ".path", "%s: none of its %d rows is left: %d are bad and skipped, %d overlong and dropped%s",
			s.section.Path, s.counts.Seen, s.counts.Bad, s.counts.Overlong, left.identical()+left.why())
	}
	if !left.broken {
		for _, p := range s.unseen() {
			o.fail(s, p.key, "%s", p.msg)
		}
	}
}

// add appends the rows of a block. Room is made for as many as the source will have at this rate, so that a large index is
// hardly ever held twice, as it is where a slice grows; no more than sixteen times those at hand, as the rate may change.
func (t *tally) add(c checked) {
	n := len(t.entries) + len(c.entries)
	if n > cap(t.entries) {
		room := n
		if c.read > 0 {
			room = max(room, int(float64(n)*min(16, 1.02*float64(c.of)/float64(c.read))))
		}
		if limit := c.source.section.Limit; limit != nil {
			room = max(n, min(room, *limit))
		}
		t.entries = append(make([]entry, 0, room), t.entries...)
	}
	t.entries = append(t.entries, c.entries...)
}

// identical says how many pairs had nothing to compare, where there were any.
func (t *tally) identical() string {
	if t.same == 0 {
		return ""
	}
	return fmt.Sprintf(", %d pairs of two equal sides", t.same)
}

// why is the fault of the first bad row that was skipped, where there was one.
func (t *tally) why() string {
	if t.skipped == nil {
		return ""
	}
	p := t.skipped.at(t.skipped.pos)
	return "; the first bad row: " + p.String()
}

// set joins the rows of sources.
func (o *opener) set(tag string, sources []*source, shuffle bool) *Set {
	s := &Set{x: o.x, tag: tag, sources: sources, shuffle: shuffle}
	for i, src := range sources {
		from, left := len(s.entries), o.left[src]
		if i == 0 {
			s.entries = left.entries
		} else {
			s.entries = append(s.entries, left.entries...)
		}
		left.entries = nil
		s.parts = append(s.parts, part{from, len(s.entries), src.section.Weight})
	}
	return s
}

// holdOut moves a share of train's rows, drawn by seed over all sources, to a set of their own.
func (o *opener) holdOut(split recipe.Split) {
	n := o.data.Train.Len()
	k := split.Rows
	if k == 0 {
		k = max(1, int(math.Round(split.Share*float64(n))))
	}
	if k >= n {
		o.problems.Add(o.r.At("dataset.validation_split"), "dataset.validation_split", "holds out %d of %d rows, which leaves none to train on", k, n)
		return
	}
	tag := fmt.Sprintf("validation_split %d of %d by seed %d", k, n, o.r.Seed)
	o.data.Train, o.data.Held = o.data.Train.divide(heldOut(o.r.Seed, n, k), tag)
}

// epochLength refuses weights that leave a source out, or make an epoch that fits no memory.
func (o *opener) epochLength() {
	total := 0.0
	for i, p := range o.data.Train.parts {
		s := o.data.Train.sources[i]
		n := p.to - p.from
		if total += p.weight * float64(n); total > maxEpochLen {
			o.fail(s, ".weight", "%v times %d rows make an epoch of more than %d rows", p.weight, n, maxEpochLen)
			return
		}
		if p.epochLen() == 0 {
			o.fail(s, ".weight", "%v of %d rows leaves none of them in an epoch", p.weight, n)
		}
	}
}
