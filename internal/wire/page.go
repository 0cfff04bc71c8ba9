package wire

// Page is one page of a list, newest first.
type Page[T any] struct {
	Data []T      `json:"data"` // never nil in an answer
	Meta PageMeta `json:"meta"`
}

// PageMeta says where the list goes on.
type PageMeta struct {
	Limit      int    `json:"limit"`
	HasMore    bool   `json:"has_more"`
	NextCursor string `json:"next_cursor"` // the value for after; empty when HasMore is false
}
