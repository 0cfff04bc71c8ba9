package dataset

import "trainer/internal/chat"

// Examples reads row i, in [0, Len), from its file and renders it as it trains, cut to length: what Row gives, before it is
// shifted. It is an error when the file has changed.
func (s *Set) Examples(i int) ([]chat.Example, error) { return s.x.read(s.entries[i]) }

// Format is the name of the format of row i, never auto.
func (s *Set) Format(i int) string { return s.x.owner[s.entries[i].file].format.name }
