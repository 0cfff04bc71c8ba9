package runner

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"trainer/loss"
	"trainer/recipe"
)

// anchor is the frozen reference of a run that samples: a session beside the one that trains, on the same resource, from the
// weights that training starts from. It only scores, so that nothing of it is settled by a later life: that opens its own.
// It is used by one stage at a time.
type anchor struct {
	r       *run
	stop    context.Context // ends the wait for a session
	session Session         // nil: none is open
	ledger  *ledger
	waits   context.Context // of its operations
	cancel  context.CancelFunc
}

// anchored says whether a recipe that samples compares with a reference: in the loss, or in the reward.
func anchored(r *recipe.Recipe) bool {
	return r.Rollout != nil && (inLoss(r.Loss.Params) || r.Advantage != nil && r.Advantage.KLCoef > 0)
}

// inLoss says whether the service is given the log-probabilities of the reference.
func inLoss(l loss.Loss) bool {
	g, ok := l.(*loss.GRPO)
	return ok && g.Beta > 0
}

// hold opens the session of the reference, where the recipe compares with one.
func (r *run) hold(ctx, stop context.Context) error {
	r.anchor = nil
	if !anchored(r.in.Recipe) {
		return nil
	}
	r.anchor = &anchor{r: r, stop: stop}
	if r.from >= r.until { // what is left is to save
		return nil
	}
	return r.anchor.open(ctx)
}

// anchorTries is how often one batch is scored, each time in another session.
const anchorTries = 3

// score gives the log-probabilities of data under the reference, [B][T], for the rollout batch that begins with step. A
// session that is lost on the way is replaced: another from the same start says the same.
func (a *anchor) score(ctx context.Context, step int, data []loss.Datum) (rows [][]float64, err error) {
	for range anchorTries {
		if a.session == nil {
			if err := a.open(ctx); err != nil {
				return nil, err
			}
		}
		if rows, err = a.ask(step, data); err == nil || ctx.Err() != nil || !a.lost(ctx, err) {
			break
		}
		a.r.tell(Event{Kind: WarnEvent, Done: a.r.doneSteps(), Text: fmt.Sprintf("the session of the reference, %s, cannot be continued: %v", a.session.ID(), err)})
		a.close(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("score the reference: %w", err)
	}
	return rows, nil
}

func (a *anchor) ask(step int, data []loss.Datum) ([][]float64, error) {
	parts := slices.Collect(slices.Chunk(data, a.r.mostSequences()))
	items, err := scoring(a.waits, a.session, slot{step: step, kind: kindReference}, parts)
	if err != nil {
		return nil, err
	}
	return a.ledger.score(a.waits, items)
}

// stored lets go of what was scored for the batch that begins with step, which is on the disk elsewhere.
func (a *anchor) stored(step int) { a.ledger.drop(a.ledger.ended(step + 1)) }

// lost says whether the session is the reason of err, and another one the remedy.
func (a *anchor) lost(ctx context.Context, err error) bool {
	f := failureOf(err)
	if f == refused {
		return sessionLost(ctx, a.session) != nil
	}
	return costs(f, false) == rollBack
}

// open makes the session and waits until it runs; once more where the first create is seen to have made nothing, or where
// other sessions of this run held the places.
func (a *anchor) open(ctx context.Context) error {
	r := a.r
	r.tell(Event{Kind: StageEvent, Done: r.past.done(), Text: "opening a session of the reference"})
	var s Session
	var err error
	for tries, cleared := 0, false; tries < createTries && s == nil; tries++ {
		if s, err = a.create(ctx); err != nil {
			var no *Refused
			if !errors.As(err, &no) || no.Status != http.StatusTooManyRequests || cleared || r.stopStrays(ctx, r.lease.id, r.past.current()) == 0 {
				return err
			}
			cleared = true
		}
	}
	if s == nil {
		return errors.Join(err, errors.New("no session was seen that the create of the reference has made"))
	}
	a.session, a.ledger = s, r.newLedger(s)
	a.waits, a.cancel = context.WithCancel(ctx)
	_, err = r.running(ctx, a.stop, s)
	return err
}

// create sends one create. Without a session and an error: it was not answered, and has made nothing.
func (a *anchor) create(ctx context.Context) (Session, error) {
	r := a.r
	spec := r.sessionSpec(newGeneration(0, 0, origin{CheckpointID: r.frozenAt()}))
	spec.DisplayName, spec.LoadOptimizer = fmt.Sprintf("%s/r%d reference", r.past.run.RunID, r.past.anchors), false
	rec := createRecord{What: aReference, Attempt: r.past.anchors, Body: sessionBodyOf(spec)}
	if err := r.journal.Append(recCreate, rec); err != nil {
		return nil, err
	}
	r.note(func(p *past) { p.create(rec) })
	how := "answer"
	s, err := r.world.Backend.Open(ctx, spec)
	var none *Unclear
	if errors.As(err, &none) && ctx.Err() == nil {
		id, err := r.named(ctx, a.stop, spec.DisplayName)
		if err != nil {
			return nil, err
		}
		if id == "" {
			return nil, r.nothing(rec, whySettled)
		}
		s, how = r.world.Backend.Join(spec, id), "adopted"
	} else if err != nil {
		return nil, r.notCreated(rec, err)
	}
	return s, r.journal.Append(recCreated, createdRecord{What: aReference, Attempt: rec.Attempt, ID: s.ID(), How: how})
}

// close ends the session. Where ctx is over, it goes with the resource, or with the sessions that the release finds.
func (a *anchor) close(ctx context.Context) {
	if a == nil || a.session == nil {
		return
	}
	s := a.session
	a.session = nil
	a.cancel()
	a.ledger.waits.Wait()
	a.ledger.drop(a.ledger.ended(len(a.r.plan.Rates) + 1))
	if ctx.Err() != nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, sessionStop)
	defer cancel()
	if err := s.Close(ctx); err != nil {
		a.r.tell(Event{Kind: WarnEvent, Done: a.r.doneSteps(), Text: fmt.Sprintf("stop session %s of the reference: %v", s.ID(), err)})
		return
	}
	_ = a.r.journal.Add(recStopped, stopRecord{What: aReference, ID: s.ID()})
}

// frozenAt is the checkpoint whose weights are the reference, empty for those of the base model: where training started, and
// of a fork where the first of its line did, unless the recipe names another.
func (r *run) frozenAt() string {
	ref, s := r.in.Recipe.Reference, r.in.Start
	switch {
	case ref != nil && ref.CheckpointID != nil:
		return *ref.CheckpointID
	case s != nil && s.Done > 0:
		return s.Origin
	case s != nil:
		return s.CheckpointID
	}
	return ""
}
