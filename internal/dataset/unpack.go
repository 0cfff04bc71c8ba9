package dataset

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"trainer/internal/dataset/parquet"
	"trainer/internal/hub"
)

// packing is a way in which rows are packed that has no random access by byte. Such a file is unpacked once, into a copy
// that is named by its bytes, the way and the way's version; a row is then read from the copy as from any file.
type packing struct {
	name   string // with the version of what it makes
	begins func(start []byte) bool
	unpack func(ctx context.Context, f *os.File, limit int, w *bufio.Writer) error
}

func packings() []packing {
	return []packing{
		{"gzip1", func(b []byte) bool { return bytes.HasPrefix(b, []byte("\x1F\x8B")) }, streamed(gunzip)},
		{"zstd1", func(b []byte) bool { return bytes.HasPrefix(b, []byte("\x28\xB5\x2F\xFD")) || skippable(b) }, streamed(unzstd)},
		{"parquet1", func(b []byte) bool { return bytes.HasPrefix(b, []byte(parquet.Magic)) }, fromParquet},
	}
}

// skippable tells whether a frame that zstd steps over begins the file.
func skippable(b []byte) bool { return len(b) >= 4 && b[0]>>4 == 5 && string(b[1:4]) == "\x2A\x4D\x18" }

// maxWindow bounds the memory that a zstd file may ask for; it is what its command line tool allows.
const maxWindow = 128 << 20

func gunzip(r io.Reader) (io.ReadCloser, error) { return gzip.NewReader(r) }

func unzstd(r io.Reader) (io.ReadCloser, error) {
	z, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxWindow))
	if err != nil {
		return nil, err
	}
	return z.IOReadCloser(), nil
}

func streamed(open func(io.Reader) (io.ReadCloser, error)) func(context.Context, *os.File, int, *bufio.Writer) error {
	return func(ctx context.Context, f *os.File, limit int, w *bufio.Writer) error {
		r, err := open(bufio.NewReaderSize(f, 1<<20))
		if err != nil {
			return unsound(err)
		}
		defer r.Close()
		from := &packed{ctx: ctx, r: r}
		if limit < 0 {
			_, err = io.Copy(w, from)
			return err
		}
		return firstRows(io.TeeReader(from, w), limit)
	}
}

// firstRows reads so far that the first limit rows have gone by.
func firstRows(r io.Reader, limit int) error {
	split, err := newSplitter(r)
	var row []byte
	for ; limit > 0 && err == nil; limit-- {
		row, _, err = split.next(row[:0])
	}
	var fault *splitFault
	if err == io.EOF || errors.As(err, &fault) {
		return nil // who reads the copy comes upon it again, and says where
	}
	return err
}

func fromParquet(ctx context.Context, f *os.File, limit int, w *bufio.Writer) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	return parquet.Convert(ctx, f, info.Size(), limit, w)
}

// packed reads what is unpacked, and says what is wrong in the words of the file.
type packed struct {
	ctx context.Context // of the one call that reads
	r   io.Reader
}

func (p *packed) Read(b []byte) (int, error) {
	if err := context.Cause(p.ctx); err != nil {
		return 0, err
	}
	n, err := p.r.Read(b)
	if err != nil && err != io.EOF {
		err = unsound(err)
	}
	return n, err
}

func unsound(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) || err == io.EOF {
		return errors.New("the compressed file is cut off; is it whole?")
	}
	return fmt.Errorf("the compressed file is damaged: %w", err)
}

// readable is a file whose rows can be read at any offset: the one given, or the copy that was unpacked from it.
type readable struct {
	path string
	sum  *uint32 // of a copy that has all rows: what its bytes add up to, CRC-32C
}

// unpacker keeps copies in a folder.
type unpacker struct{ dir string }

// find returns the file itself, or a copy of it that has at least limit rows, all of them where limit is negative. It is
// safe for concurrent use, also by several processes: a copy appears as a whole, under a name that says what is in it.
func (u unpacker) find(ctx context.Context, f hub.File, limit int) (readable, error) {
	src, err := os.Open(f.Path)
	if err != nil {
		return readable{}, err
	}
	defer src.Close()
	var start [4]byte
	n, err := io.ReadFull(src, start[:])
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		return readable{}, err
	}
	all := packings()
	i := slices.IndexFunc(all, func(p packing) bool { return p.begins(start[:n]) })
	if i < 0 {
		return readable{path: f.Path}, nil
	}
	if u.dir == "" {
		return readable{}, errors.New("packed rows are unpacked into a cache folder, and there is none; set TRAINER_CACHE to a folder with room, or unpack the file first")
	}
	whole := f.SHA256 + "." + all[i].name
	if p, ok := u.kept(whole); ok {
		return p, nil
	}
	stem := whole
	if limit >= 0 {
		stem = whole + ".first" + strconv.Itoa(limit)
		if p, ok := u.kept(stem); ok {
			return readable{path: p.path}, nil
		}
	}
	if _, err := src.Seek(0, io.SeekStart); err != nil {
		return readable{}, err
	}
	p, err := u.make(stem, func(w *bufio.Writer) error {
		if err := all[i].unpack(ctx, src, limit, w); err != nil {
			return err
		}
		return unchanged(src, f)
	})
	if limit >= 0 {
		p.sum = nil // only what is read of it is sound
	}
	return p, err
}

// unchanged holds the file against the hash that names its copy.
func unchanged(src *os.File, f hub.File) error {
	if _, err := src.Seek(0, io.SeekStart); err != nil {
		return err
	}
	h := sha256.New()
	if _, err := io.Copy(h, src); err != nil {
		return err
	}
	if hex.EncodeToString(h.Sum(nil)) != f.SHA256 {
		return errors.New("the file changed while it was read")
	}
	return nil
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// kept finds a copy by what its name begins with; the sum of its bytes ends the name.
func (u unpacker) kept(stem string) (readable, bool) {
	found, err := os.ReadDir(u.dir)
	if err != nil {
		return readable{}, false
	}
	for _, e := range found {
		rest, ok := strings.CutPrefix(e.Name(), stem+"-")
		if !ok {
			continue
		}
		if sum, err := strconv.ParseUint(strings.TrimSuffix(rest, ".jsonl"), 16, 32); err == nil && len(rest) == len("00000000.jsonl") {
			return readable{filepath.Join(u.dir, e.Name()), new(uint32(sum))}, true
		}
	}
	return readable{}, false
}

// make writes a copy beside its name, and then gives it the name.
func (u unpacker) make(stem string, fill func(*bufio.Writer) error) (_ readable, err error) {
	if err := os.MkdirAll(u.dir, 0o700); err != nil {
		return readable{}, u.advise(err)
	}
	u.sweep()
	tmp, err := os.CreateTemp(u.dir, stem+".*"+partial)
	if err != nil {
		return readable{}, u.advise(err)
	}
	defer func() {
		if err != nil {
			tmp.Close()
			os.Remove(tmp.Name())
		}
	}()
	out := &summed{w: tmp}
	w := bufio.NewWriterSize(out, 1<<20)
	if err = cmp.Or(fill(w), w.Flush(), tmp.Close()); err != nil {
		return readable{}, u.advise(err)
	}
	path := filepath.Join(u.dir, fmt.Sprintf("%s-%08x.jsonl", stem, out.sum))
	if err = os.Rename(tmp.Name(), path); err != nil {
		return readable{}, u.advise(err)
	}
	return readable{path, &out.sum}, nil
}

// advise says what to do where the folder is at fault.
func (u unpacker) advise(err error) error {
	var path *fs.PathError
	if !errors.As(err, &path) || !strings.HasPrefix(path.Path, u.dir) && !strings.HasPrefix(u.dir, path.Path) {
		return err
	}
	return fmt.Errorf("unpacking into the cache %s: %w; set TRAINER_CACHE to a folder that can be written to and has room", u.dir, path.Err)
}

const (
	partial  = ".part"
	deadTime = time.Hour // what nobody has written to for so long was left by a process that died
)

// sweep removes what dead processes have left half written.
func (u unpacker) sweep() {
	found, err := os.ReadDir(u.dir)
	if err != nil {
		return
	}
	for _, e := range found {
		info, err := e.Info()
		if err == nil && strings.HasSuffix(e.Name(), partial) && time.Since(info.ModTime()) > deadTime {
			os.Remove(filepath.Join(u.dir, e.Name()))
		}
	}
}

// summed adds up what goes through to w.
type summed struct {
	w   io.Writer
	sum uint32
}

func (s *summed) Write(b []byte) (int, error) {
	s.sum = crc32.Update(s.sum, castagnoli, b)
	return s.w.Write(b)
}
