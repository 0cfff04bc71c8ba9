package parquet

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

// Bounds of what a file may ask memory for. Writers keep pages near 1 MiB, and a page's values near 20,000.
const (
	maxFooter = 64 << 20
	maxPage   = 256 << 20
	maxValues = 1 << 26
)

// footerFits looks at the size that the file gives for its description.
func footerFits(r io.ReaderAt, size int64) error {
	if size < 12 {
		return errors.New("cut off: too short for a Parquet file")
	}
	var tail [8]byte
	if _, err := r.ReadAt(tail[:], size-8); err != nil && err != io.EOF {
		return err
	}
	if string(tail[4:]) == "PARE" {
		return errors.New("encrypted; that is not read")
	}
	if string(tail[4:]) != Magic {
		return errors.New("cut off, or written over: the end of a Parquet file is not there")
	}
	if n := int64(binary.LittleEndian.Uint32(tail[:])); n > maxFooter || n+12 > size {
		return fmt.Errorf("damaged: a description of %d bytes in a file of %d", n, size)
	}
	return nil
}

// chunk is the pages of one column in one row group.
type chunk struct {
	r       io.ReaderAt
	at, end int64 // in the file
	codec   format.CompressionCodec
	window  []byte
	page    []byte
}

// pagesFit looks at every page: that its sizes are sane, and that it unpacks to what it says, as decoders take memory by
// either.
func pagesFit(r io.ReaderAt, size int64, group *format.RowGroup) error {
	c := &chunk{r: r, window: make([]byte, 16<<10)}
	for i := range group.Columns {
		m := &group.Columns[i].MetaData
		from := m.DataPageOffset
		if m.DictionaryPageOffset > 0 {
			from = min(from, m.DictionaryPageOffset)
		}
		if from < 4 || m.TotalCompressedSize < 0 || from > size || m.TotalCompressedSize > size-from {
			return fmt.Errorf("damaged: column %q stands at byte %d, with %d bytes, in a file of %d", m.PathInSchema, from, m.TotalCompressedSize, size)
		}
		c.at, c.end, c.codec = from, from+m.TotalCompressedSize, m.Codec
		for c.at < c.end {
			if err := c.next(); err != nil {
				return fmt.Errorf("column %q: %w", m.PathInSchema, err)
			}
		}
	}
	return nil
}

// next looks at the page at c.at, and steps behind it.
func (c *chunk) next() error {
	head, err := c.head()
	if err != nil {
		return fmt.Errorf("damaged: the head of a page at byte %d: %w", c.at, err)
	}
	values := max(head.DataPageHeader.V.NumValues, head.DataPageHeaderV2.V.NumValues, head.DictionaryPageHeader.V.NumValues)
	packed, size := int64(head.CompressedPageSize), int64(head.UncompressedPageSize)
	if packed < 0 || packed > c.end-c.at || packed > maxPage || size < 0 || size > maxPage || values > maxValues {
		return fmt.Errorf("damaged: a page of %d bytes, %d unpacked, and %d values at byte %d", packed, size, values, c.at)
	}
	at := c.at
	if c.at += packed; c.codec == format.Uncompressed {
		return nil
	}
	if h := head.DataPageHeaderV2; h.Valid {
		if h.V.IsCompressed.Valid && !h.V.IsCompressed.V {
			return nil
		}
		levels := int64(h.V.RepetitionLevelsByteLength) + int64(h.V.DefinitionLevelsByteLength)
		if levels < 0 || levels > packed || levels > size {
			return fmt.Errorf("damaged: levels of %d bytes in a page of %d at byte %d", levels, packed, at)
		}
		at, packed, size = at+levels, packed-levels, size-levels
	}
	if int64(cap(c.page)) < packed {
		c.page = make([]byte, packed)
	}
	c.page = c.page[:packed]
	if _, err := c.r.ReadAt(c.page, at); err != nil && err != io.EOF {
		return err
	}
	if err := unpacks(c.codec, c.page, size); err != nil {
		return fmt.Errorf("a page at byte %d: %w", at, err)
	}
	return nil
}

// head reads the head of the page at c.at, and steps behind it. Statistics in it can be long.
func (c *chunk) head() (head format.PageHeader, err error) {
	for {
		n, err := c.r.ReadAt(c.window[:min(int64(len(c.window)), c.end-c.at)], c.at)
		if err != nil && err != io.EOF {
			return head, err
		}
		head = format.PageHeader{}
		in := (&thrift.CompactProtocol{}).NewReaderFromBytes(c.window[:n])
		err = thrift.NewDecoder(in).Decode(&head)
		if err == nil {
			c.at += int64(in.BytesRead())
			return head, nil
		}
		if n < len(c.window) || n > maxFooter {
			return head, err
		}
		c.window = make([]byte, 16*len(c.window))
	}
}
