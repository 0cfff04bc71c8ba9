package sandbox

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
)

// A frame is one record of the log: two little-endian lengths, the head (JSON), the body (bytes as they came), and a
// CRC-32C over the CRC of the frame before and all of these. The chain makes a lost or exchanged record visible.
const (
	frameLengths = 8
	frameCRC     = 4
	maxHead      = 1 << 20
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// span is where a body lies in the log; the memory store keeps the bytes themselves.
type span struct {
	at, size int64
	held     []byte
}

// seal returns the frame's first bytes, its last ones, and the CRC that the next frame chains to.
func seal(chain uint32, head, body []byte) (front, back []byte, crc uint32) {
	front = make([]byte, frameLengths, frameLengths+len(head))
	binary.LittleEndian.PutUint32(front, uint32(len(head)))
	binary.LittleEndian.PutUint32(front[4:], uint32(len(body)))
	front = append(front, head...)
	crc = crc32.Update(startCRC(chain), castagnoli, front)
	crc = crc32.Update(crc, castagnoli, body)
	return front, binary.LittleEndian.AppendUint32(nil, crc), crc
}

func startCRC(chain uint32) uint32 {
	return crc32.Checksum(binary.LittleEndian.AppendUint32(nil, chain), castagnoli)
}

// errTorn is a frame that a crash left unfinished.
var errTorn = errors.New("torn record")

// scan reads frames from the start and hands each to each. It returns the length of the prefix that holds and the CRC to
// chain to. A bad frame with nothing valid behind it is what a crash leaves, and ends the prefix; one with a valid frame
// behind it is damage, and an error.
func scan(r io.ReaderAt, size int64, each func(head []byte, body span) error) (good int64, chain uint32, err error) {
	buf := bufio.NewReaderSize(nil, 1<<18)
	for good < size {
		head, body, crc, err := readFrame(buf, r, good, size, chain)
		if errors.Is(err, errTorn) {
			at, err := validAfter(buf, r, good, size)
			if next := body.at + body.size + frameCRC; err == nil && at == 0 && body.at > 0 {
				// The frame's own CRC may be what is damaged: the next one chains to what it should have been.
				if _, _, _, err := readFrame(buf, r, next, size, crc); err == nil {
					at = next
				}
			}
			if err == nil && at > 0 {
				err = fmt.Errorf("the record at byte %d is damaged, and a valid one follows at byte %d", good, at)
			}
			return good, chain, err
		}
		if err != nil {
			return good, chain, err
		}
		if err := each(head, body); err != nil {
			return good, chain, fmt.Errorf("the record at byte %d: %w", good, err)
		}
		good, chain = body.at+body.size+frameCRC, crc
	}
	return good, chain, nil
}

// headStart is how every head begins, so that a record can be found behind one whose lengths are damaged.
var headStart = []byte(`{"kind":"`)

// validAfter returns where behind off a frame begins that holds, chained to the four bytes before it; 0 for none.
func validAfter(buf *bufio.Reader, r io.ReaderAt, off, size int64) (int64, error) {
	tail, err := io.ReadAll(io.NewSectionReader(r, off, size-off))
	if err != nil {
		return 0, fmt.Errorf("reading the log at byte %d: %w", off, err)
	}
	const before = frameCRC + frameLengths
	for i := before; i < len(tail); i++ {
		next := bytes.Index(tail[i:], headStart)
		if next < 0 {
			break
		}
		i += next
		chain := binary.LittleEndian.Uint32(tail[i-before:])
		if _, _, _, err := readFrame(buf, r, off+int64(i-frameLengths), size, chain); err == nil {
			return off + int64(i-frameLengths), nil
		}
	}
	return 0, nil
}

// readFrame reads the frame at off; errTorn when there is none that is whole and chains to the one before. Where only the
// CRC is wrong, errTorn comes with the place of the body and the CRC that would be right.
func readFrame(buf *bufio.Reader, r io.ReaderAt, off, size int64, chain uint32) (head []byte, body span, crc uint32, err error) {
	if size-off < frameLengths+frameCRC {
		return nil, span{}, 0, errTorn
	}
	buf.Reset(io.NewSectionReader(r, off, size-off))
	var lengths [frameLengths]byte
	if _, err := io.ReadFull(buf, lengths[:]); err != nil {
		return nil, span{}, 0, fmt.Errorf("reading the log at byte %d: %w", off, err)
	}
	headLen, bodyLen := int64(binary.LittleEndian.Uint32(lengths[:])), int64(binary.LittleEndian.Uint32(lengths[4:]))
	if headLen == 0 || headLen > maxHead || headLen+bodyLen > size-off-frameLengths-frameCRC {
		return nil, span{}, 0, errTorn
	}
	body = span{at: off + frameLengths + headLen, size: bodyLen}
	sum := &crcWriter{crc32.Update(startCRC(chain), castagnoli, lengths[:])}
	head = make([]byte, headLen)
	if _, err := io.ReadFull(buf, head); err != nil {
		return nil, span{}, 0, fmt.Errorf("reading the log at byte %d: %w", off, err)
	}
	_, _ = sum.Write(head)
	if _, err := io.CopyN(sum, buf, bodyLen); err != nil {
		return nil, span{}, 0, fmt.Errorf("reading the log at byte %d: %w", off, err)
	}
	var tail [frameCRC]byte
	if _, err := io.ReadFull(buf, tail[:]); err != nil {
		return nil, span{}, 0, fmt.Errorf("reading the log at byte %d: %w", off, err)
	}
	crc = binary.LittleEndian.Uint32(tail[:])
	if crc != sum.crc {
		return nil, body, sum.crc, errTorn
	}
	return head, body, crc, nil
}

type crcWriter struct{ crc uint32 }

func (w *crcWriter) Write(p []byte) (int, error) {
	w.crc = crc32.Update(w.crc, castagnoli, p)
	return len(p), nil
}
