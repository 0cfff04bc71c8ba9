package runner

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"

	"trainer/internal/dataset"
	"trainer/internal/grader"
	"trainer/internal/rollout"
	"trainer/recipe"
)

// mostSampling is how many sample requests of a rollout batch are in flight.
const mostSampling = 16

// sample is the stage that draws the rollout batches of this life, in order. How it ends is in f.
func (f *fromRollouts) sample(ctx context.Context) {
	err := caught(func() error { return f.sampleAll(ctx) })
	halted := errors.Is(err, errHalted)
	if halted {
		err = nil
	}
	f.change(func() { f.over, f.left, f.err = true, f.left || halted, err })
}

func (f *fromRollouts) sampleAll(ctx context.Context) error {
	for b := f.r.from / f.per; b < min(f.batches(), f.r.until/f.per+f.lag); b++ {
		if _, ok := f.r.rolled(b); ok {
			continue
		}
		under, err := f.weights(ctx, b)
		if err != nil {
			return err
		}
		if err := f.one(ctx, b, under); err != nil {
			return fmt.Errorf("rollout batch %d: %w", b+1, err)
		}
	}
	return nil
}

// weights waits for those that batch b is sampled under.
func (f *fromRollouts) weights(ctx context.Context, b int) (served, error) {
	for {
		f.mu.Lock()
		live, news := f.live, f.news
		f.mu.Unlock()
		if live != nil && live.batches >= b-f.lag {
			return *live, nil
		}
		select {
		case <-news:
		case <-ctx.Done():
			return served{}, context.Cause(ctx)
		case <-f.r.early.halted:
			if f.leave(b) {
				return served{}, errHalted
			}
			select { // what is still due brings news
			case <-news:
			case <-ctx.Done():
				return served{}, context.Cause(ctx)
			}
		}
	}
}

// one draws a batch, weighs it and stores it. Where the run is asked to stop, and does not bring this batch to its end any
// more, what is in flight lands in the ledger, for a later life.
func (f *fromRollouts) one(ctx context.Context, b int, under served) error {
	wanted, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	halted := f.r.early.halted // of this stretch; the look-out below may be scheduled in the next
	go func() {
		select {
		case <-halted:
			if f.leave(b) {
				cancel(errHalted)
			}
		case <-wanted.Done():
		}
	}()
	d, draws, err := f.draw(ctx, wanted, b, under)
	if err != nil {
		return err
	}
	if err := f.compare(ctx, b, d); err != nil {
		return err
	}
	return f.store(b, d, draws, under)
}

// compare gives what is trained of a batch its log-probabilities under the reference, where there is one.
func (f *fromRollouts) compare(ctx context.Context, b int, d *drawn) error {
	data := rollout.Step(d.groups)
	if f.r.anchor == nil || len(data) == 0 {
		return nil
	}
	for i := range data {
		data[i].RoutedExperts = "" // the reference routes by its own weights
	}
	rows, err := f.r.anchor.score(ctx, b*f.per, data)
	if err != nil {
		return err
	}
	if err := rollout.Compare(d.groups, rows); err != nil {
		return fmt.Errorf("score the reference: %w", err)
	}
	d.metrics = rollout.Metrics(d.groups)
	return nil
}

// draw samples the prompts of a batch, and under dynamic sampling others until it is full of groups that train.
func (f *fromRollouts) draw(ctx, wanted context.Context, b int, under served) (*drawn, int, error) {
	ro, size := f.r.in.Recipe.Rollout, f.rows.batch
	most := 1
	if ro.DynamicSampling.Enabled {
		most = ro.DynamicSampling.MaxBatches
	}
	d, draws := &drawn{}, 0
	for draws < most {
		rows := f.rows.rows(b)
		if draws > 0 {
			rows = f.extra.rows(b*most + draws)
		}
		if err := f.r.journal.Add(recBatch, batchRecord{b, draws, hashRows(rows), under.updates}); err != nil {
			return nil, 0, &journalError{fmt.Errorf("journal the rollout batch: %w", err)}
		}
		q := question{set: f.r.in.Train, kind: kindSample, step: b * f.per, from: draws * size, rows: rows, name: fmt.Sprintf("b%d", b),
			n: ro.GroupSize, params: ro.SamplingParams, seeded: ro.Seeded, experts: ro.ReplayRoutedExperts, under: under, tries: ro.OnError.Retries + 1}
		groups, places, err := f.r.ask(ctx, wanted, q)
		if err != nil {
			return nil, 0, err
		}
		draws++
		d.groups, d.places = append(d.groups, groups...), append(d.places, places...)
		if err := f.value(ctx, d, groups, b, size); err != nil {
			return nil, 0, err
		}
		if full(d.groups) >= size {
			break
		}
	}
	if n := full(d.groups); ro.DynamicSampling.Enabled && n < size {
		f.r.tell(Event{Kind: WarnEvent, Done: b * f.per, Text: fmt.Sprintf("rollout batch %d has %d of %d groups that differ, after rollout.dynamic_sampling.max_batches, %d", b+1, n, size, most)})
	}
	d.metrics = f.r.in.figures(d.groups)
	return d, draws, nil
}

// value says what is learnt from the groups of a batch, of which those in fresh were drawn last: from rewards, or from a teacher.
func (f *fromRollouts) value(ctx context.Context, d *drawn, fresh []rollout.Group, b, size int) error {
	ro := f.r.in.Recipe.Rollout
	if f.r.in.distils() {
		rollout.Enter(fresh, ro)
		return f.r.teacher.teach(ctx, f.r, fresh, slot{step: b * f.per, kind: kindTeacher})
	}
	rollout.Penalise(fresh, ro)
	return f.weigh(d, size)
}

// weigh makes advantages, of no more than size groups that train.
func (f *fromRollouts) weigh(d *drawn, size int) error {
	r := f.r.in.Recipe
	if err := rollout.Weigh(d.groups, r.Rollout, r.Advantage); err != nil {
		return err
	}
	n := 0
	for i := range d.groups {
		if d.groups[i].Dropped != rollout.Kept {
			continue
		}
		if n++; n > size {
			d.groups[i].Dropped = rollout.Surplus
		}
	}
	if n <= size {
		return nil
	}
	return rollout.Weigh(d.groups, r.Rollout, r.Advantage)
}

func full(groups []rollout.Group) (n int) {
	for _, g := range groups {
		if g.Dropped == rollout.Kept {
			n++
		}
	}
	return n
}

func hashRows(rows []int) string {
	h := sha256.New()
	for _, i := range rows {
		h.Write(binary.LittleEndian.AppendUint64(nil, uint64(i)))
	}
	return hex.EncodeToString(h.Sum(nil))
}

// question is prompts to sample completions of.
type question struct {
	set     *dataset.Set
	rows    []int // in set
	kind    string
	step    int    // of the slots
	from    int    // index of the first slot, in prompts
	name    string // of the samples, before .p and .m
	n       int    // completions a prompt
	params  recipe.Sampling
	seeded  bool
	under   served
	tries   int
	experts bool          // with the keys of those that are chosen
	slots   chan struct{} // held by each sample in flight; where there is an environment
}

// ask samples and grades. Requests are sent under ctx, so that they land whatever becomes of the batch, and waited for under
// wanted.
func (r *run) ask(ctx, wanted context.Context, q question) ([]rollout.Group, []string, error) {
	groups, places := make([]rollout.Group, len(q.rows)), make([]string, len(q.rows))
	graded := make([][]grader.Graded, len(q.rows))
	g, wanted := errgroup.WithContext(wanted)
	g.SetLimit(mostSampling)
	q.slots = make(chan struct{}, mostSampling)
	for i := range q.rows {
		g.Go(func() error {
			return caught(func() (err error) {
				groups[i], places[i], graded[i], err = r.group(ctx, wanted, q, i)
				return err
			})
		})
	}
	if err := g.Wait(); err != nil {
		return nil, nil, cause(wanted, err)
	}
	unsampled := 0
	var all []grader.Graded
	for i := range groups {
		all = append(all, graded[i]...)
		if groups[i].Dropped == rollout.Unsampled {
			unsampled++
		}
	}
	if 2*unsampled > len(groups) {
		return nil, nil, fmt.Errorf("%d of %d prompts were %w, each asked for %d times", unsampled, len(groups), errUnsampled, q.tries)
	}
	return groups, places, grader.Healthy(all)
}

// cause prefers why a context was ended to the error that its end made.
func cause(ctx context.Context, err error) error {
	if why := context.Cause(ctx); errors.Is(why, errHalted) {
		return why
	}
	return err
}

// group samples one prompt and grades what comes.
func (r *run) group(ctx, wanted context.Context, q question, i int) (rollout.Group, string, []grader.Graded, error) {
	p, err := q.set.Prompt(q.rows[i])
	if err != nil {
		return rollout.Group{}, "", nil, drifted(err)
	}
	g := rollout.Group{Row: q.rows[i], Prompt: p.IDs, Taught: p.Taught}
	if r.in.Env != nil {
		var graded []grader.Graded
		g.Members, graded, err = r.play(ctx, wanted, q, i, p)
		return g, p.At.String(), graded, err
	}
	op, requests := Sample{Prompts: [][]int32{p.IDs}, Params: q.params, N: q.n, RoutedExperts: q.experts}, 1
	if q.seeded {
		op.N, requests = 1, q.n
	}
	for m := range requests {
		index := (q.from+i)*requests + m
		if q.seeded {
			op.Seed = new(seed(fmt.Sprintf("sample\n%d\n%d\n%d", q.step, q.from+i, m), r.in.Recipe.Seed))
		}
		s, err := r.sampled(ctx, wanted, slot{step: q.step, kind: q.kind, index: index}, op, q)
		if errors.Is(err, errUnsampled) {
			continue
		}
		if err != nil {
			return g, "", nil, err
		}
		for _, seq := range s.Sequences {
			g.Members = append(g.Members, rollout.Member{Sequence: seq, Version: s.Segments[0].Version})
		}
	}
	if len(g.Members) == 0 {
		g.Dropped = rollout.Unsampled
		return g, p.At.String(), nil, nil
	}
	graded, err := r.grade(wanted, p, g.Members, fmt.Sprintf("%s.p%d", q.name, q.from+i), q.params.Stop)
	return g, p.At.String(), graded, err
}

// errUnsampled is a prompt that the service did not sample, as often as it was asked.
var errUnsampled = errors.New("not sampled")

// sampled asks for the completions of one prompt until the service gives them, under the version that is due.
func (r *run) sampled(ctx, wanted context.Context, s slot, op Sample, q question) (rollout.Samples, error) {
	stops := op.Params.Stop
	if r.cutsStops.Load() && !op.RoutedExperts {
		op.Params.Stop = nil
	}
	for s.attempt < q.tries {
		p, err := r.session.Prepare(ctx, op)
		if err != nil {
			return rollout.Samples{}, fmt.Errorf("prepare a sample: %w", err)
		}
		ops, err := r.ledger.submit(ctx, item{slot: s, body: p, expect: q.under.updates})
		if err != nil {
			return rollout.Samples{}, err
		}
		s.attempt = ops[0].slot.attempt + 1
		res, err := ops[0].wait(wanted)
		if err == nil {
			if err = r.fits(res.Samples, op, q.under.version); err == nil {
				if len(op.Params.Stop) == 0 {
					cutAt(res.Samples[0].Sequences, stops, r.in.Tokenizer)
				}
				return res.Samples[0], nil
			}
		} else if r.withoutStops(&op, err) {
			q.tries++
			continue
		} else if costs(failureOf(err), false) != askAgain {
			return rollout.Samples{}, err
		}
		r.tell(Event{Kind: WarnEvent, Done: r.doneSteps(), Text: fmt.Sprintf("sample %d of %s: %v", s.index+1, q.name, err)})
	}
	return rollout.Samples{}, errUnsampled
}

// pipelined says that a sync may end before its weights are served.
func (in *Inputs) pipelined() bool {
	return in.Recipe.Rollout != nil && in.Recipe.Rollout.WeightSyncType == "pipeline"
}

// fits says why completions are not to be learnt from: there are others than were asked for, or other weights drew them.
func (r *run) fits(all []rollout.Samples, op Sample, version int64) error {
	if len(all) != 1 || len(all[0].Sequences) != op.N {
		return fmt.Errorf("the answer has not the %d completions that were asked for", op.N)
	}
	if op.RoutedExperts && slices.ContainsFunc(all[0].Sequences, func(s rollout.Sequence) bool { return s.RoutedExperts == "" }) {
		return fmt.Errorf("a completion has no routed_experts_key: where %s is no mixture of experts, set rollout.replay_routed_experts to false", r.in.Recipe.BaseModel)
	}
	if len(all[0].Segments) == 0 {
		return errors.New("the answer does not say which version of the weights has sampled")
	}
	for _, seg := range all[0].Segments {
		if seg.Version == version || seg.Version > version && r.in.pipelined() {
			continue
		}
		return fmt.Errorf("sampled under version %d of the weights, and version %d is due", seg.Version, version)
	}
	return nil
}
