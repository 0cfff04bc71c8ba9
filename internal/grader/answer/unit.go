package answer

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
)

// unitNames are the words that count as units, each with its canonical name where it has one besides itself without a final s.
var unitNames = map[string]string{
	"kilometer": "km", "kilometre": "km", "km": "km", "centimeter": "cm", "centimetre": "cm", "cm": "cm", "millimeter": "mm",
	"millimetre": "mm", "mm": "mm", "meter": "m", "metre": "m", "m": "m", "inch": "in", "inches": "in", "in": "in", "foot": "ft",
	"feet": "ft", "ft": "ft", "yard": "yd", "yd": "yd", "mile": "mi", "mi": "mi", "kilogram": "kg", "kg": "kg", "gram": "g",
	"g": "g", "milligram": "mg", "mg": "mg", "pound": "lb", "lb": "lb", "ounce": "oz", "oz": "oz", "ton": "", "liter": "l",
	"litre": "l", "l": "l", "milliliter": "ml", "ml": "ml", "gallon": "", "second": "s", "sec": "s", "s": "s", "minute": "min",
	"min": "min", "hour": "h", "hr": "h", "h": "h", "day": "", "week": "", "month": "", "year": "", "dollar": "usd", "usd": "usd",
	"$": "usd", "cent": "cent", "¢": "cent", "euro": "eur", "eur": "eur", "€": "eur", "gbp": "gbp", "£": "gbp", "jpy": "jpy",
	"¥": "jpy", "degree": "deg", "deg": "deg", "radian": "", "rad": "", "mph": "mph", "unit": "", "people": "", "student": "",
	"percent": "", "pct": "", "point": "", "square": "", "cubic": "", "sq": "", "cu": "", "per": "", "apple": "", "book": "",
	"way": "", "kph": "", "ms": "", "hz": "",
}

// unitWord is a regular expression of every unit word, plurals included, the longest first.
var unitWord = func() string {
	var words []string
	for name := range unitNames {
		if name[0] >= 'a' && name[0] <= 'z' {
			words = append(words, name)
			if len(name) >= 3 && !uncounted[name] {
				words = append(words, name+"s")
			}
		}
	}
	words = append(words, "lbs", "hrs")
	slices.SortFunc(words, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
	return "(?:" + strings.Join(words, "|") + ")"
}()

// uncounted are the words without a plural.
var uncounted = map[string]bool{
	"inches": true, "feet": true, "foot": true, "mph": true, "kph": true, "usd": true, "eur": true, "gbp": true, "jpy": true, "deg": true, "rad": true,
	"people": true, "percent": true, "pct": true, "square": true, "cubic": true, "per": true, "inch": true,
}

// shortUnits of two letters may be glued to their number.
var shortUnits = map[string]bool{"cm": true, "mm": true, "km": true, "kg": true, "mg": true, "ml": true, "ft": true, "oz": true}

var (
	isUnit      = regexp.MustCompile(`^` + unitWord + `$`)
	unitBehind  = regexp.MustCompile(`(?i)^(.*?[0-9}%)$\]])\s*(?:\\text\{|\\mathrm\{|\\,|~|\\ |\\mbox\{|\{)*\s*(` + unitWord + `(?:[ /.*-]*` + unitWord + `)*)\s*\}*\s*(\^\{?-?[0-9]\}?|[23])?\s*\}*$`)
	degrees     = regexp.MustCompile(`^(.*?)\s*\^\s*\{?\s*\\circ\s*\}?$`)
	moneyFront  = regexp.MustCompile(`^(-?)\s*\\?([$€£¥])\s*(.+)$`)
	moneyBehind = regexp.MustCompile(`^(.+?)\s*\\?([$€£¥¢])$`)
	unitPart    = regexp.MustCompile(`[a-z$€£¥¢]+|\^?[0-9]+|/`)
	anyLetter   = regexp.MustCompile(`[A-Za-z]`)
	gluedUnit   = regexp.MustCompile(`^(.*[0-9])([msghl])$`)
)

// canonicalUnit is one spelling of a unit: square meters and m^2 are m^2.
func canonicalUnit(u string) string {
	var out []string
	power := ""
	for _, x := range unitPart.FindAllString(strings.ToLower(u), -1) {
		switch {
		case x == "square" || x == "sq":
			power = "^2"
			continue
		case x == "cubic" || x == "cu":
			power = "^3"
			continue
		case x == "per":
			x = "/"
		case isDigit(x[0]):
			x = "^" + x
		}
		bare := strings.TrimRight(x, "s")
		out = append(out, cmp.Or(unitNames[x], unitNames[bare], bare, x)+power)
		power = ""
	}
	return strings.Join(out, "") + power
}

// splitUnit takes the unit off a cleaned answer; unit is canonical, and empty for none.
func splitUnit(s string) (rest, unit string) {
	if m := degrees.FindStringSubmatch(s); m != nil && m[1] != "" && !anyLetter.MatchString(strings.ReplaceAll(m[1], `\frac`, "")) {
		return m[1], "deg"
	}
	if m := moneyFront.FindStringSubmatch(s); m != nil && !strings.HasSuffix(strings.TrimSpace(m[3]), "$") {
		return m[1] + m[3], canonicalUnit(m[2])
	}
	if m := moneyBehind.FindStringSubmatch(s); m != nil {
		return m[1], canonicalUnit(m[2])
	}
	m := unitBehind.FindStringSubmatchIndex(s)
	if m == nil {
		return s, ""
	}
	num, name, power := s[m[2]:m[3]], s[m[4]:m[5]], ""
	if m[6] >= 0 {
		power = strings.NewReplacer("{", "", "}", "").Replace(s[m[6]:m[7]])
	}
	// A letter or two glued to a number are a product of variables, where they are no unit of two letters that all know.
	glued := m[4] == len(num)
	switch {
	case glued && len(name) <= 2 && !shortUnits[name],
		strings.Count(s, "{") != strings.Count(s, "}"),
		strings.Count(num, "{") != strings.Count(num, "}"),
		strings.Count(num, "(") != strings.Count(num, ")"):
		return s, ""
	}
	return num, canonicalUnit(name + power)
}
