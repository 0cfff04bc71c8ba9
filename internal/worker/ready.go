package worker

import (
	"encoding/json"
	"errors"
	"fmt"
)

// ready reads the first line of a program.
func (p *process) ready(line []byte) error {
	r, err := parse(line)
	if err != nil {
		return fmt.Errorf("its first line is %w", err)
	}
	if msg := r.failed(); msg != "" {
		return errors.New(msg)
	}
	var m struct {
		MaxInFlight *int `json:"max_in_flight"`
	}
	switch err := json.Unmarshal(r.raw, &m); {
	case r.Type != "ready":
		return fmt.Errorf(`its first object has the type %q, not "ready"`, r.Type)
	case err != nil || m.MaxInFlight != nil && (*m.MaxInFlight < 1 || *m.MaxInFlight > maxInFlight):
		return fmt.Errorf("its max_in_flight is not a whole number from 1 to %d", maxInFlight)
	}
	p.inFlight = 1
	if m.MaxInFlight != nil {
		p.inFlight = *m.MaxInFlight
	}
	return nil
}
