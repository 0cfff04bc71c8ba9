package runner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// How what a create without an answer has made is looked for.
const (
	lookAgain    = 10 * time.Second
	lookResource = 2 * time.Minute
	// clockSlack is how far the service's clock and its records may disagree.
	clockSlack = 5 * time.Second
	// createMost is how long after it was sent a create can still be carried out: twice as long as it is waited for.
	createMost = 10 * time.Minute
	twinsMost  = 30 * time.Second
)

// Several are resources that a create without an answer may have made, of which none can be told from the others.
type Several struct{ IDs []string }

func (s *Several) Error() string {
	return fmt.Sprintf("the create of the resource was not answered, and %s may each be what it made: look at them with `trainer resources list`, and stop those that are not to be trained on with `trainer resources stop ID`",
		strings.Join(s.IDs, ", "))
}

// makes says whether res may be what the create c has made: it was not there before, and is what c asked for, with the
// mark of this run and attempt in its inactive_timeout.
func (c createRecord) makes(res Resource) bool {
	var b resourceBody
	if data, err := json.Marshal(c.Body); err != nil || json.Unmarshal(data, &b) != nil {
		return false
	}
	ref := b.BaseWeightsRef == "" || res.BaseWeightsRef == b.BaseWeightsRef || strings.HasPrefix(res.BaseWeightsRef, b.BaseWeightsRef+"@")
	at := res.CreatedAt.Sub(c.ServerTime)
	return !slices.Contains(c.Known, res.ID) && (c.ServerTime.IsZero() || at >= -clockSlack && at <= createMost) && ref &&
		b.BaseModel == res.BaseModel && b.GPUType == res.GPUType && b.Generators == res.Generators && b.LoRA == res.LoRA &&
		b.InactiveTimeout == int64(res.InactiveTimeout/time.Second)
}

// seek waits for what the open create has made to be seen. A resource without an id: nothing, which is then written down.
func (l *lease) seek(ctx, stop context.Context) (res Resource, err error) {
	r := l.r
	c := *r.past.open(l.what)
	r.tell(Event{Kind: WarnEvent, Done: r.from, Text: fmt.Sprintf("a resource was asked for, and no answer seen: looking for what that has made, for %v at most", lookResource)})
	err = r.sought(stop, lookResource, func() (bool, error) {
		mine, _, err := r.world.Resources.Mine(ctx, false)
		if err != nil {
			return false, fmt.Errorf("list the resources there are: %w", err)
		}
		res, err = l.adopt(ctx, c, mine)
		return res.ID != "", err
	})
	if err != nil {
		return Resource{}, fmt.Errorf("look for what the create of the resource has made: %w", err)
	}
	if res.ID == "" {
		return res, r.nothing(c, whySettled)
	}
	return res, nil
}

// adopt takes the one resource of mine that c may have made, on which nobody else trains. Without an id: none. *Several
// where it cannot be told which.
func (l *lease) adopt(ctx context.Context, c createRecord, mine []Resource) (Resource, error) {
	var found []Resource
	for _, res := range mine {
		if !c.makes(res) || l.r.past.resource(res.ID) != nil {
			continue
		}
		foreign, err := l.r.foreign(ctx, res.ID)
		if err != nil {
			return Resource{}, err
		}
		if !foreign {
			found = append(found, res)
		}
	}
	if len(found) == 0 {
		return Resource{}, nil
	}
	if len(found) > 1 {
		s := &Several{}
		for _, res := range found {
			s.IDs = append(s.IDs, res.ID)
		}
		return Resource{}, s
	}
	l.r.tell(Event{Kind: WarnEvent, Done: l.r.from, Text: fmt.Sprintf("resource %s is what a create without an answer has made: it is taken", found[0].ID)})
	return found[0], l.made(c, found[0], "adopted")
}

// foreign says whether a session that is not this run's is, or was, on the resource.
func (r *run) foreign(ctx context.Context, id string) (bool, error) {
	all, err := r.world.Backend.Sessions(ctx, id)
	if err != nil {
		return false, fmt.Errorf("list the sessions of resource %s: %w", id, err)
	}
	return slices.ContainsFunc(all, func(s SessionState) bool { return !r.ours(s) }), nil
}

// late takes what an earlier create has made that was taken for one that made nothing.
func (l *lease) late(ctx context.Context, mine []Resource) (Resource, error) {
	for _, c := range l.r.past.asked {
		if c.What != l.what || !slices.Contains(l.r.past.settled, c.Attempt) {
			continue
		}
		if res, err := l.adopt(ctx, c, mine); err != nil || res.ID != "" {
			return res, err
		}
	}
	return Resource{}, nil
}

// twins are resources that creates of this run have made beside those that it knows: a create that was carried out twice,
// or so late that it was taken for lost. They bill until their inactive_timeout, and are left to the user.
func (r *run) twins(ctx context.Context) (ids []string) {
	if len(r.past.asked) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, twinsMost)
	defer cancel()
	mine, _, err := r.world.Resources.Mine(ctx, false)
	if err != nil {
		return nil // what cannot be seen is left to `resources gc`
	}
	for _, res := range mine {
		made := slices.ContainsFunc(r.past.asked, func(c createRecord) bool { return c.makes(res) })
		if !made || r.past.resource(res.ID) != nil {
			continue
		}
		if foreign, err := r.foreign(ctx, res.ID); err == nil && !foreign {
			ids = append(ids, res.ID)
			text := fmt.Sprintf("resource %s seems to be made by a create of this run that was carried out twice, or late; it bills until its inactive_timeout; stop it with `trainer resources stop %s`", res.ID, res.ID)
			r.tell(Event{Kind: WarnEvent, Done: r.doneSteps(), Text: text})
		}
	}
	return ids
}

// rescue looks once more for what an open create has made, so that the end of this life can stop it. left says what cannot
// be known, or told apart.
func (l *lease) rescue(ctx context.Context) (left []string) {
	r := l.r
	c := r.past.open(l.what)
	if c == nil {
		return nil
	}
	mine, _, err := r.world.Resources.Mine(ctx, false)
	if err == nil {
		_, err = l.adopt(ctx, *c, mine)
	}
	var several *Several
	if errors.As(err, &several) {
		for _, id := range several.IDs {
			left = append(left, "perhaps resource "+id)
		}
		return left
	}
	if l.id == "" {
		text := "perhaps a resource, whose create was not answered; a resume looks for it, and so does `trainer resources list`"
		if err != nil {
			text += fmt.Sprintf(" (%v)", err)
		}
		return []string{text}
	}
	return nil
}
