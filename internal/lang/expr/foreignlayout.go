package expr

import "strings"

// goLayout is the Go layout that one of other programs stands for.
func goLayout(layout string) string {
	if strings.Contains(layout, "%") {
		return "this one is " + strings.NewReplacer("%Y", "2006", "%y", "06", "%m", "01", "%d", "02", "%H",
			"15", "%I", "03", "%M", "04", "%S", "05",
			"%f", "000000", "%p", "PM", "%z", "-0700", "%Z", "MST", "%b", "Jan", "%B", "January", "%a",
			"Mon", "%A", "Monday", "%T", "15:04:05", "%F", "2006-01-02").Replace(layout)
	}
	// mm is a month beside a sign of days, else minutes.
	out := strings.NewReplacer("-mm", "-01", "/mm", "/01", ".mm", ".01", "mm/", "01/", "mm-", "01-", "yyyy", "2006",
		"YYYY", "2006", "yy", "06", "YY", "06", "MMMM", "January", "MMM", "Jan", "MM", "01", "MI", "04", "dd", "02",
		"DD", "02",
		"HH24", "15", "HH", "15", "hh", "15", "mm", "04", "ss", "05", "SS", "05", "'T'", "T").Replace(layout)
	if out == layout {
		return "the year is 2006, the month 01, the day 02, the hour 15, the minute 04, the second 05"
	}
	return "this one is " + out
}
