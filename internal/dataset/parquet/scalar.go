package parquet

import (
	"encoding/hex"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"time"

	pq "github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"
)

// scalar writes one value of a column, which is not null.
type scalar func(dst []byte, v pq.Value) ([]byte, error)

// scalarOf chooses by what the column means, and else by how it is stored.
func scalarOf(t pq.Type) scalar {
	if l := t.LogicalType(); l != nil {
		if s := meaning(t.Kind(), l); s != nil {
			return s
		}
	}
	switch t.Kind() {
	case pq.Boolean:
		return func(dst []byte, v pq.Value) ([]byte, error) { return strconv.AppendBool(dst, v.Boolean()), nil }
	case pq.Int32:
		return func(dst []byte, v pq.Value) ([]byte, error) { return strconv.AppendInt(dst, int64(v.Int32()), 10), nil }
	case pq.Int64:
		return func(dst []byte, v pq.Value) ([]byte, error) { return strconv.AppendInt(dst, v.Int64(), 10), nil }
	case pq.Float:
		return func(dst []byte, v pq.Value) ([]byte, error) { return appendFloat(dst, float64(v.Float()), 32), nil }
	case pq.Double:
		return func(dst []byte, v pq.Value) ([]byte, error) { return appendFloat(dst, v.Double(), 64), nil }
	case pq.Int96:
		return appendInt96
	}
	return appendBinary
}

// meaning is nil for what is written as it is stored.
func meaning(stored pq.Kind, l *format.LogicalType) scalar {
	bytes := stored == pq.ByteArray || stored == pq.FixedLenByteArray
	switch t := l.Value.(type) {
	case *format.StringType, *format.EnumType, *format.JsonType:
		if bytes {
			return func(dst []byte, v pq.Value) ([]byte, error) { return appendText(dst, string(v.ByteArray())), nil }
		}
	case *format.IntType:
		if !t.IsSigned && stored == pq.Int32 {
			return func(dst []byte, v pq.Value) ([]byte, error) {
				return strconv.AppendUint(dst, uint64(v.Uint32()), 10), nil
			}
		}
		if !t.IsSigned && stored == pq.Int64 {
			return func(dst []byte, v pq.Value) ([]byte, error) { return strconv.AppendUint(dst, v.Uint64(), 10), nil }
		}
	case *format.DecimalType:
		return func(dst []byte, v pq.Value) ([]byte, error) { return appendDecimal(dst, v, int(t.Scale)) }
	case *format.DateType:
		return func(dst []byte, v pq.Value) ([]byte, error) {
			return appendText(dst, time.Unix(0, 0).UTC().AddDate(0, 0, int(v.Int32())).Format(time.DateOnly)), nil
		}
	case *format.TimeType:
		return func(dst []byte, v pq.Value) ([]byte, error) {
			return appendText(dst, instant(v, t.Unit).Format("15:04:05.999999999")), nil
		}
	case *format.TimestampType:
		shape := "2006-01-02T15:04:05.999999999"
		if t.IsAdjustedToUTC {
			shape += "Z07:00"
		}
		return func(dst []byte, v pq.Value) ([]byte, error) {
			return appendText(dst, instant(v, t.Unit).Format(shape)), nil
		}
	case *format.UUIDType:
		return appendUUID
	}
	return nil
}

// appendText writes JSON text. Bytes that are not UTF-8 go through as they are: who reads the row then names them.
func appendText(dst []byte, s string) []byte {
	dst = append(dst, '"')
	for i := 0; i < len(s); i++ {
		switch b := s[i]; {
		case b == '"' || b == '\\':
			dst = append(dst, '\\', b)
		case b == '\n':
			dst = append(dst, '\\', 'n')
		case b < 0x20:
			dst = append(dst, '\\', 'u', '0', '0', "0123456789abcdef"[b>>4], "0123456789abcdef"[b&15])
		default:
			dst = append(dst, b)
		}
	}
	return append(dst, '"')
}

// appendFloat writes the shortest digits that give the number back. What JSON has no number for becomes text, which no
// field that wants a number takes.
func appendFloat(dst []byte, f float64, bits int) []byte {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return appendText(dst, strconv.FormatFloat(f, 'g', -1, bits))
	}
	return strconv.AppendFloat(dst, f, 'g', -1, bits)
}

func appendBinary(dst []byte, v pq.Value) ([]byte, error) {
	return fmt.Appendf(dst, `{"binary":%d}`, len(v.ByteArray())), nil
}

// appendDecimal writes unscaled / 10^scale with all its digits.
func appendDecimal(dst []byte, v pq.Value, scale int) ([]byte, error) {
	if scale < 0 || scale > 1000 {
		return dst, fmt.Errorf("damaged: a decimal of scale %d", scale)
	}
	var n big.Int
	switch v.Kind() {
	case pq.Int32, pq.Int64:
		n.SetInt64(v.Int64())
		if v.Kind() == pq.Int32 {
			n.SetInt64(int64(v.Int32()))
		}
	default: // big-endian, two's complement
		b := v.ByteArray()
		if n.SetBytes(b); len(b) > 0 && b[0] >= 0x80 {
			n.Sub(&n, new(big.Int).Lsh(big.NewInt(1), uint(8*len(b))))
		}
	}
	if scale == 0 {
		return n.Append(dst, 10), nil
	}
	if n.Sign() < 0 {
		dst = append(dst, '-')
	}
	digits := fmt.Sprintf("%0*s", scale+1, n.Abs(&n).String())
	dst = append(dst, digits[:len(digits)-scale]...)
	return append(append(dst, '.'), digits[len(digits)-scale:]...), nil
}

func instant(v pq.Value, unit format.TimeUnit) time.Time {
	n := v.Int64()
	if v.Kind() == pq.Int32 {
		n = int64(v.Int32())
	}
	switch unit.Value.(type) {
	case *format.MilliSeconds:
		return time.UnixMilli(n).UTC()
	case *format.MicroSeconds:
		return time.UnixMicro(n).UTC()
	}
	return time.Unix(n/1e9, n%1e9).UTC()
}

// appendInt96 writes the time that old writers store so: nanoseconds of the day, and the Julian day.
func appendInt96(dst []byte, v pq.Value) ([]byte, error) {
	const unixDay = 2440588
	i := v.Int96()
	nanos := int64(uint64(i[1])<<32 | uint64(i[0]))
	at := time.Unix((int64(i[2])-unixDay)*86400, nanos).UTC()
	return appendText(dst, at.Format("2006-01-02T15:04:05.999999999")), nil
}

func appendUUID(dst []byte, v pq.Value) ([]byte, error) {
	b := v.ByteArray()
	if len(b) != 16 {
		return appendBinary(dst, v)
	}
	h := hex.EncodeToString(b)
	return appendText(dst, h[:8]+"-"+h[8:12]+"-"+h[12:16]+"-"+h[16:20]+"-"+h[20:]), nil
}
