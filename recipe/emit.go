package recipe

import (
	"cmp"
	"fmt"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// inline is a value as YAML on one line, such that Load reads the same value back. Names of maps are sorted.
func inline(v reflect.Value) string {
	switch x := v.Interface().(type) {
	case time.Duration:
		return periodText(x)
	case Split:
		if x.Rows > 0 {
			return strconv.Itoa(x.Rows)
		}
		return numberText(x.Share)
	case Field:
		return x.inline()
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return "null"
		}
		return inline(v.Elem())
	case reflect.String:
		return quote(v.String())
	case reflect.Bool:
		return strconv.FormatBool(v.Bool())
	case reflect.Int, reflect.Int64:
		return strconv.FormatInt(v.Int(), 10)
	case reflect.Float64:
		return numberText(v.Float())
	case reflect.Slice, reflect.Array:
		parts := make([]string, v.Len())
		for i := range parts {
			parts[i] = inline(v.Index(i))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case reflect.Map:
		var parts []string
		for _, k := range v.MapKeys() {
			parts = append(parts, quote(k.String())+": "+inline(v.MapIndex(k)))
		}
		slices.Sort(parts)
		return "{" + strings.Join(parts, ", ") + "}"
	}
	return fmt.Sprintf("%q", fmt.Sprint(v.Interface()))
}

func (f Field) inline() string {
	cols := inline(reflect.ValueOf(f.Columns))
	if len(f.Columns) == 1 {
		cols = quote(f.Columns[0])
	}
	if f.Regex == "" {
		return cols
	}
	return "{column: " + cols + ", regex: " + quote(f.Regex) + "}"
}

// numberText has a point or an exponent with one, so that every reader of YAML takes it for a number.
func numberText(v float64) string {
	if v == math.Trunc(v) && math.Abs(v) < 1e6 {
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	s := strconv.FormatFloat(v, 'g', -1, 64)
	mantissa, exponent, ok := strings.Cut(s, "e")
	if !ok {
		return s
	}
	if !strings.Contains(mantissa, ".") {
		mantissa += ".0"
	}
	n, _ := strconv.Atoi(exponent) // strconv wrote it
	return mantissa + "e" + fmt.Sprintf("%+d", n)
}

// periodText is a whole number of seconds as 4h, 15m or 1h30m5s.
func periodText(d time.Duration) string {
	s := ""
	for _, unit := range []struct {
		size time.Duration
		name string
	}{{time.Hour, "h"}, {time.Minute, "m"}, {time.Second, "s"}} {
		if n := d / unit.size; n > 0 {
			s += strconv.FormatInt(int64(n), 10) + unit.name
			d -= n * unit.size
		}
	}
	return cmp.Or(s, "0s")
}

// plainForm are words that no reader of YAML takes for anything but text; others stand in quotes.
var (
	plainForm = regexp.MustCompile(`^[A-Za-z/][A-Za-z0-9_./@+-]*(://[A-Za-z0-9_./@+-]+)?$`)
	wordForm  = regexp.MustCompile(`^(?i:y|n|yes|no|on|off|true|false|null|inf|nan)$`)
)

func quote(s string) string {
	if plainForm.MatchString(s) && !wordForm.MatchString(s) {
		return s
	}
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case r == ' ' || unicode.IsPrint(r) && r != '\ufeff':
			b.WriteRune(r)
		case r > 0xffff:
			fmt.Fprintf(&b, `\U%08x`, r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	b.WriteByte('"')
	return b.String()
}
