package runner

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// createTries is how often a life asks for a resource, or a session, whose create stays without an answer: once more where
// the first is seen to have made nothing.
const createTries = 2

// create makes the resource. A create has no key and what it makes bills, so that it is never sent again blindly: one that
// was not answered, in this life or an earlier one, is looked for first. One process of the machine does this at a time, so
// that none takes for new what another has just made.
func (l *lease) create(ctx, stop context.Context) (Resource, error) {
	r := l.r
	if _, err := r.origin(ctx); err != nil { // nothing is bought for a run that cannot go on
		return Resource{}, err
	}
	free, err := r.alone(stop)
	if err != nil {
		return Resource{}, err
	}
	defer free()
	var asked error
	for range createTries {
		if r.past.open(l.what) == nil {
			var res Resource
			var none *Unclear
			if res, asked = l.ask(ctx); !errors.As(asked, &none) || ctx.Err() != nil {
				return res, asked
			}
		}
		if res, err := l.seek(ctx, stop); err != nil || res.ID != "" {
			return res, err
		}
	}
	return Resource{}, fmt.Errorf("%v; nothing was seen that it has made", asked) // it is settled, so not *Unclear
}

// alone holds the machine-wide lock of creates, where there is one.
func (r *run) alone(stop context.Context) (free func(), err error) {
	if r.world.Alone == nil {
		return func() {}, nil
	}
	free, err = r.world.Alone(stop)
	if why := context.Cause(stop); err != nil && why == nil {
		r.tell(Event{Kind: WarnEvent, Done: r.from, Text: fmt.Sprintf("%v; other runs of this machine may ask for resources at the same time", err)})
		return func() {}, nil
	}
	return free, err
}

// ask sends one create, unless what an earlier one has made turns up now.
func (l *lease) ask(ctx context.Context) (Resource, error) {
	r := l.r
	r.remember()
	known, at, err := r.world.Resources.Mine(ctx, false)
	if err != nil {
		return Resource{}, fmt.Errorf("list the resources there are: %w", err)
	}
	if res, err := l.late(ctx, known); err != nil || res.ID != "" {
		return res, err
	}
	if l.what == aResource {
		if err := r.forgo(); err != nil {
			return Resource{}, err
		}
	}
	spec := l.spec
	spec.InactiveTimeout = tagged(spec.InactiveTimeout, r.past.run.RunID, len(r.past.asked))
	rec := createRecord{What: l.what, Attempt: len(r.past.asked), Body: bodyOf(spec), Known: []string{}, ServerTime: at}
	for _, k := range known {
		rec.Known = append(rec.Known, k.ID)
	}
	r.tell(Event{Kind: StageEvent, Done: r.from, Text: "provisioning " + spec.BaseModel})
	if err := r.journal.Append(recCreate, rec); err != nil {
		return Resource{}, err
	}
	r.note(func(p *past) { p.create(rec) })
	res, err := r.world.Resources.Create(ctx, spec)
	if err != nil {
		return res, r.notCreated(rec, err)
	}
	return res, l.made(rec, res, "answer")
}

// made writes down whose resource it is.
func (l *lease) made(rec createRecord, res Resource, how string) error {
	l.id = res.ID
	made := createdRecord{What: l.what, Attempt: rec.Attempt, ID: res.ID, How: how, PriceUSD: l.price, Pinned: res.BaseWeightsRef}
	if err := l.r.journal.Append(recCreated, made); err != nil {
		return err
	}
	l.r.note(func(p *past) { p.created(made) })
	return nil
}

// forgo gives up a session that may have been made on a resource that is gone: it went with it.
func (r *run) forgo() error {
	u := r.past.open(aSession)
	if u == nil {
		return nil
	}
	return r.nothing(*u, "its resource is gone")
}

// notCreated writes down that a create was refused or never sent; an unclear one stays open in the journal.
func (r *run) notCreated(rec createRecord, err error) error {
	err = fmt.Errorf("create the %s: %w", rec.What, err)
	var unclear *Unclear
	if errors.As(err, &unclear) {
		return err
	}
	return errors.Join(err, r.nothing(rec, "refused"))
}

// nothing writes down that a create has made nothing.
func (r *run) nothing(rec createRecord, why string) error {
	none := notCreatedRecord{rec.What, rec.Attempt, why}
	if err := r.journal.Append(recNotCreated, none); err != nil {
		return err
	}
	r.note(func(p *past) { p.notCreated(none) })
	return nil
}

// sought looks for what a create without an answer has made, again and again until most has passed; nil: nothing. found
// looks once.
func (r *run) sought(stop context.Context, most time.Duration, found func() (bool, error)) error {
	for begun := time.Now(); ; {
		if ok, err := found(); ok || err != nil {
			return err
		}
		if time.Since(begun) >= most {
			return nil
		}
		if err := sleep(stop, lookAgain); err != nil {
			return err
		}
	}
}
