package expr

import (
	"fmt"
	"strconv"
	"time"

	"thalweg/internal/base/sqltext"
)

func timeFunctions() []*function {
	two := []param{instant("a"), instant("b")}
	compare := func(name, symbol, doc string) *function {
		return &function{name: name, group: "Time", params: two, result: Bool, doc: doc,
			sql: func(r *renderer, n *node) string {
				return "(" + r.sql(n.args[0]) + " " + symbol + " " + r.sql(n.args[1]) + ")"
			}}
	}
	return []*function{
		{name: "time.Parse", group: "Time", params: []param{text("layout"), text("s")}, result: DateTime,
			doc: "The instant that s writes in a Go layout; without a zone it is UTC. Text that does not match " +
				"raises an error, at load time if s is a literal.",
			check: checkParse, sql: sqlParse},
		{name: "time.Format", group: "Time", params: []param{{"t", times()}, text("layout")}, result: String,
			doc: "Text of t in a Go layout. A datetime that was read from a CSV cell or by time.Parse, or made by " +
				"time.Date, has its own zone; one from a table, a date and a timestamptz are in UTC.",
			check: checkFormat, sql: sqlFormat},
		{name: "time.Date", group: "Time", result: DateTime, raises: true,
			params: []param{{"year", anyInt()}, {"month", only(Month)}, {"day", anyInt()}, {"hour", anyInt()},
				{"min", anyInt()}, {"sec", anyInt()}, {"nsec", anyInt()}, {"loc", only(Location)}},
			doc: "The instant with these parts. Values outside their range carry over, as in Go; nanoseconds are cut " +
				"to microseconds.",
			check: checkDate, sql: sqlDate},
		{name: "time.FixedZone", group: "Time", params: []param{text("name"), {"seconds", anyInt()}}, result: Location,
			doc:   "A zone for time.Date; both arguments must be literals, seconds are east of UTC.",
			check: checkZone, sql: func(*renderer, *node) string { return "NULL" }},
		{name: "time.Now", group: "Time", result: DateTime,
			doc: "Time at which the batch began, in UTC: the same for all rows of a batch, another time if the batch " +
				"is executed again.",
			check: func(_ *checker, n *node) *Error { n.zone = time.UTC; return nil },
			sql:   func(*renderer, *node) string { return "make_timestamp(epoch_us(now()))" }},
		{name: "time.Unix", group: "Time", params: []param{{"t", setOf(DateTime, Instant)}}, result: Int,
			doc: "Seconds since 1970, rounded down.",
			sql: func(r *renderer, n *node) string { return r.epoch(n.args[0], 1_000_000) }},
		{name: "time.UnixMilli", group: "Time", params: []param{{"t", setOf(DateTime, Instant)}}, result: Int,
			doc: "Milliseconds since 1970, rounded down.",
			sql: func(r *renderer, n *node) string { return r.epoch(n.args[0], 1_000) }},
		{name: "time.DiffMilli", group: "Time", params: two, result: Int, doc: "a − b in milliseconds.",
			sql: func(r *renderer, n *node) string {
				return "((epoch_us(" + r.sql(n.args[0]) + ") - epoch_us(" + r.sql(n.args[1]) + ")) // 1000)"
			}},
		compare("time.Before", "<", "Whether a is before b."),
		compare("time.After", ">", "Whether a is after b."),
	}
}

// epoch renders the count of units of so many microseconds since 1970, rounded down.
func (r *renderer) epoch(n *node, microseconds int) string {
	unit := strconv.Itoa(microseconds)
	return r.let(n, func(v string) string {
		return "((epoch_us(" + v + ") - CASE WHEN epoch_us(" + v + ") < 0 THEN " + strconv.Itoa(microseconds-1) +
			" ELSE 0 END) // " + unit + ")"
	})
}

func checkParse(_ *checker, n *node) *Error {
	if !n.args[0].isConst() { // Go reads it, row by row
		n.raises = true
		return nil
	}
	layout, err := layoutOf(n.args[0])
	if err != nil {
		return err
	}
	if !Zoned(layout) {
		n.zone = time.UTC
	}
	s, ok := n.args[1].val.(string)
	if !ok {
		n.raises = true
		return nil
	}
	t, problem := time.ParseInLocation(layout, s, time.UTC)
	if problem != nil {
		return n.args[1].at.errorf("%q does not match the layout %q", s, layout)
	}
	return checkMicroseconds(n, t)
}

func sqlParse(r *renderer, n *node) string {
	return r.let(n.args[1], func(v string) string {
		parsed := goParse + "(" + r.sql(n.args[0]) + ", " + v + ")"
		if layout, literal := n.args[0].val.(string); literal {
			if native, err := r.parseTimeSQL(layout, v); err == nil {
				parsed = native
			}
		}
		return "coalesce(" + parsed + ", CASE WHEN " + v + " IS NOT NULL THEN " +
			raised(n, "\"").SQL(shown(v), sqltext.String("\" does not match the layout")) + " END)"
	})
}

func checkFormat(_ *checker, n *node) *Error {
	if !n.args[1].isConst() {
		return nil // Go writes it, row by row
	}
	layout, err := layoutOf(n.args[1])
	if err != nil {
		return err
	}
	switch t := n.args[0].val.(type) {
	case time.Time:
		n.constant(t.Format(layout))
		return nil
	case day:
		n.constant(t.time().Format(layout))
		return nil
	}
	for _, e := range parseLayout(layout) {
		n.plain = n.plain || e.kind != literalText
	}
	for i := range layout {
		n.plain = n.plain && layout[i] != '"'
	}
	return nil
}

func sqlFormat(r *renderer, n *node) string { return r.timeText(r.asTime(n.args[0]), n.args[1]) }

func checkZone(_ *checker, n *node) *Error {
	name, named := n.args[0].val.(string)
	seconds, fixed := n.args[1].val.(int64)
	if !named || !fixed {
		return n.at.errorf("the arguments of time.FixedZone must be literals")
	}
	const day = 24 * 60 * 60
	if seconds < -day || seconds > day {
		return n.args[1].at.errorf("%d seconds are more than a day", seconds)
	}
	if len(name) > zoneNameBytes {
		return n.args[0].at.errorf("the name has more than %d bytes", zoneNameBytes)
	}
	n.constant(time.FixedZone(name, int(seconds)))
	return nil
}

// zoneNameBytes bounds the name of a zone: a layout can repeat it.
const zoneNameBytes = 96

// maxDatePart bounds the literal arguments of time.Date, so that carrying over cannot overflow.
const maxDatePart = 1_000_000_000

func checkDate(_ *checker, n *node) *Error {
	month, ok := n.args[1].val.(time.Month)
	if !ok {
		return n.args[1].at.errorf("the month must be one of time.January … time.December")
	}
	zone, ok := n.args[7].val.(*time.Location)
	if !ok {
		return n.args[7].at.errorf("the location must be time.UTC or time.FixedZone(…) of literals")
	}
	n.zone = zone
	var v [8]int
	for i := range v {
		if i == 1 || i == 7 {
			continue
		}
		c, fixed := n.args[i].val.(int64)
		if !fixed {
			return nil
		}
		if c < -maxDatePart || c > maxDatePart {
			return n.args[i].at.errorf("%d is out of range", c)
		}
		v[i] = int(c)
	}
	if v[0] < minYear || v[0] > maxYear {
		return n.args[0].at.errorf("year %d is outside %d … %d", v[0], minYear, maxYear)
	}
	return checkMicroseconds(n, time.Date(v[0], month, v[2], v[3], v[4], v[5], v[6], zone))
}

// sqlDate counts microseconds from the first of the month, so that days,
// hours … outside their range carry over.
func sqlDate(r *renderer, n *node) string {
	a := n.args
	month := sqltext.Int(int64(a[1].val.(time.Month)))
	micros := "epoch_us(make_timestamp(" + r.sql(a[0]) + ", " + month + ", 1, 0, 0, 0.0)) + (" + r.sql(a[2]) +
		" - 1) * 86400000000 + " +
		r.sql(a[3]) + " * 3600000000 + " + r.sql(a[4]) + " * 60000000 + (" + r.sql(a[5]) + " - (" +
		strconv.Itoa(offsetOf(n.zone)) + ")) * 1000000 + CAST(floor(" + r.sql(a[6]) + " / 1000) AS BIGINT)"
	return r.bind(micros, false, func(v string) string {
		return fmt.Sprintf("CASE WHEN %[1]s BETWEEN %[2]d AND %[3]d THEN make_timestamp(%[1]s) WHEN %[1]s IS NOT "+
			"NULL THEN %[4]s END",
			v, int64(FirstMicro), int64(LastMicro), raised(n, "a datetime out of range").SQL())
	})
}
