package files

import (
	"fmt"
	"regexp"
	"strings"

	"thalweg/internal/base/fault"
	"thalweg/internal/lang/expr"
	"thalweg/internal/lang/script"
)

var (
	thousands   = regexp.MustCompile(`^[-+]?[0-9]{1,3}(?:,[0-9]{3})+(?:\.[0-9]+)?$`)
	percent     = regexp.MustCompile(`^[-+]?[0-9.,]+\s*%$`)
	commaNumber = regexp.MustCompile(`^[-+]?[0-9]+,[0-9]+$`)
	pointNumber = regexp.MustCompile(`^[-+]?[0-9]*\.[0-9]+$`)
	digitsOnly  = regexp.MustCompile(`^[-+]?[0-9]+$`)
	withoutZone = regexp.MustCompile(`^[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]+)?$`)
	nullWord    = regexp.MustCompile(`^(?i:null|none|nil|n/?a|nan|-|\\n|#n/a)$`)
)

// valueHint says what can be done about a text that is no value of its column, and where
// the script has the column.
func valueHint(r *script.FileReader, c *script.InputColumn, value string) string {
	hint := "correct the input, or read the column as a string"
	switch number := c.Type == expr.Int || c.Type == expr.Float || c.Type.IsDecimal(); {
	case nullWord.MatchString(value) && r.Records == "":
		hint = fmt.Sprintf("if it stands for no value, say csv.null_text: %q of the column", value)
	case number && leavesOver(c, value):
		hint = formatHint(r, c, value)
	case number && thousands.MatchString(value) && r.Records == "" && c.Numbers == (script.Numbers{}):
		hint = thousandsHint(c, value)
	case number && percent.MatchString(value):
		hint = "read the column as a string, and take the % off with strings.ReplaceAll(r." + c.Name + ", `%`, ``)"
	case number && commaNumber.MatchString(value) && r.Records == "" && c.Numbers == (script.Numbers{}):
		hint = `if it has a decimal comma, say csv: {decimal: ","} on the node that reads it`
	case c.Type == expr.Int && pointNumber.MatchString(value):
		hint = "read the column as a decimal2 or a float"
	case c.Type == expr.Int && digitsOnly.MatchString(value):
		hint = "an int has 64 bits: read the column as decimal(38,0)"
	case c.Type == expr.Bool:
		hint = "read the column as a string, and compare it"
	case c.Type == expr.Instant && withoutZone.MatchString(value) && c.Zone == "" && r.Records == "" && c.Format == "":
		hint = "it has no zone: declare it as timestamptz " + layoutOf(value) +
			" and say of which clock it is, csv: {zone: Europe/Berlin} on the node that reads it; or read it " +
			"as a datetime"
	case c.Format != "" && (c.Type == expr.DateTime || c.Type == expr.Date || c.Type == expr.Instant):
		hint = "correct the input, or write the layout of its texts with the parts of 2006-01-02 15:04:05"
	}
	return atColumn(hint, r, c)
}

// numberIn takes a text apart as the format of its column does; ok is false without one.
func numberIn(c *script.InputColumn, value string) (number, rest string, ok bool) {
	return expr.ParseNumberFormat(c.Type, c.Format).Read(value)
}

// leavesOver reports whether the format of a column's numbers reads a part of a text.
func leavesOver(c *script.InputColumn, value string) bool {
	_, rest, ok := numberIn(c, value)
	return ok && rest != ""
}

// formatHint is for a text of which the format of its number reads a part.
func formatHint(r *script.FileReader, c *script.InputColumn, value string) string {
	_, rest, _ := numberIn(c, value)
	switch {
	case thousands.MatchString(value) && r.Records == "":
		return `if its commas part thousands, leave the format out and say csv: {thousands: ","} on the node that reads it`
	case rest == "-":
		return "a minus behind the number is not read: read the column as a string, and compute the number from " +
			"it in a field"
	case !startsLikeNumber.MatchString(rest):
		return fmt.Sprintf("if it always follows, say so in the format: %q; else read the column as a string, and "+
			"take it off with strings.ReplaceAll(r.%s, …)",
			strings.TrimRight(c.Format, " ")+strings.Repeat(" ", spacesBefore(value, rest))+rest, c.Name)
	}
	return "correct the input, or read the column as a string and compute the number from it: strings.ReplaceAll(r." +
		c.Name + ", …) takes texts off"
}

// spacesBefore is 1 if blanks stand before the end of a value, else 0.
func spacesBefore(value, end string) int {
	before := strings.TrimSuffix(strings.TrimSpace(value), end)
	if before != strings.TrimSpace(before) {
		return 1
	}
	return 0
}

var startsLikeNumber = regexp.MustCompile(`^[0-9.,'+-]`)

// thousandsHint is for a number with commas, each before three digits.
func thousandsHint(c *script.InputColumn, value string) string {
	hint := `if its commas part thousands, say csv: {thousands: ","} on the node that reads it`
	if c.Type != expr.Int && strings.Count(value, ",") == 1 && !strings.Contains(value, ".") {
		hint += `; if it has a decimal comma, csv: {decimal: ","}`
	}
	return hint
}

// layoutOf is the layout of a time without a zone.
func layoutOf(value string) string { return "2006-01-02" + value[10:11] + "15:04:05" }

// atColumn adds to a hint where the script has a column.
func atColumn(hint string, r *script.FileReader, c *script.InputColumn) string {
	file := c.Pos.File
	if file == "" && r != nil {
		file = r.Pos.File
	}
	if c.Pos.Line == 0 || file == "" {
		return hint
	}
	return fault.InScript(hint, "has it", fmt.Sprintf("%s:%d:%d", file, c.Pos.Line, c.Pos.Col))
}
