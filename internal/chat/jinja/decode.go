package jinja

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/big"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Decode reads one JSON value as Python's json.loads does: keys in order, the last of equal ones, integers of any size
// apart from floats. It refuses what would not arrive as it stands: text that is not UTF-8 and half surrogate pairs, and
// NaN and Infinity, which are not JSON.
func Decode(data []byte) (Value, error) {
	if !utf8.Valid(data) {
		return nil, errors.New("the JSON is not UTF-8")
	}
	if i := loneSurrogate(data); i >= 0 {
		return nil, fmt.Errorf("byte %d: %s is half a character", i+1, data[i:i+6])
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	v, err := decodeValue(d, 0)
	if err != nil {
		return nil, err
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, fmt.Errorf("byte %d: something follows the JSON value", d.InputOffset()+1)
	}
	return v, nil
}

// loneSurrogate is where a \u escape of half a pair stands alone, -1 for nowhere.
func loneSurrogate(data []byte) int {
	half := func(i int) int { // 1: the first half, 2: the second, 0: neither
		if i+6 > len(data) || data[i] != '\\' || data[i+1] != 'u' {
			return 0
		}
		n, err := strconv.ParseUint(string(data[i+2:i+6]), 16, 32)
		switch {
		case err != nil || n < 0xd800 || n > 0xdfff:
			return 0
		case n < 0xdc00:
			return 1
		}
		return 2
	}
	for i := bytes.IndexByte(data, '\\'); i >= 0 && i < len(data); i++ {
		if data[i] != '\\' {
			continue
		}
		switch half(i) {
		case 2:
			return i
		case 1:
			if half(i+6) != 2 {
				return i
			}
			i += 11
		default:
			i++ // the escaped character, which may be a backslash
		}
	}
	return -1
}

func decodeValue(d *json.Decoder, depth int) (Value, error) {
	if depth > maxValueDepth {
		return nil, fmt.Errorf("JSON nested more than %d deep", maxValueDepth)
	}
	t, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch t := t.(type) {
	case json.Number:
		return decodeNumber(string(t))
	case json.Delim:
		if t == '[' {
			return decodeList(d, depth)
		}
		return decodeDict(d, depth)
	}
	return t, nil // nil, bool or string
}

func decodeList(d *json.Decoder, depth int) (Value, error) {
	l := &List{Items: []Value{}}
	for d.More() {
		v, err := decodeValue(d, depth+1)
		if err != nil {
			return nil, err
		}
		l.Items = append(l.Items, v)
	}
	_, err := d.Token()
	return l, err
}

func decodeDict(d *json.Decoder, depth int) (Value, error) {
	m := &Dict{}
	for d.More() {
		k, err := d.Token()
		if err != nil {
			return nil, err
		}
		v, err := decodeValue(d, depth+1)
		if err != nil {
			return nil, err
		}
		m.Set(k.(string), v)
	}
	_, err := d.Token()
	return m, err
}

func decodeNumber(s string) (Value, error) {
	if strings.ContainsAny(s, ".eE") {
		f, err := strconv.ParseFloat(s, 64)
		if err != nil && !math.IsInf(f, 0) {
			return nil, err
		}
		return f, nil
	}
	if i, err := strconv.ParseInt(s, 10, 64); err == nil {
		return i, nil
	}
	n, ok := new(big.Int).SetString(s, 10)
	if !ok || len(s) > maxDigits {
		return nil, fmt.Errorf("an integer of more than %d digits", maxDigits)
	}
	return n, nil
}
