// Package download brings the files of a checkpoint into a folder, whole or resumable. It owns what a half-fetched folder
// means: a file has its own name only when all of it is on disk, before that it is NAME.part, and a small record in the
// folder says of which checkpoint the files are and how much of each part can be trusted. So nothing of two checkpoints
// is ever mixed, nothing of anybody else's is overwritten, and what broke off, by a signal, a full disk or kill -9, goes on
// at the byte where it was.
//
// It trusts no name that it is told, and knows no protocol: where bytes come from is a Source, implemented by
// internal/together.
package download

import (
	"context"
	"errors"
	"io"
)

// File is one file of a checkpoint. URL is good for a while; who has it can read the file.
type File struct {
	Name string
	Size int64 // bytes
	URL  string
}

// Source is where the files are. Safe for concurrent use.
type Source interface {
	// Files lists them with addresses that are good now.
	Files(ctx context.Context) ([]File, error)
	// Fetch writes the bytes of f to w from offset from on, in order, each once, and returns nil when w has all of them. It
	// tries again by itself, at the byte where it was. ErrStale (by errors.Is): the address is refused, ask Files again.
	Fetch(ctx context.Context, f File, from int64, w io.Writer) error
}

// ErrStale is an address that is refused, as one is that has expired.
var ErrStale = errors.New("the address of the file is refused")

// Label says what is in a folder: equal checkpoint and kind are equal bytes.
type Label struct {
	Checkpoint string `json:"checkpoint_id"`
	Kind       string `json:"kind"`           // merged, adapter
	Step       int64  `json:"step,omitempty"` // steps in the weights; 0: not known
	BaseModel  string `json:"base_model,omitempty"`
}

func (l Label) same(o Label) bool { return l.Checkpoint == o.Checkpoint && l.Kind == o.Kind }

// State is how far a download is. Bytes and Size are of all files, those that were there before included.
type State struct {
	File        string // that has moved
	Here, Whole int64  // bytes of File
	Done        bool   // File is whole, and on disk under its name
	Skipped     bool   // it was whole before
	Bytes, Size int64
	Files       int
}

// Done is a download that has come to its end.
type Done struct {
	Files   int
	Size    int64 // bytes of all files
	Fetched int64 // bytes that came over the network now
	Skipped int   // files that were there
}
