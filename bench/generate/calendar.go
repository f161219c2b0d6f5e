package generate

import "time"

// The reporting period of the generated portfolio, as in params.json.
const (
	PeriodStart = "2020-12-31"
	PeriodEnd   = "2022-12-31"
)

// day is a count of days since 1970-01-01.
type day int32

const hoursPerDay = 24

func dayOf(year int, month time.Month, dom int) day {
	return day(time.Date(year, month, dom, 0, 0, 0, 0, time.UTC).Unix() / (hoursPerDay * 60 * 60))
}

func (d day) time() time.Time { return time.Unix(int64(d)*hoursPerDay*60*60, 0).UTC() }

func (d day) String() string { return d.time().Format(time.DateOnly) }

// calendar holds the dates that everything happens on.
type calendar struct {
	firstPrice  day   // each ticker is quoted from here …
	firstTrade  day   // … some days before anything trades …
	lastPrice   day   // … to some days after the period
	periodStart day   // a Thursday
	periodEnd   day   // a Saturday: funds settle on it, exchanges do not trade
	lateTrade   day   // the youngest fund starts here
	quarterEnds []day // dates of holdings
}

func newCalendar() calendar {
	c := calendar{
		firstPrice:  dayOf(2020, time.October, 1),
		firstTrade:  dayOf(2020, time.October, 16),
		lastPrice:   dayOf(2023, time.January, 3),
		periodStart: dayOf(2020, time.December, 31),
		periodEnd:   dayOf(2022, time.December, 31),
		lateTrade:   dayOf(2021, time.March, 29),
	}
	for i := range 10 {
		// Day 0 of a month is the last of the month before.
		c.quarterEnds = append(c.quarterEnds, dayOf(2020, time.Month(10+3*i), 0))
	}
	return c
}

// weekdays lists the exchange days from first to last, both included.
func weekdays(first, last day) []day {
	var days []day
	for d := first; d <= last; d++ {
		if wd := d.time().Weekday(); wd != time.Saturday && wd != time.Sunday {
			days = append(days, d)
		}
	}
	return days
}
