package expr

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"
	"time"

	"thalweg/internal/base/sqltext"
)

// GoFunction is a function of the compiled SQL that Go computes: what DuckDB
// has nothing for and few expressions need. It gets string, int64, float64,
// bool and time.Time, never NULL, and must give the same result for the same
// arguments; nil is NULL, an error fails the row. Many threads may call it at once.
type GoFunction struct {
	Name   string
	Result Type // String, Float or DateTime
	Args   []Type
	More   bool // any number of arguments of any type follow
	Call   func(args []any) any
}

// Names of the functions of GoFunctions.
const (
	goSprintf = "thalweg_go_sprintf"
	goFormat  = "thalweg_go_format"
	goParse   = "thalweg_go_parse"
	goFloat   = "thalweg_go_float"

	goReformat = "thalweg_go_reformat"
	goInstant  = "thalweg_go_instant"
	goFormatIn = "thalweg_go_format_in"
)

// GoFunctions are the functions that a DuckDB connection must have, beside
// the Macros, before any compiled SQL.
func GoFunctions() []GoFunction {
	zones := &zoneCache{}
	return []GoFunction{
		{Name: goInstant, Result: DateTime, Args: []Type{String, String, String}, Call: func(args []any) any {
			if t, ok := parseInstant(args[0].(string), args[2].(string), zones.find(args[1].(string))); ok {
				return t
			}
			return nil
		}},
		{Name: goFormatIn, Result: String, Args: []Type{DateTime, String, String, String}, Call: func(args []any) any {
			return formattedIn(args[0].(time.Time), args[1].(string), zones.find(args[2].(string)), args[3].(string))
		}},
		{Name: goSprintf, Result: String, Args: []Type{String, String, String, Int}, More: true,
			Call: func(args []any) any {
				return printedWithin(args[0].(string), args[1].(string), args[2].(string), args[3].(int64), args[4:])
			}},
		{Name: goFormat, Result: String, Args: []Type{DateTime, String, Int, String}, Call: func(args []any) any {
			return formatted(args[0].(time.Time).In(time.FixedZone(args[3].(string), int(args[2].(int64)))),
				args[1].(string))
		}},
		{Name: goReformat, Result: String, Args: []Type{DateTime, String, String, String}, Call: func(args []any) any {
			t, err := time.ParseInLocation(args[1].(string), args[2].(string), time.UTC)
			if at := args[0].(time.Time); err != nil || t.UnixMicro() != at.UnixMicro() {
				t = at.UTC() // a default value
			}
			return formatted(t, args[3].(string))
		}},
		{Name: goParse, Result: DateTime, Args: []Type{String, String}, Call: func(args []any) any {
			t, err := time.ParseInLocation(args[0].(string), args[1].(string), time.UTC)
			if err != nil || t.Year() < minYear || t.Year() > maxYear {
				return nil
			}
			return t.UTC().Truncate(time.Microsecond)
		}},
		{Name: goFloat, Result: Float, Args: []Type{String},
			Call: func(args []any) any { return scannedFloat(args[0].(string)) }},
	}
}

// zoneCache keeps the zones that were asked for: to find one reads a file.
type zoneCache struct{ zones sync.Map }

// find gives a zone whose name was checked when the script was loaded.
func (c *zoneCache) find(name string) *time.Location {
	if zone, ok := c.zones.Load(name); ok {
		return zone.(*time.Location)
	}
	zone, err := LoadZone(name)
	if err != nil {
		zone = time.UTC
	}
	c.zones.Store(name, zone)
	return zone
}

func formatted(t time.Time, layout string) string {
	return strings.ToValidUTF8(t.Format(layout), "\uFFFD")
}

// formattedIn is the text of an instant in a zone, or the error that it would be
// another instant's. Source is the expression that messages quote; "": it is Go's
// text whatever that shows, as time.FormatIn promises.
func formattedIn(t time.Time, layout string, zone *time.Location, source string) any {
	t = t.In(zone)
	if lost := zoneLoss(t, layout); source != "" && lost != "" {
		return errors.New(Raised{Kind: RaisedIn, Subject: source}.head() + lost)
	}
	return formatted(t, layout)
}

// zoneLoss says what a layout cannot show of an instant in its zone: Go cuts an
// offset that is finer (that of Berlin was 53:28 minutes before 1893), and a year
// that four digits do not hold reads back as none.
func zoneLoss(t time.Time, layout string) string {
	_, offset := t.Zone()
	year := t.Year()
	if offset%int(time.Hour/time.Second) == 0 && year >= 0 && year <= maxISOYear {
		return ""
	}
	for _, e := range parseLayout(layout) {
		switch {
		case (e.kind == zoneOffset || e.kind == zoneISO) && offset%offsetUnit(e.text) != 0:
			return fmt.Sprintf("%s is %s from UTC in %s, which the layout's %s does not show",
				t.UTC().Format(time.RFC3339), time.Duration(offset)*time.Second, t.Location(), e.text)
		case e.kind == year4 && (year < 0 || year > maxISOYear):
			return fmt.Sprintf("%s is in year %d in %s, which reads back as no time",
				t.UTC().Format(time.RFC3339), year, t.Location())
		}
	}
	return ""
}

// maxISOYear is the last year of four digits.
const maxISOYear = 9999

// offsetUnit is the seconds that an offset in a layout counts by.
func offsetUnit(text string) int {
	const perMinute, perHour = 60, 3600
	switch strings.Count(text, "0") - 1 { // digits behind 07
	case 0:
		return perHour
	case 2:
		return perMinute
	}
	return 1
}

// scannedFloat reads what a scan verb takes for a float: what ParseFloat reads,
// and decimal digits with a binary exponent, 1.5p3. nil: it is none.
func scannedFloat(text string) any {
	digits, exponent, binary := strings.Cut(text, "p")
	if !binary || strings.ContainsAny(text, "xX") {
		digits, exponent = text, "0"
	}
	f, err := strconv.ParseFloat(digits, 64)
	power, bad := strconv.Atoi(exponent)
	if err != nil || bad != nil {
		return nil
	}
	return math.Ldexp(f, power)
}

// printedWithin is printed with a limit of the result in bytes; 0: none.
func printedWithin(source, kinds, format string, most int64, args []any) any {
	if most == 0 {
		return printed(kinds, format, args)
	}
	if bound := printedBound(format, args); bound > max(most, textBytesMax) {
		return tooLong(bound, most, source)
	}
	text := printed(kinds, format, args)
	if int64(len(text)) > most {
		return tooLong(int64(len(text)), most, source)
	}
	return text
}

// printedBound returns the most bytes that printed can return.
func printedBound(format string, args []any) int64 {
	verbs, bytes := int64(strings.Count(format, "%")), int64(MaxFormatWidth)
	for _, a := range args {
		bytes += scalarBytes
		if s, ok := a.(string); ok {
			bytes += quotedBytes * int64(len(s))
		}
	}
	return int64(len(format)) + (verbs+1)*bytes
}

// printed is fmt.Sprintf; kinds has a letter for each argument: I for a Go
// int, whose name shows in marks such as %!s(int=3), M for a month. A format that would print
// more than MaxFormatWidth characters for one value is printed as it is.
func printed(kinds, format string, args []any) string {
	if tooWide(format) {
		return format
	}
	values := make([]any, len(args))
	for i, a := range args {
		if n, isInt := a.(int64); isInt && i < len(kinds) {
			switch kinds[i] {
			case 'I':
				a = int(n)
			case 'M':
				a = time.Month(n)
			}
		}
		values[i] = a
	}
	return strings.ToValidUTF8(fmt.Sprintf(format, values...), "\uFFFD")
}

// tooWide reports whether a format asks for more characters than a verb may
// have, or would take their number from an argument.
func tooWide(format string) bool {
	for i := 0; i < len(format); i++ {
		if format[i] != '%' {
			continue
		}
		number := 0
		for i++; i < len(format) && strings.IndexByte("+-# .[]0123456789*", format[i]) >= 0; i++ {
			switch c := format[i]; {
			case c == '*':
				return true
			case c < '0' || c > '9':
				number = 0
			default:
				if number = number*10 + int(c-'0'); number > MaxFormatWidth {
					return true
				}
			}
		}
	}
	return false
}

// kindsOf makes the letters that printed takes.
func kindsOf(args []*node) string {
	kinds := make([]byte, len(args))
	for i, a := range args {
		switch a.typ {
		case GoInt:
			kinds[i] = 'I'
		case Month:
			kinds[i] = 'M'
		default:
			kinds[i] = 'i'
		}
	}
	return string(kinds)
}

// samples has a value for each argument, of the type that printed gets.
func samples(args []*node) []any {
	out := make([]any, len(args))
	for i, a := range args {
		switch a.typ {
		case Int, GoInt, Month:
			out[i] = int64(1)
		case Float:
			out[i] = 1.5
		case Bool:
			out[i] = true
		default:
			out[i] = "x"
		}
	}
	return out
}

// printedByGo renders a call of thalweg_go_sprintf. Decimals and datetimes
// are handed over as their text: there they behave as strings.
func (r *renderer) printedByGo(source, format string, args []*node) string {
	most := "CAST(0 AS BIGINT)"
	if r.guard == guardOn {
		most = "CAST(" + r.limit + " AS BIGINT)"
	}
	parts := []string{sqltext.String(source), sqltext.String(kindsOf(args)), format, most}
	for _, a := range args {
		switch a.typ {
		case Int, GoInt:
			parts = append(parts, "CAST("+r.sql(a)+" AS BIGINT)")
		case Month:
			parts = append(parts, "CAST("+sqltext.Int(int64(a.val.(time.Month)))+" AS BIGINT)")
		case Float:
			parts = append(parts, "CAST("+r.sql(a)+" AS DOUBLE)")
		case Bool:
			parts = append(parts, r.sql(a))
		default:
			parts = append(parts, "CAST("+r.text(a)+" AS VARCHAR)")
		}
	}
	return goSprintf + "(" + strings.Join(parts, ", ") + ")"
}

// marked is the mark that Go prints where a verb and its value do not go
// together, such as %!d(string=x); "" if it prints none.
func marked(format string, args []*node) string {
	text := printed(kindsOf(args), format, samples(args))
	i := strings.Index(text, "%!")
	if i < 0 || strings.Contains(format, "%!") {
		return ""
	}
	end := strings.IndexByte(text[i:], ')')
	if end < 0 {
		return text[i:]
	}
	return text[i : i+end+1]
}
