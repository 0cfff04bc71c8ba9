package runner

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"trainer/internal/journal"
)

// Holding is a resource that a run has not seen end.
type Holding struct {
	ID       string
	Attached bool // not made by the run
	USDPerH  float64
	ReadyAt  time.Time // zero: not seen READY
	Asked    time.Time // when the journal says that it was made
	Stopping bool      // a stop was sent, and its answer not seen
}

// Holdings are what a run folder's journal says of the resources of its run.
type Holdings struct {
	Dir       string
	RunID     string
	Alive     *journal.Locked // who works in the folder; nil: nobody
	Elsewhere error           // why the folder cannot tell whether the run lives: a copy, another machine; nil: it can
	Ended     bool            // the last life has come to its end, and has left what it left on purpose
	Held      []Holding
	past      *past
}

// ReadHoldings reads them. It takes the lock for a moment, to see whether the run lives.
func ReadHoldings(dir string) (Holdings, error) {
	h, _, err := readHoldings(dir)
	return h, err
}

// readHoldings reads them, and the journal.
func readHoldings(dir string) (Holdings, []journal.Record, error) {
	h := Holdings{Dir: dir}
	// The lock first: a run that begins behind it would be seen as dead by an older journal, and Collect looks again.
	if err := journal.Free(dir); err != nil && !errors.As(err, &h.Alive) {
		return h, nil, err
	}
	records, err := journal.Read(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return h, nil, nil
	}
	if err != nil {
		return h, nil, err
	}
	return h, records, h.read(records)
}

func (h *Holdings) read(records []journal.Record) error {
	p, err := recall(records)
	if err != nil {
		return err
	}
	if p.run != nil {
		h.RunID = p.run.RunID
	}
	h.Ended, h.Held, h.past = p.end != nil, nil, p
	h.Elsewhere = p.elsewhere(h.Dir)
	asked := map[string]time.Time{}
	for _, r := range records {
		var c createdRecord
		if r.Type != recCreated {
			continue
		}
		if err := json.Unmarshal(r.Data, &c); err != nil {
			return err
		}
		asked[c.ID] = r.Time
	}
	for _, held := range p.resources {
		if !held.stopped {
			h.Held = append(h.Held, Holding{held.id, held.attached, held.price, held.readyAt.ReadyAt, asked[held.id], held.stopping})
		}
	}
	return nil
}

// Left is what gc may stop: why it is there, "" where it is not to be stopped.
func (h *Holdings) Left(id string) string {
	if h.Alive != nil || h.Elsewhere != nil {
		return ""
	}
	i := slices.IndexFunc(h.Held, func(o Holding) bool { return o.ID == id && !o.Attached })
	switch {
	case i < 0:
		return ""
	case h.Held[i].Stopping:
		return "its stop was not seen to end"
	case !h.Ended:
		return "its run died"
	}
	return "" // kept, as keep_resources says
}

// Why a resource is there that a create has made of which the journal does not know.
const (
	whyLost = "the answer to its create was lost"
	whyTwin = "a create of its run was carried out twice, or late"
)

// made is the create of this run that has made res, and why the journal does not know of it; nil where none has.
func (h *Holdings) made(res Resource) (*createRecord, string) {
	if h.past == nil || h.Alive != nil || h.Elsewhere != nil || h.past.resource(res.ID) != nil {
		return nil, ""
	}
	for _, what := range []string{aResource, aTeacher} {
		if c := h.past.open(what); c != nil && c.makes(res) {
			return c, whyLost
		}
	}
	for i := range h.past.asked {
		if c := &h.past.asked[i]; c.makes(res) {
			return c, whyTwin
		}
	}
	return nil, ""
}

// Reason is Left, or what is known of a resource that a create of the run has made without its knowing.
func (h *Holdings) Reason(res Resource) string {
	if why := h.Left(res.ID); why != "" {
		return why
	}
	_, why := h.made(res)
	return why
}

// Owner says in words whose id is by this journal, "" where it is not its.
func (h *Holdings) Owner(id string) string {
	if !slices.ContainsFunc(h.Held, func(o Holding) bool { return o.ID == id }) {
		return ""
	}
	switch {
	case h.Alive != nil:
		return fmt.Sprintf("alive, process %d", h.Alive.PID)
	case h.Elsewhere != nil:
		return "a copy, or of another machine"
	case h.Left(id) != "":
		return "dead"
	}
	return "ended, kept"
}
