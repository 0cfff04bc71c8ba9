package report

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// Loss is a loss or a reward with 4 decimals; from a million on, and where it is not finite, as short as it goes. What rounds to
// nothing has no sign: advantages of a group add up to 0, but for the last bits.
func Loss(v float64) string {
	if !(math.Abs(v) < 1e6) {
		return strconv.FormatFloat(v, 'g', 5, 64)
	}
	if math.Abs(v) < 0.00005 {
		v = 0
	}
	return strconv.FormatFloat(v, 'f', 4, 64)
}

// Rate is a learning rate with 3 significant digits: 9.80e-05, and 0.
func Rate(v float64) string {
	if v == 0 {
		return "0"
	}
	return strconv.FormatFloat(v, 'e', 2, 64)
}

// score is any metric by its name: whole numbers, which are counts, as such, but losses and rewards always as Loss. How many have
// no reward is a count.
func score(name string, v float64) string {
	loss := (strings.Contains(name, "loss") || strings.Contains(name, "reward")) && !strings.Contains(name, "/unscored")
	if !loss && v == math.Trunc(v) && math.Abs(v) < 1e15 {
		return Count(int64(v))
	}
	return Loss(v)
}

// Count is a whole number with commas between thousands: 1,234,567.
func Count[N ~int | ~int64](n N) string {
	digits := strconv.FormatInt(int64(n), 10)
	sign := ""
	if digits[0] == '-' {
		sign, digits = "-", digits[1:]
	}
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return sign + digits
}

// Short is a quantity in three or four digits, for tokens a second and axes: 8.3, 940, 12.3k, 4.2M.
func Short(v float64) string {
	size := math.Abs(v)
	switch {
	case !(size < 1e15):
		return strconv.FormatFloat(v, 'g', 3, 64)
	case size >= 999.95e6:
		return fmt.Sprintf("%.1fG", v/1e9)
	case size >= 999.95e3:
		return fmt.Sprintf("%.1fM", v/1e6)
	case size >= 999.5:
		return fmt.Sprintf("%.1fk", v/1e3)
	case size >= 9.95 || v == math.Trunc(v):
		return fmt.Sprintf("%.0f", v)
	case size >= 0.1:
		return fmt.Sprintf("%.1f", v)
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}

// USD is dollars and cents: $1,234.50.
func USD(v float64) string {
	if !(math.Abs(v) < 1e15) {
		return "$" + strconv.FormatFloat(v, 'g', 5, 64)
	}
	sign, cents := "", int64(math.Round(v*100))
	if cents < 0 {
		sign, cents = "-", -cents
	}
	return fmt.Sprintf("%s$%s.%02d", sign, Count(cents/100), cents%100)
}

// Bytes is a number of bytes in the decimal units of disks: 999 B, 12.3 kB, 4.2 GB.
func Bytes(n int64) string {
	if n < 1000 {
		return fmt.Sprintf("%d B", n)
	}
	v := float64(n)
	for _, unit := range []string{"kB", "MB", "GB"} {
		if v /= 1000; v < 999.95 {
			return fmt.Sprintf("%.1f %s", v, unit)
		}
	}
	return fmt.Sprintf("%.1f TB", v/1000)
}

// Duration is how people say it, in at most two units: <1s, 42s, 1m20s, 16m, 2h05m, 3d04h. Below 0 it is <1s.
func Duration(d time.Duration) string {
	if d < time.Second {
		return "<1s"
	}
	s := int64(d.Round(time.Second) / time.Second)
	switch {
	case s < 60:
		return fmt.Sprintf("%ds", s)
	case s < 3600:
		return units(s/60, "m", s%60, "s")
	case s < 86400:
		return units(s/3600, "h", s/60%60, "m")
	}
	return units(s/86400, "d", s/3600%24, "h")
}

func units(large int64, of string, small int64, than string) string {
	if small == 0 {
		return fmt.Sprintf("%d%s", large, of)
	}
	return fmt.Sprintf("%d%s%02d%s", large, of, small, than)
}

// seconds turns a metric into a Duration, which could not hold all floats: 0 for NaN, at most 100 years.
func seconds(v float64) time.Duration {
	const most = 100 * 365 * 86400
	if !(v > 0) {
		return 0
	}
	return time.Duration(math.Min(v, most) * float64(time.Second))
}

// percent is a share with one decimal; "-" of nothing.
func percent(part, whole int64) string {
	if whole == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f %%", 100*float64(part)/float64(whole))
}

// printable keeps foreign text on one line and from steering the terminal: any white space becomes a space, what is not
// shown a question mark.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return ' '
		}
		return visible(r)
	}, strings.ToValidUTF8(s, "?"))
}

// printableText is printable for a text of several lines.
func printableText(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' || unicode.Is(unicode.Zs, r) {
			return r
		}
		return visible(r)
	}, strings.ReplaceAll(strings.ToValidUTF8(s, "?"), "\r\n", "\n"))
}

// visible is r, or a question mark for control characters, those that turn the reading direction, and what Unicode does
// not assign. Joiners within words and emoji stay.
func visible(r rune) rune {
	if unicode.IsPrint(r) || unicode.Is(unicode.Cf, r) && !unicode.Is(unicode.Bidi_Control, r) {
		return r
	}
	return '?'
}
