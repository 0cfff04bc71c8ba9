package wire

import (
	"bytes"
	"fmt"
	"strconv"
)

// Int64 is a 64-bit integer of an answer: written as a decimal string, read from a string or a number.
type Int64 int64

// MarshalJSON writes a decimal string.
func (i Int64) MarshalJSON() ([]byte, error) {
	return append(strconv.AppendInt([]byte{'"'}, int64(i), 10), '"'), nil
}

// UnmarshalJSON reads a decimal string or an integer; null leaves the value as it is.
func (i *Int64) UnmarshalJSON(b []byte) error {
	v, ok, err := parseInt64(b)
	if ok {
		*i = Int64(v)
	}
	return err
}

// Integer is a 64-bit integer of a request: written as a number, read from a string or a number.
type Integer int64

// UnmarshalJSON reads a decimal string or an integer; null leaves the value as it is.
func (i *Integer) UnmarshalJSON(b []byte) error {
	v, ok, err := parseInt64(b)
	if ok {
		*i = Integer(v)
	}
	return err
}

// parseInt64 reads the JSON value b; ok is false for null and for an error.
func parseInt64(b []byte) (v int64, ok bool, err error) {
	if bytes.Equal(b, []byte("null")) {
		return 0, false, nil
	}
	text := b
	if len(b) > 1 && b[0] == '"' && b[len(b)-1] == '"' {
		text = b[1 : len(b)-1]
	}
	if len(text) == 0 || text[0] == '+' {
		return 0, false, fmt.Errorf("%.40s is not an integer", b)
	}
	v, err = strconv.ParseInt(string(text), 10, 64)
	if err != nil {
		return 0, false, fmt.Errorf("%.40s is not a 64-bit integer", b)
	}
	return v, true, nil
}
