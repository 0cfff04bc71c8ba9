package report

import "io"

// sticky passes writes on until one fails, then drops them and keeps the error for Close: a sink has nobody to give it
// to earlier, and a full disk or a closed pipe must not stop the run. Not safe for concurrent use.
type sticky struct {
	w   io.Writer
	err error
}

// Write never fails.
func (s *sticky) Write(p []byte) (int, error) {
	if s.err == nil {
		_, s.err = s.w.Write(p)
	}
	return len(p), nil
}
