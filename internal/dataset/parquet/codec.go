package parquet

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go/format"
)

// unpacks tells whether packed is size bytes when it is unpacked.
func unpacks(codec format.CompressionCodec, packed []byte, size int64) error {
	if size == 0 && len(packed) == 0 {
		return nil
	}
	var r io.Reader
	switch codec {
	case format.Snappy:
		n, err := snappy.DecodedLen(packed)
		if err == nil && int64(n) != size {
			err = fmt.Errorf("%d bytes where %d are due", n, size)
		}
		return damaged(err)
	case format.Gzip:
		z, err := gzip.NewReader(bytes.NewReader(packed))
		if err != nil {
			return damaged(err)
		}
		r = z
	case format.Zstd:
		z, err := zstd.NewReader(bytes.NewReader(packed), zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxPage), zstd.WithDecoderLowmem(true))
		if err != nil {
			return damaged(err)
		}
		defer z.Close()
		r = z
	case format.Brotli:
		r = brotli.NewReader(bytes.NewReader(packed))
	default:
		return fmt.Errorf("compressed with %v, which is not read; write the file with snappy, zstd, gzip or brotli", codec)
	}
	n, err := io.Copy(io.Discard, io.LimitReader(r, size+1))
	if err == nil && n != size {
		err = errors.New("unpacks to another size than it says")
	}
	return damaged(err)
}

func damaged(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("damaged: %w", err)
}
