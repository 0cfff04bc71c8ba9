package jinja

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// layouts are the directives of strftime that Go's layouts can say, in the C locale.
var layouts = map[byte]string{
	'Y': "2006", 'm': "01", 'd': "02", 'H': "15", 'M': "04", 'S': "05", 'y': "06", 'B': "January", 'b': "Jan", 'h': "Jan",
	'A': "Monday", 'a': "Mon", 'I': "03", 'p': "PM", 'j': "002", 'e': "_2", 'F': "2006-01-02", 'T': "15:04:05", 'D': "01/02/06",
	'R': "15:04", 'c': "Mon Jan _2 15:04:05 2006", 'x': "01/02/06", 'X': "15:04:05",
}

// strftime formats t as Python on Linux does; the time has no zone.
func strftime(t time.Time, format string) string {
	var out strings.Builder
	for i := 0; i < len(format); i++ {
		if format[i] != '%' {
			out.WriteByte(format[i])
			continue
		}
		i++
		bare := i < len(format) && format[i] == '-' // without padding
		if bare {
			i++
		}
		if i == len(format) {
			unsupported("strftime_now with a %% that ends the format")
		}
		s := directive(t, format[i])
		if bare {
			s = unpadded(s)
		}
		out.WriteString(s)
	}
	return out.String()
}

func directive(t time.Time, c byte) string {
	switch c {
	case '%':
		return "%"
	case 'n':
		return "\n"
	case 't':
		return "\t"
	case 'f':
		return fmt.Sprintf("%06d", t.Nanosecond()/1000)
	case 'w':
		return strconv.Itoa(int(t.Weekday()))
	case 'u':
		return strconv.Itoa((int(t.Weekday())+6)%7 + 1)
	case 'Z', 'z':
		return ""
	}
	if l, ok := layouts[c]; ok {
		return t.Format(l)
	}
	unsupported("strftime_now with %%%c", c)
	return ""
}

func unpadded(s string) string {
	if t := strings.TrimLeft(s, "0 "); t != "" {
		return t
	}
	return s[len(s)-min(1, len(s)):]
}
