package records

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// cell is one of a sheet. The zero value is empty.
type cell struct {
	kind  byte // 0: empty; s text, n number, b truth, e error, d date as text, f formula without a value
	text  string
	style style
}

// number writes a number with the digits that it needs.
func number(text string) string {
	const digitsMax = 38 // that a column can keep
	if digits := strings.TrimPrefix(text, "-"); digits != "" && len(digits) <= digitsMax &&
		strings.Trim(digits, "0123456789") == "" && digits[0] != '0' {
		return text // all of its digits, which are more than Excel keeps if another program wrote them
	}
	v, err := strconv.ParseFloat(text, 64)
	const plainMax, plainMin = 1e21, 1e-7
	switch size := math.Abs(v); {
	case err != nil:
		return text
	case size != 0 && (size >= plainMax || size < plainMin):
		return strconv.FormatFloat(v, 'g', -1, 64)
	}
	return strconv.FormatFloat(v, 'f', -1, 64)
}

// dayMax is the first of the year 10000.
const dayMax = 2_958_466

const msOfDay = 24 * 60 * 60 * 1000

// moment is the time that a number of days stands for.
func (w *workbook) moment(text string) (time.Time, error) {
	days, err := strconv.ParseFloat(text, 64)
	if err != nil || days < 0 || days >= dayMax {
		return time.Time{}, fmt.Errorf("%s is no day", text)
	}
	ms := math.Round(days * msOfDay)
	whole := math.Floor(ms / msOfDay)
	start := time.Date(1899, 12, 30, 0, 0, 0, 0, time.UTC)
	switch {
	case w.from04:
		start = time.Date(1904, 1, 1, 0, 0, 0, 0, time.UTC)
	case whole == 60:
		return time.Time{}, fmt.Errorf("it is 1900-02-29, a day that was not")
	case whole < 60: // Excel has that day
		start = start.AddDate(0, 0, 1)
	}
	return start.AddDate(0, 0, int(whole)).Add(time.Duration(ms-whole*msOfDay) * time.Millisecond), nil
}

// span is an elapsed time, of a number of days, as a text: 36:00:00. Only workbooks that count from 1904
// have negative ones: Excel shows others as ####.
func (w *workbook) span(text string) (string, error) {
	days, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(days) || math.Abs(days) >= dayMax || days < 0 && !w.from04 {
		return "", fmt.Errorf("%s is no elapsed time", text)
	}
	ms := int64(math.Round(math.Abs(days) * msOfDay))
	sign := ""
	if days < 0 && ms > 0 {
		sign = "-"
	}
	const msOfHour = 60 * 60 * 1000
	return fmt.Sprintf("%s%02d%s", sign, ms/msOfHour, time.UnixMilli(ms%msOfHour).UTC().Format(":04:05.999")), nil
}

// shown is a cell as a text column has it.
func (w *workbook) shown(c cell) (string, error) {
	switch {
	case c.kind == 'b':
		return truth(c.text), nil
	case c.kind != 'n' || c.style == plain:
		if c.kind == 'n' {
			return number(c.text), nil
		}
		return c.text, nil
	case c.style == elapsed:
		return w.span(c.text)
	}
	t, err := w.moment(c.text)
	if err != nil {
		return "", err
	}
	layout := "2006-01-02 15:04:05.999"
	switch midnight := t.Equal(t.Truncate(24 * time.Hour)); {
	case c.style == day && midnight:
		layout = "2006-01-02"
	case c.style == clock && t.Before(time.Date(1904, 1, 2, 0, 0, 0, 0, time.UTC)) &&
		strings.HasPrefix(number(c.text), "0"):
		layout = "15:04:05.999"
	}
	return t.Format(layout), nil
}

func truth(text string) string {
	if text == "1" || text == "true" {
		return "true"
	}
	return "false"
}
