package infer

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"thalweg/internal/lang/expr"
)

// Of a column's values so many may be none of its type without making texts of all of
// them: one of fiftyOne in a column of at least as many.
const fiftyOne = 50

// tolerable reports whether misfits are few enough to be put aside.
func tolerable(misfits, filled int64) bool { return misfits > 0 && misfits*fiftyOne <= filled }

// candidate is a type for a column, and how well it does.
type candidate struct {
	typ     expr.Type
	format  string
	misfits int64
	misfit  misfit
}

func (c candidate) String() string {
	if c.format != "" {
		return c.typ.String() + " " + c.format
	}
	return c.typ.String()
}

// of is a form's candidate, unless it was given up.
func (f form) of(typ expr.Type, format string, filled int64) (candidate, bool) {
	return candidate{typ, format, filled - f.fits, f.misfit}, !f.dead && f.fits > 0
}

// number proposes a type for a column's numbers in a form.
func (p *profile) number(i int) (candidate, bool) {
	n := p.numbers[i]
	c, ok := n.of(expr.Int, "", p.filled())
	const floatDigits, narrowDigits, moneyDigits, wideDigits = 15, 18, 16, 38
	switch {
	case n.exponents:
		c.typ = expr.Float
	case n.most == 0 && !n.large:
	case n.whole+n.most > wideDigits:
		return c, false
	case n.most == 0:
		c.typ = expr.DecimalOf(wideDigits, 0)
	case n.most <= 2 && n.whole <= moneyDigits:
		c.typ = expr.Decimal
	case n.least == n.most && n.whole+n.most <= narrowDigits: // as prices and rates have them
		c.typ = expr.DecimalOf(narrowDigits, n.most)
	case n.whole+n.most <= floatDigits:
		c.typ = expr.Float
	default:
		c.typ = expr.DecimalOf(wideDigits, n.most)
	}
	return c, ok
}

// candidates are the types that some of a column's values have, numbers in the
// file's form: first those that come first where several do.
func (p *profile) candidates(numbers int) (list []candidate) {
	filled := p.filled()
	if c, ok := p.bools.of(expr.Bool, "", filled); ok {
		list = append(list, c)
	}
	if c, ok := p.number(numbers); ok {
		list = append(list, c)
	}
	for _, t := range p.times {
		if c, ok := t.of(timeType(t.layout, t.fraction), t.layout, filled); ok {
			list = append(list, c)
		}
	}
	return list
}

// timeType is the type of what a layout reads.
func timeType(layout string, fraction int) expr.Type {
	const milli = 3
	switch {
	case !strings.Contains(layout, "04"):
		return expr.Date
	case strings.Contains(layout, "07") || fraction > milli:
		return expr.Instant
	}
	return expr.DateTime
}

// choose takes the first type that fits all values that are there, else the first
// that fits all but a few.
func (c *Column) choose(p *profile, numbers int, days dayOrder) {
	filled := p.filled()
	list := p.candidates(numbers)
	exact := slices.DeleteFunc(slices.Clone(list), func(x candidate) bool { return x.misfits > 0 })
	if n := p.numbers[numbers]; p.open || n.zeros+n.pluses > 0 {
		list = slices.DeleteFunc(list, isNumber)
		exact = slices.DeleteFunc(exact, isNumber)
	}
	borrowed := ambiguous(exact)
	exact = days.settle(exact)
	tolerated := slices.DeleteFunc(slices.Clone(list), func(x candidate) bool {
		return x.typ == expr.Bool ||
			!tolerable(x.misfits, filled)
	})
	tolerated = days.settle(tolerated)
	switch {
	case filled == 0:
		c.Evidence = "no values"
	case ambiguous(exact):
		c.guess = fmt.Sprintf("every value is a day both of %s and of %s, so choose", exact[0].format,
			other(exact).format)
		c.Evidence = fmt.Sprintf("text %s … %s: %s", quoted(p.least), quoted(p.most), c.guess)
	case len(exact) > 0:
		if c.take(exact[0], p); borrowed {
			c.guess = fmt.Sprintf("the order of day and month, %s, is that of other columns", exact[0].format)
		}
	case len(tolerated) > 0 && !ambiguous(tolerated):
		c.take(tolerated[0], p)
	default:
		c.text(list, p, numbers)
	}
	if p.blank > 0 {
		c.empty = fmt.Sprintf("; %s empty", grouped(p.blank))
	}
}

func isNumber(x candidate) bool { return x.typ.IsNumber() }

// text sets the evidence of a column that stays text.
func (c *Column) text(list []candidate, p *profile, numbers int) {
	c.Evidence = fmt.Sprintf("text, %s different in %s, %s … %s", grouped(int64(len(p.different))),
		rowsText(min(p.rows, sampleRows)), quoted(p.least), quoted(p.most))
	var near *candidate
	for i, x := range list {
		if near == nil || x.misfits < near.misfits {
			near = &list[i]
		}
	}
	switch {
	case p.open:
		c.guess = "its numbers have decimal digits, or separators between thousands: look whether; as it is a text, " +
			"nothing is lost (see decimal and thousands of csv)"
		c.Evidence += "; " + c.guess
	case p.numbers[numbers].zeros > 0:
		c.Evidence += fmt.Sprintf("; %s leading zeros, which a number would lose", has(p.numbers[numbers].zeros))
	case p.numbers[numbers].pluses > 0:
		c.Evidence += fmt.Sprintf("; %s a plus sign, which a number would lose", has(p.numbers[numbers].pluses))
	case near != nil && near.misfits*2 <= p.filled():
		c.Evidence += fmt.Sprintf("; not %s because of %s, e.g. %s", near, counted(near.misfits, "value"), near.misfit)
	}
}

func has(n int64) string {
	if n == 1 {
		return "1 has"
	}
	return grouped(n) + " have"
}

// take makes a candidate the column's type; empty cells and texts that stand for
// nothing become NULL then. Verification says from where to where the values go.
func (c *Column) take(chosen candidate, p *profile) {
	c.Type, c.Format = chosen.typ, chosen.format
	c.misfits = chosen.misfits
	if c.misfits > 0 {
		c.behind += fmt.Sprintf("; %s of another kind, e.g. %s", counted(c.misfits, "value"), chosen.misfit)
	}
	if len(p.nulls) == 0 {
		c.Nullable = p.blank > 0
		return
	}
	c.Nullable = true
	var texts []string
	var n int64
	for text, count := range p.nulls {
		texts, n = append(texts, text), n+count
	}
	slices.Sort(texts)
	c.behind += fmt.Sprintf("; %s of %s", grouped(n), strings.Join(texts, ", "))
	c.NullTexts = texts
	if p.blank > 0 {
		c.NullTexts = append([]string{""}, texts...)
	}
}

// dayOrder says which of day and month comes first where a column does not: as
// other columns of the file have it.
type dayOrder struct{ known, dayFirst bool }

// orderOf looks for a column that shows the order of days and months.
func orderOf(columns []*profile) dayOrder {
	var day, month bool
	for _, p := range columns {
		var exact []candidate
		for _, t := range p.times {
			if c, ok := t.of(expr.Date, t.layout, p.filled()); ok && c.misfits == 0 {
				exact = append(exact, c)
			}
		}
		if len(exact) > 0 && !ambiguous(exact) && hasOrder(exact[0].format) {
			day, month = day || dayFirst(exact[0].format), month || !dayFirst(exact[0].format)
		}
	}
	return dayOrder{day != month, day}
}

// hasOrder reports whether a layout is one of two that differ in the order of day and month.
func hasOrder(layout string) bool {
	return strings.Contains(layout, "01/02/") || strings.Contains(layout, "02/01/") ||
		strings.Contains(layout, "1/2/") ||
		strings.Contains(layout, "2/1/") || strings.HasPrefix(layout, "01-02-") || strings.HasPrefix(layout, "02-01-")
}

// settle leaves out what has the other order.
func (d dayOrder) settle(list []candidate) []candidate {
	if !d.known {
		return list
	}
	return slices.DeleteFunc(list, func(x candidate) bool {
		return hasOrder(x.format) &&
			dayFirst(x.format) != d.dayFirst
	})
}

// ambiguous reports days that may be months.
func ambiguous(list []candidate) bool {
	return len(list) > 1 && hasOrder(list[0].format) && other(list).format != ""
}

// other is the first that has the other order than the first.
func other(list []candidate) candidate {
	for _, x := range list[1:] {
		if hasOrder(x.format) && dayFirst(x.format) != dayFirst(list[0].format) {
			return x
		}
	}
	return candidate{}
}

func looksLikeDays(s string) bool {
	day, err := time.Parse("20060102", s)
	return err == nil && day.Year() >= 1900 && day.Year() <= 2100
}
