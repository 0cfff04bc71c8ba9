package sandbox

import "time"

// settle does what time alone has brought about, with the lock held.
func (s *Server) settle() error {
	defer s.turnOver() // the time may have come that a worker waits for
	now := s.clock.now()
	for _, res := range s.state.resources.order {
		if err := s.settleResource(res, now); err != nil {
			return err
		}
	}
	if s.options.Dir != "" && now.Sub(s.state.last) >= s.tick() {
		return s.commit(&record{Kind: kindTick, Ahead: s.tick()}, nil)
	}
	return nil
}

func (s *Server) settleResource(res *resource, now time.Time) error {
	for _, sess := range res.sessions {
		if at := sess.doomed; !at.IsZero() && !sess.over() && !now.Before(at) {
			if err := s.commit(&record{Kind: kindExpire, ID: sess.id, Until: at, Cancelled: sess.waiting()}, nil); err != nil {
				return err
			}
			s.forget(sess)
		}
	}
	end := &record{Kind: kindExpire, ID: res.id, Until: res.expires()}
	switch {
	case res.breaks(now):
		end.Kind, end.Until = kindBreak, res.created.Add(res.spec.Error.After)
		for _, sess := range res.sessions {
			end.Cancelled = append(end.Cancelled, sess.waiting()...)
		}
	case !res.due(now):
		return nil
	}
	if err := s.commit(end, nil); err != nil {
		return err
	}
	for _, sess := range res.sessions {
		s.forget(sess)
	}
	return nil
}
