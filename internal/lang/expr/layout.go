package expr

import "strings"

// element is a piece of a Go time layout.
type element struct {
	kind elementKind
	text string // as in the layout; the text itself of literal ones
}

type elementKind uint8

const (
	literalText  elementKind = iota
	year4                    // 2006
	year2                    // 06
	month2                   // 01
	month1                   // 1
	monthShort               // Jan
	monthLong                // January
	day2                     // 02
	day1                     // 2
	dayBlank                 // _2
	yearDay3                 // 002
	yearDayBlank             // __2
	weekdayShort             // Mon
	weekdayLong              // Monday
	hour24                   // 15
	hour12Two                // 03
	hour12One                // 3
	halfUpper                // PM
	halfLower                // pm
	minute2                  // 04
	minute1                  // 4
	second2                  // 05
	second1                  // 5
	fraction0                // .000
	fraction9                // .999
	zoneName                 // MST
	zoneOffset               // -0700 -07:00 -07 -070000 -07:00:00
	zoneISO                  // Z0700 Z07:00 Z07 Z070000 Z07:00:00
)

// fixedElements lists the elements that are plain text, longest first where
// one starts with another.
func fixedElements() []element {
	return []element{
		{monthLong, "January"}, {monthShort, "Jan"},
		{weekdayLong, "Monday"}, {weekdayShort, "Mon"}, {zoneName, "MST"},
		{yearDay3, "002"}, {month2, "01"}, {day2, "02"}, {hour12Two, "03"}, {minute2, "04"},
		{second2, "05"}, {year2, "06"},
		{hour24, "15"}, {month1, "1"},
		{year4, "2006"}, {day1, "2"},
		{yearDayBlank, "__2"}, {dayBlank, "_2"},
		{hour12One, "3"}, {minute1, "4"}, {second1, "5"},
		{halfUpper, "PM"}, {halfLower, "pm"},
		{zoneOffset, "-070000"}, {zoneOffset, "-07:00:00"}, {zoneOffset, "-0700"}, {zoneOffset, "-07:00"},
		{zoneOffset, "-07"},
		{zoneISO, "Z070000"}, {zoneISO, "Z07:00:00"}, {zoneISO, "Z0700"}, {zoneISO, "Z07:00"}, {zoneISO, "Z07"},
	}
}

// parseLayout splits a Go time layout into its elements.
func parseLayout(layout string) []element {
	fixed := fixedElements()
	var out []element
	literal := 0
	for i := 0; i < len(layout); {
		e, ok := elementAt(layout[i:], fixed)
		if !ok {
			i++
			continue
		}
		if i > literal {
			out = append(out, element{literalText, layout[literal:i]})
		}
		out = append(out, e)
		i += len(e.text)
		literal = i
	}
	if literal < len(layout) {
		out = append(out, element{literalText, layout[literal:]})
	}
	return out
}

func elementAt(s string, fixed []element) (element, bool) {
	if (s[0] == '.' || s[0] == ',') && len(s) > 1 && (s[1] == '0' || s[1] == '9') {
		n := 1
		for n < len(s) && s[n] == s[1] {
			n++
		}
		if n < len(s) && s[n] >= '0' && s[n] <= '9' {
			return element{}, false
		}
		if s[1] == '0' {
			return element{fraction0, s[:n]}, true
		}
		return element{fraction9, s[:n]}, true
	}
	if strings.HasPrefix(s, "_2006") { // a literal underscore, then the year
		return element{}, false
	}
	for _, e := range fixed {
		if !strings.HasPrefix(s, e.text) {
			continue
		}
		after := s[len(e.text):]
		if (e.kind == monthShort || e.kind == weekdayShort) && after != "" && after[0] >= 'a' && after[0] <= 'z' {
			continue
		}
		return e, true
	}
	return element{}, false
}
