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
	lost      *lostCreate
}

// lostCreate is a create of a resource that has no answer in the journal.
type lostCreate struct {
	What       string       `json:"what"`
	Attempt    int          `json:"attempt"`
	Body       resourceBody `json:"body"`
	Known      []string     `json:"known"`
	ServerTime time.Time    `json:"server_time"`
}

// ReadHoldings reads them. It takes the lock for a moment, to see whether the run lives.
func ReadHoldings(dir string) (Holdings, error) {
	h := Holdings{Dir: dir}
	// The lock first: a run that begins behind it would be seen as dead by an older journal, and Collect looks again.
	if err := journal.Free(dir); err != nil && !errors.As(err, &h.Alive) {
		return h, err
	}
	records, err := journal.Read(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return h, nil
	}
	if err != nil {
		return h, err
	}
	return h, h.read(records)
}

func (h *Holdings) read(records []journal.Record) error {
	p, err := recall(records)
	if err != nil {
		return err
	}
	if p.run != nil {
		h.RunID = p.run.RunID
	}
	h.Ended, h.Held, h.lost = p.end != nil, nil, nil
	h.Elsewhere = p.elsewhere(h.Dir)
	asked := map[string]time.Time{}
	for _, r := range records {
		if err := h.asks(r, asked); err != nil {
			return err
		}
	}
	for _, held := range p.resources {
		if !held.stopped {
			h.Held = append(h.Held, Holding{held.id, held.attached, held.price, held.readyAt.ReadyAt, asked[held.id], held.stopping})
		}
	}
	return nil
}

// asks follows the creates of resources to their answers.
func (h *Holdings) asks(r journal.Record, asked map[string]time.Time) error {
	switch r.Type {
	case recCreate:
		var c lostCreate
		var kind struct {
			What string `json:"what"`
		}
		if err := json.Unmarshal(r.Data, &kind); err != nil || kind.What != aResource {
			return err
		}
		if err := json.Unmarshal(r.Data, &c); err != nil {
			return err
		}
		h.lost = &c
	case recCreated, recNotCreated:
		var c createdRecord
		if err := json.Unmarshal(r.Data, &c); err != nil {
			return err
		}
		if c.What == aResource {
			h.lost = nil
			asked[c.ID] = r.Time
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

// Made says whether res is what a create of this run has made whose answer was lost: it was not there before, and asks for
// the same, with the mark of this run and attempt in its inactive_timeout.
func (h *Holdings) Made(res Resource) bool {
	c := h.lost
	if c == nil || h.Alive != nil || h.Elsewhere != nil {
		return false
	}
	const slack = 5 * time.Second // the service's clock and its list need not agree to the second
	b := c.Body
	return !slices.Contains(c.Known, res.ID) && !res.CreatedAt.Before(c.ServerTime.Add(-slack)) && b.BaseModel == res.BaseModel &&
		b.GPUType == res.GPUType && b.Generators == res.Generators && b.LoRA == res.LoRA && b.InactiveTimeout == int64(res.InactiveTimeout/time.Second)
}

// Why a resource of a lost create is there.
const whyLost = "the answer to its create was lost"

// Reason is Left, or that Made says so.
func (h *Holdings) Reason(res Resource) string {
	if why := h.Left(res.ID); why != "" {
		return why
	}
	if h.Made(res) {
		return whyLost
	}
	return ""
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
