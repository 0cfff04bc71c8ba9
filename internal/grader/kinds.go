package grader

import "context"

// Kind is a row of the table of graders. New returns a pointer to a fresh struct with its defaults set.
type Kind struct {
	Name string
	New  func() Grader
}

// Kinds is the table, in the order of the reference; a new grader is one file and one row.
func Kinds() []Kind {
	return []Kind{
		{"exact", func() Grader { return newExact() }},
		{"contains", func() Grader { return newContains() }},
		{"numeric", func() Grader { return newNumeric() }},
		{"regex", func() Grader { return newRegex() }},
		{"json_schema", func() Grader { return newJSONSchema() }},
		{"math_equal", func() Grader { return newMathEqual() }},
		{"multiple_choice", func() Grader { return newMultipleChoice() }},
		{"length", func() Grader { return newLength() }},
		{"repetition", func() Grader { return newRepetition() }},
		{"format", func() Grader { return newFormat() }},
		{"judge", func() Grader { return newJudge() }},
		{"command", func() Grader { return newCommand() }},
		{"http", func() Grader { return newHTTP() }},
	}
}

// Outside is a Grader that asks outside of the program, which needs a person's leave.
type Outside interface {
	Grader
	// Allowed says that it was given what to ask; Grade is an error before.
	Allowed() bool
}

// Starter is an Outside that has to be started. Start is called once it is allowed, before anything is paid; the error says why it
// can't be asked, or is that of ctx.
type Starter interface{ Start(context.Context) error }

// Targeted is a Grader that compares with the row's target.
type Targeted interface {
	// CheckTarget says what is wrong with a target, a JSON value as Completion.Target: empty, or nothing that an answer could be
	// held to. The error is of the row.
	CheckTarget(target []byte) error
}
