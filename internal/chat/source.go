package chat

// Source is the text of a template that stands in a file. The zero value is none.
type Source struct {
	Name string // as messages show it
	Text string
}
