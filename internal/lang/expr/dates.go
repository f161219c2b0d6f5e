package expr

import (
	"fmt"
	"go/token"
	"strconv"
	"time"

	"thalweg/internal/base/sqltext"
)

// day is a constant date: days since 1970.
type day int64

func dayOf(t time.Time) day { return day(t.UTC().Truncate(24*time.Hour).Unix() / (24 * 60 * 60)) }

func (d day) time() time.Time { return time.Unix(int64(d)*24*60*60, 0).UTC() }

func (d day) String() string { return d.time().Format(time.DateOnly) }

// The years of dates and of timestamptz: those that all who get them know.
const (
	firstYear = 1
	lastYear  = 9999
)

func inYears(t time.Time) bool { return t.UTC().Year() >= firstYear && t.UTC().Year() <= lastYear }

// yearsSQL is the condition that a DATE or TIMESTAMP is of those years.
func yearsSQL(sql string) string {
	return fmt.Sprintf("%[1]s >= DATE '0001-01-01' AND %[1]s < DATE '10000-01-01'", sql)
}

// DayOfTable is the condition that a DATE is one that tables hold.
func DayOfTable(date string) string { return yearsSQL(date) }

// InstantOfTable is the condition that a TIMESTAMP is a timestamptz that tables hold.
func InstantOfTable(timestamp string) string { return yearsSQL(timestamp) }

// instantTime renders a TIMESTAMP WITH TIME ZONE as a TIMESTAMP in UTC.
func instantTime(sql string) string { return "make_timestamp(epoch_us(" + sql + "))" }

// toInstant renders a TIMESTAMP in UTC as a TIMESTAMP WITH TIME ZONE. A cast
// would depend on the session's zone.
func toInstant(sql string) string { return "make_timestamptz(epoch_us(" + sql + "))" }

// InstantSQL renders a TIMESTAMP in UTC as a TIMESTAMP WITH TIME ZONE.
func InstantSQL(timestamp string) string { return toInstant(timestamp) }

// asTime gives a value of any of the types of time as a datetime.
func (r *renderer) asTime(n *node) *node {
	out := &node{op: opRaw, typ: DateTime, zone: time.UTC, text: n.text, at: n.at, null: n.null, raises: n.raises}
	switch n.typ {
	case Date:
		out.raw = "CAST(" + r.sql(n) + " AS TIMESTAMP)"
	case Instant:
		out.raw = instantTime(r.sql(n))
	default:
		return n
	}
	return out
}

// asDateTime gives a timestamptz in the form of a datetime, for comparison with one.
func asDateTime(n *node) *node {
	if n.typ != Instant {
		return n
	}
	out := &node{op: opConvert, typ: DateTime, args: []*node{n}, at: n.at, text: n.text, raises: n.raises, null: n.null,
		zone: time.UTC}
	if n.isConst() {
		return out.constant(n.val)
	}
	return out
}

// dateResult is the type of date + x and date - x; Invalid if there is none.
func dateResult(tok token.Token, with Type) Type {
	switch {
	case with == Int || with == GoInt:
		return Date
	case with == Date && tok == token.SUB:
		return Int
	}
	return Invalid
}

// dateArithmetic renders a date some days later or earlier, and the days between two dates.
func (r *renderer) dateArithmetic(n *node) string {
	a, b := n.args[0], n.args[1]
	if n.typ == Int {
		return "(" + r.sql(a) + " - " + r.sql(b) + ")"
	}
	far := raised(n, "a date outside of the years 1 to 9999").SQL()
	return r.let(b, func(days string) string {
		// Beyond some ten thousand years a number of days may not fit DuckDB's.
		later := fmt.Sprintf("CASE WHEN %[1]s BETWEEN -4000000 AND 4000000 THEN %[2]s %[3]s CAST(%[1]s AS INTEGER) "+
			"WHEN %[1]s IS NOT NULL THEN %[4]s END",
			days, r.sql(a), n.tok, far)
		return r.bind(later, false, func(v string) string {
			return "CASE WHEN " + yearsSQL(v) + " THEN " + v + " WHEN " + v + " IS NOT NULL THEN " + far + " END"
		})
	})
}

// hintTimes says how dates and times go together.
func hintTimes(err *Error, a, b *node) {
	for _, p := range [][2]*node{{a, b}, {b, a}} {
		x, y := p[0], p[1]
		switch {
		case x.typ == Date && y.typ == String:
			err.hint("date(%s) makes a date", shorten(y.text))
		case x.typ == Date && (y.typ == DateTime || y.typ == Instant):
			err.hint("convert one side: date(%s), or %s(%s)", shorten(y.text), y.typ, shorten(x.text))
		case x.typ == Instant && y.typ == String:
			err.hint("timestamptz(%s) makes a timestamptz", shorten(y.text))
		}
	}
}

func dateFunctions() []*function {
	return []*function{
		{name: "date", group: "Dates", params: []param{{"x", toTimes()}}, result: Date, raises: true, takesNull: true,
			doc: "The day in UTC of a datetime or a timestamptz; a string must be like 2024-12-31. The years are 1 " +
				"to 9999. d + 7 and d - 7 are days later and earlier, d - e the days between two dates, an int. " +
				"Beyond Capillaries.", check: ofNull(checkToDate), sql: sqlToDate},
		{name: "datetime", group: "Dates", params: []param{{"x", times()}}, result: DateTime, raises: true,
			takesNull: true,
			doc: "The beginning of a day in UTC; a timestamptz, of which a datetime must hold all digits: whole " +
				"milliseconds. Beyond Capillaries.",
			check: ofNull(checkToTime), sql: sqlToTime},
		{name: "timestamptz", group: "Dates", params: []param{{"x", toTimes()}}, result: Instant, raises: true,
			takesNull: true,
			doc: "The same instant with microseconds, of the years 1 to 9999; a date is its beginning in UTC; " +
				"a string must be like 2024-12-31T23:59:59.123456+01:00, with Z for UTC. Beyond Capillaries.",
			check: ofNull(checkToInstant), sql: sqlToInstant},
		{name: "time.FormatIn", group: "Dates", params: []param{{"t", times()}, text("layout"), text("zone")},
			result: String, raises: true,
			doc: "Text of t in a Go layout and in a zone of the list of time zones, such as \"Europe/Berlin\", which " +
				"must be a literal. Beyond Capillaries.",
			check: checkFormatIn, sql: sqlFormatIn},
	}
}

func checkToDate(_ *checker, n *node) *Error {
	a := n.args[0]
	if a.typ == Date {
		n.raises = a.raises
	}
	switch v := a.val.(type) {
	case string:
		t, err := time.Parse(time.DateOnly, v)
		if err != nil || !inYears(t) {
			return a.at.errorf("%s is not a date", shorten(a.text)).hint("write it like 2024-12-31")
		}
		n.constant(dayOf(t))
	case time.Time:
		if !inYears(v) {
			return a.at.errorf("the year of %s is not one of 1 to 9999", shorten(a.text))
		}
		n.constant(dayOf(v))
	case day:
		n.constant(v)
	}
	return nil
}

func sqlToDate(r *renderer, n *node) string {
	a := n.args[0]
	switch a.typ {
	case Date:
		return r.sql(a)
	case String:
		return r.scanOrRaise(a, n, "thalweg_scan_date", "not a date like 2024-12-31")
	}
	return r.bind("CAST("+r.sql(r.asTime(a))+" AS DATE)", false, func(v string) string {
		return r.withinYears(n, v, v)
	})
}

// withinYears renders value where what it was made of is of the years 1 to 9999, else an error.
func (r *renderer) withinYears(n *node, of, value string) string {
	return "CASE WHEN " + yearsSQL(of) + " THEN " + value + " WHEN " + of + " IS NOT NULL THEN " +
		raised(n, "a year that is not one of 1 to 9999").SQL() + " END"
}

func checkToTime(_ *checker, n *node) *Error {
	a := n.args[0]
	if n.zone = time.UTC; a.typ == DateTime {
		n.zone = a.zone
	}
	n.raises = a.raises || a.typ == Instant
	switch v := a.val.(type) {
	case day:
		n.constant(v.time())
	case time.Time:
		if a.typ == Instant && v.Nanosecond()%int(time.Millisecond) != 0 {
			return a.at.errorf("%s has digits below a millisecond", shorten(a.text))
		}
		n.constant(v)
	}
	return nil
}

func sqlToTime(r *renderer, n *node) string {
	a := n.args[0]
	if a.typ != Instant {
		return r.sql(r.asTime(a))
	}
	return r.bind(instantTime(r.sql(a)), false, func(v string) string {
		return fmt.Sprintf("CASE WHEN %[1]s = date_trunc('millisecond', %[1]s) THEN %[1]s WHEN %[1]s IS NOT NULL THEN "+
			"%[2]s END",
			v, raised(n, "a timestamptz with digits below a millisecond, which a datetime does not have").SQL())
	})
}

func checkToInstant(_ *checker, n *node) *Error {
	a := n.args[0]
	n.zone = time.UTC
	if a.typ == Instant || a.typ == Date {
		n.raises = a.raises
	}
	switch v := a.val.(type) {
	case string:
		t, ok := parseInstant(time.RFC3339Nano, v, time.UTC)
		if !ok {
			return a.at.errorf("%s is not a timestamptz",
				shorten(a.text)).hint("write it like 2024-12-31T23:59:59.123456+01:00, with at most six digits " +
				"of the second")
		}
		n.constant(t)
	case day:
		n.constant(v.time())
	case time.Time:
		if !inYears(v) {
			return a.at.errorf("the year of %s is not one of 1 to 9999", shorten(a.text))
		}
		n.constant(v.UTC())
	}
	return nil
}

// parseInstant reads text in a layout; false: it is not like it, has digits
// below the microsecond, or is not of the years.
func parseInstant(layout, text string, zone *time.Location) (time.Time, bool) {
	t, err := time.ParseInLocation(layout, text, zone)
	if err != nil || t.Nanosecond()%1000 != 0 || !inYears(t) {
		return t, false
	}
	return t.UTC(), zone == time.UTC || Zoned(layout) || onlyOnce(layout, text, zone)
}

// onlyOnce reports whether clocks of a zone show a text's time exactly once: not
// where they are put forward over it, or back to it.
func onlyOnce(layout, text string, zone *time.Location) bool {
	wall, err := time.ParseInLocation(layout, text, time.UTC)
	if err != nil {
		return false
	}
	const day = 24 * time.Hour
	var found []time.Time
	for _, near := range []time.Time{wall.Add(-day), wall.Add(day)} {
		_, offset := near.In(zone).Zone()
		at := wall.Add(-time.Duration(offset) * time.Second)
		_, then := at.In(zone).Zone()
		if then == offset && (len(found) == 0 || !found[0].Equal(at)) {
			found = append(found, at)
		}
	}
	return len(found) == 1
}

func sqlToInstant(r *renderer, n *node) string {
	a := n.args[0]
	switch a.typ {
	case Instant:
		return r.sql(a)
	case Date:
		return toInstant(r.sql(r.asTime(a)))
	case String:
		return r.let(a, func(v string) string {
			return toInstant("coalesce(" + instantText(time.RFC3339Nano, "UTC", v) + ", CASE WHEN " + v +
				" IS NOT NULL THEN " +
				raised(n, "not a timestamptz like 2024-12-31T23:59:59.123456+01:00: \"").SQL(shown(v),
					sqltext.String("\"")) +
				" END)")
		})
	}
	return r.bind(r.sql(a), a.cheap(), func(v string) string { return r.withinYears(n, v, toInstant(v)) })
}

// instantText renders the reading of text in a layout: a TIMESTAMP in UTC, NULL where it is not like it.
func instantText(layout, zone, v string) string {
	return goInstant + "(" + sqltext.String(layout) + ", " + sqltext.String(zone) + ", " + v + ")"
}

// LoadZone finds a time zone by its name in the list of time zones.
func LoadZone(name string) (*time.Location, error) {
	if name == "" || name == "Local" {
		return nil, fmt.Errorf("there is no time zone %s", strconv.Quote(name))
	}
	zone, err := time.LoadLocation(name)
	if err != nil {
		return nil, fmt.Errorf("there is no time zone %s", strconv.Quote(name))
	}
	return zone, nil
}

func checkFormatIn(_ *checker, n *node) *Error {
	name, literal := n.args[2].val.(string)
	if !literal {
		return n.args[2].at.errorf("the zone must be a literal")
	}
	zone, err := LoadZone(name)
	if err != nil {
		return n.args[2].at.errorf("%s", err).hint("a name such as Europe/Berlin or UTC")
	}
	if n.args[1].isConst() {
		layout, problem := layoutOf(n.args[1])
		if problem != nil {
			return problem
		}
		if t, ok := n.args[0].val.(time.Time); ok {
			n.constant(t.In(zone).Format(layout))
		}
	}
	return nil
}

func sqlFormatIn(r *renderer, n *node) string {
	return goFormatIn + "(" + r.sql(r.asTime(n.args[0])) + ", " + r.sql(n.args[1]) + ", " + r.sql(n.args[2]) + ", '')"
}
