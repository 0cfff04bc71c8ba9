package runner

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"sync"

	"trainer/internal/journal"
	"trainer/loss"
)

// references keeps log-probabilities under frozen weights on the disk, by what they are of: the tokens, and the weights. A
// file holds what one request has scored; it comes to the disk whole or not at all, and says nothing that another file of
// its name does not, so that runs can share a folder. A file is a SHA-256 of what follows; then for each sequence the
// SHA-256 of its tokens, their number, and its log-probabilities, little-endian. Safe for concurrent use.
type references struct {
	disk  journal.Disk
	dir   string
	space string // names the weights; begins the names of files

	own   bool // the folder is this run's alone
	whole bool // all that the run needs is there; set before its stages run

	mu sync.Mutex
	at map[[32]byte]spot
}

// spot is where the log-probabilities of a sequence stand.
type spot struct {
	file   string
	offset int64
	n      int
}

// spaceOf names weights by what they are made of.
func spaceOf(of map[string]string) string {
	b, _ := json.Marshal(of) // of a map it has one order
	return hashOf(b)[:32]
}

const refSuffix = ".ref"

// open reads what the folder knows of the weights of a space. A file that is damaged is as good as none.
func (s *references) open(d journal.Disk, space string) error {
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return fmt.Errorf("make the folder of reference log-probabilities: %w", err)
	}
	if err := d.SyncFolder(filepath.Dir(s.dir)); err != nil {
		return fmt.Errorf("bring the folder of reference log-probabilities to the disk: %w", err)
	}
	if s.own {
		journal.Sweep(d, s.dir)
	}
	s.disk, s.space, s.at = d, space, map[[32]byte]spot{}
	files, err := filepath.Glob(filepath.Join(s.dir, space+"-*"+refSuffix))
	if err != nil {
		return err
	}
	for _, path := range files {
		if err := s.load(path); err != nil {
			return err
		}
	}
	return nil
}

// inherit copies the files of another folder that are not in this one.
func (s *references) inherit(d journal.Disk, from string) error {
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return err
	}
	files, err := filepath.Glob(filepath.Join(from, "*"+refSuffix))
	if err != nil {
		return err
	}
	for _, path := range files {
		to := filepath.Join(s.dir, filepath.Base(path))
		if _, err := os.Stat(to); err == nil {
			continue
		}
		data, err := os.ReadFile(path)
		if err == nil {
			err = journal.Put(d, to, data)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// load enters a file.
func (s *references) load(path string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("read reference log-probabilities: %w", err)
	}
	if len(data) < sha256.Size || sha256.Sum256(data[sha256.Size:]) != [32]byte(data) {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := sha256.Size; i+36 <= len(data); {
		n := int(binary.LittleEndian.Uint32(data[i+32:]))
		s.at[[32]byte(data[i:])] = spot{path, int64(i + 36), n}
		i += 36 + 8*n
	}
	return nil
}

// nameOf is what a sequence is looked up by: its tokens.
func nameOf(d loss.Datum) [32]byte {
	buf := make([]byte, 0, 4*len(d.Input)+4)
	for _, id := range d.Input {
		buf = binary.LittleEndian.AppendUint32(buf, uint32(id))
	}
	return sha256.Sum256(binary.LittleEndian.AppendUint32(buf, uint32(d.Targets[len(d.Targets)-1])))
}

func (s *references) has(d loss.Datum) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	at, ok := s.at[nameOf(d)]
	return ok && at.n == len(d.Input)
}

// of returns the log-probabilities of a sequence, [T].
func (s *references) of(d loss.Datum) ([]float64, error) {
	s.mu.Lock()
	at, ok := s.at[nameOf(d)]
	s.mu.Unlock()
	if !ok || at.n != len(d.Input) {
		return nil, errors.New("a sequence has no reference log-probabilities: it was not in the pass over the data before the first step")
	}
	f, err := os.Open(at.file)
	if err != nil {
		return nil, fmt.Errorf("read reference log-probabilities: %w", err)
	}
	defer f.Close()
	data := make([]byte, 8*at.n)
	if _, err := f.ReadAt(data, at.offset); err != nil && err != io.EOF {
		return nil, fmt.Errorf("read reference log-probabilities: %w", err)
	}
	out := make([]float64, at.n)
	err = binary.Read(bytes.NewReader(data), binary.LittleEndian, out)
	return out, err
}

// put brings what was scored to the disk, rows [B][T] of data.
func (s *references) put(data []loss.Datum, rows [][]float64) error {
	if len(rows) != len(data) {
		return fmt.Errorf("the service scored %d sequences of %d", len(rows), len(data))
	}
	body := make([]byte, sha256.Size)
	names := sha256.New()
	for i, d := range data {
		name := nameOf(d)
		if len(rows[i]) != len(d.Input) {
			return fmt.Errorf("the service scored %d tokens of %d", len(rows[i]), len(d.Input))
		}
		names.Write(name[:])
		body = binary.LittleEndian.AppendUint32(append(body, name[:]...), uint32(len(rows[i])))
		for _, v := range rows[i] {
			body = binary.LittleEndian.AppendUint64(body, math.Float64bits(v))
		}
	}
	sum := sha256.Sum256(body[sha256.Size:])
	copy(body, sum[:])
	path := filepath.Join(s.dir, s.space+"-"+hex.EncodeToString(names.Sum(nil)[:16])+refSuffix)
	if err := journal.Put(s.disk, path, body); err != nil {
		return &journalError{fmt.Errorf("store reference log-probabilities: %w", err)}
	}
	return s.load(path)
}
