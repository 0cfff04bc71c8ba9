package wire

import (
	"math"
	"strconv"
)

// number is one JSON number as it was read.
type number struct {
	text     []byte // valid until the scanner moves on
	mantissa uint64 // of the digits, without sign and point; exact where digits <= 19
	digits   int    // significant digits in mantissa
	exp      int    // the value is mantissa * 10^exp
	negative bool
	integer  bool // neither fraction nor exponent
}

// number reads one, by the grammar of JSON: no plus sign, no leading zero, digits on both sides of the point.
func (s *scanner) number() number {
	s.peek()
	s.more(longestNumber) // so that the number is in one piece
	var n number
	b := s.buf[s.pos:]
	i := 0
	if i < len(b) && b[i] == '-' {
		n.negative = true
		i++
	}
	n.integer = true
	from := i
	i = n.take(b, i)
	switch {
	case i == from && n.negative:
		s.fail("a minus sign without digits")
		return number{}
	case i == from:
		s.want("a number")
		return number{}
	case b[from] == '0' && i > from+1:
		s.fail("a number starts with a superfluous zero")
		return number{}
	}
	if i < len(b) && b[i] == '.' {
		n.integer = false
		from := i + 1
		i = n.take(b, from)
		if n.exp -= i - from; i == from {
			s.fail("a number ends in its point")
			return number{}
		}
	}
	if i < len(b) && (b[i] == 'e' || b[i] == 'E') {
		n.integer = false
		from := i + 1
		e, end := exponent(b, from)
		if n.exp += e; end == from {
			s.fail("a number ends in its exponent")
			return number{}
		}
		i = end
	}
	if i >= longestNumber {
		s.fail("a number is longer than %d bytes", longestNumber)
		return number{}
	}
	n.text = b[:i]
	s.pos += i
	return n
}

// take adds the digits of b from i on, and returns where they end.
func (n *number) take(b []byte, i int) int {
	for ; i < len(b) && b[i]-'0' <= 9; i++ {
		if n.mantissa > 0 || b[i] != '0' {
			n.digits++
		}
		n.mantissa = n.mantissa*10 + uint64(b[i]-'0') // wraps above 19 digits, where nobody reads it
	}
	return i
}

// exponent reads a signed exponent, bounded far outside the doubles; end == i when there is none.
func exponent(b []byte, i int) (e, end int) {
	from, negative := i, false
	if i < len(b) && (b[i] == '-' || b[i] == '+') {
		negative = b[i] == '-'
		i++
	}
	digits := i
	for ; i < len(b) && b[i]-'0' <= 9; i++ {
		e = min(e*10+int(b[i]-'0'), 1<<20)
	}
	if i == digits {
		return 0, from
	}
	if negative {
		e = -e
	}
	return e, i
}

var pow10 = [...]float64{1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22}

// float returns the nearest double; ok is false beyond the doubles. Up to 15 digits and 10^22 both parts are exact
// doubles, so one operation rounds rightly (Clinger 1990).
func (n number) float() (v float64, ok bool) {
	if n.digits > 15 || n.exp < -22 || n.exp > 22 {
		v, err := strconv.ParseFloat(string(n.text), 64)
		return v, err == nil
	}
	v = float64(n.mantissa)
	if n.negative {
		v = -v
	}
	if n.exp < 0 {
		return v / pow10[-n.exp], true
	}
	return v * pow10[n.exp], true
}

// double reads a number.
func (s *scanner) double() float64 {
	n := s.number()
	v, ok := n.float()
	if s.err == nil && !ok {
		s.fail("%.40s is beyond a double", n.text)
	}
	return v
}

// float32 reads a number that is one, as a double.
func (s *scanner) float32() float64 {
	v := s.double()
	if s.err == nil && !fitsFloat32(v) {
		s.fail("%v is beyond float32", v)
	}
	return v
}

// token reads an integer that fits int32; quoted where allowed.
func (s *scanner) token() int32 {
	n := s.number()
	if s.err != nil {
		return 0
	}
	if !n.integer || n.digits > 10 || n.mantissa > math.MaxInt32 {
		s.fail("%.40s is not a token id", n.text)
		return 0
	}
	if n.negative {
		return -int32(n.mantissa)
	}
	return int32(n.mantissa)
}
