package schedule

import (
	"fmt"
	"strings"
)

// Checker is a Schedule with rules that its tags cannot say. Check returns nil or Faults; it assumes that the tags hold.
type Checker interface{ Check() error }

// Fault is a parameter that breaks a rule.
type Fault struct {
	Key string // from the shape's own keys on, dotted: points.1.0
	Msg string
}

func (f *Fault) Error() string { return f.Key + ": " + f.Msg }

// Faults are all of a shape, in the order of its keys. errors.As finds the first; a caller that knows the place of each key
// ranges over them.
type Faults []*Fault

func (f *Faults) add(key, format string, a ...any) {
	*f = append(*f, &Fault{key, fmt.Sprintf(format, a...)})
}

// Error is one line.
func (f Faults) Error() string {
	all := make([]string, len(f))
	for i, fault := range f {
		all[i] = fault.Error()
	}
	return strings.Join(all, "; ")
}

// Unwrap returns each as an error.
func (f Faults) Unwrap() []error {
	all := make([]error, len(f))
	for i, fault := range f {
		all[i] = fault
	}
	return all
}

// err is f as an error, nil when there is none: a bare nil Faults in an error would not compare equal to nil.
func (f Faults) err() error {
	if len(f) == 0 {
		return nil
	}
	return f
}
