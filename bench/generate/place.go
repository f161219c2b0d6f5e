package generate

import (
	"database/sql/driver"
	"fmt"
	"strings"
)

// place says where the clones of a template row come in the order of all rows.
//
// The order is by day, then account, then the template's own order within a
// fund and day: that of a feed that each account delivers once a day. Because
// accounts are dealt to the funds in turn, the number of a row follows from
// the template row and the account's position by arithmetic alone, and a file
// can be written without knowing the others.
type place struct {
	fund     int
	dayFirst int64                  // number of the day's first row
	dayEnd   int64                  // and of the row after its last
	perFund  [len(fundShapes)]int64 // rows that an account of each fund has on this day
	rank     int64                  // among the rows of its fund and day, from 0
}

// placed gives the places of n template rows, which must be in order of days,
// and the number of all their clones. at tells fund and day of a row.
func placed(n int, accounts []account, at func(i int) (int, day)) ([]place, int64) {
	var clones [len(fundShapes)]int64
	for _, a := range accounts {
		clones[a.fund]++
	}
	places := make([]place, n)
	var rows int64
	for start := 0; start < n; {
		_, today := at(start)
		var perFund [len(fundShapes)]int64
		end := start
		for ; end < n; end++ {
			fund, d := at(end)
			if d != today {
				break
			}
			places[end] = place{fund: fund, dayFirst: rows, rank: perFund[fund]}
			perFund[fund]++
		}
		for fund, count := range perFund {
			rows += count * clones[fund]
		}
		for i := start; i < end; i++ {
			places[i].dayEnd, places[i].perFund = rows, perFund
		}
		start = end
	}
	return places, rows
}

// placeColumns declares what values fills.
func placeColumns() string {
	s := "fund INTEGER, day_first BIGINT, day_end BIGINT, rank BIGINT"
	for f := range fundShapes {
		s += fmt.Sprintf(", per_fund_%d BIGINT", f)
	}
	return s
}

func (p place) values() []driver.Value {
	v := []driver.Value{int32(p.fund), p.dayFirst, p.dayEnd, p.rank}
	for _, n := range p.perFund {
		v = append(v, n)
	}
	return v
}

// rowNumber is the SQL for the number of the row that account a has of
// template row t: the day's first row, what the accounts before a have on that
// day, and the rank. Of the accounts at positions 0 to ordinal-1, fund f has
// every len(fundShapes)th from f on.
func rowNumber() string {
	terms := []string{"t.day_first", "t.rank"}
	funds := len(fundShapes)
	for f := range funds {
		terms = append(terms, fmt.Sprintf("t.per_fund_%d * ((a.ordinal + %d) // %d)", f, funds-1-f, funds))
	}
	return "(" + strings.Join(terms, " + ") + ")"
}
