package expr

import (
	"cmp"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"thalweg/internal/base/sqltext"
)

// goTime is the layout of Go's own text of a time.
const goTime = "2006-01-02 15:04:05.999999999 -0700 MST"

// firstInstant is the first one that DuckDB prints without an era.
const firstInstant = "TIMESTAMP '0001-01-01'"

// formatTime renders the text of a datetime in a Go layout. Measured per row:
// the cast of the date 53 ns, of the whole second 69, strftime 90–120; pieces
// that strftime does not know cost an extra call each.
func (r *renderer) formatTime(n *node, layout string) string {
	if n.zone == nil {
		return r.zonedText(n, &node{op: opConst, typ: String, val: layout})
	}
	elements := parseLayout(layout)
	return r.let(n, func(v string) string {
		seconds := offsetOf(n.zone)
		if seconds == 0 {
			return layoutSQL(elements, layout, v, n.zone)
		}
		return r.bind("("+v+" + to_seconds("+strconv.Itoa(seconds)+"))", false, func(local string) string {
			return layoutSQL(elements, layout, local, n.zone)
		})
	})
}

// timeText is formatTime for a layout that may have to be computed.
func (r *renderer) timeText(n, layout *node) string {
	switch literal, ok := layout.val.(string); {
	case ok:
		return r.formatTime(n, literal)
	case n.zone == nil:
		return r.zonedText(n, layout)
	}
	name, seconds := time.Time{}.In(n.zone).Zone()
	return goFormat + "(" + r.sql(n) + ", " + r.sql(layout) + ", CAST(" + strconv.Itoa(seconds) + " AS BIGINT), " +
		sqltext.String(name) + ")"
}

// zonedText renders the text of a datetime whose zone depends on the row: Go
// reads once more what the value was read from, with its zone and all digits.
func (r *renderer) zonedText(n, layout *node) string {
	again := func(from, text string) string {
		return goReformat + "(" + strings.Join([]string{r.sql(n), from, text, r.sql(layout)}, ", ") + ")"
	}
	branch := func(a *node) string { return r.timeText(a, layout) }
	switch {
	case n.op == opRef:
		return again(sqltext.String(n.layout), zonedText(r.column(n.ref)))
	case n.fn.name == "time.Parse":
		return again(r.sql(n.args[0]), r.sql(n.args[1]))
	case n.fn.name == "coalesce":
		return r.firstOf(n.args, branch)
	}
	return r.choice(n, branch)
}

// A datetime with a zone of its own is a struct of the instant and the text
// that it was read from: whoever carries a column on carries both.
const (
	// ZonedType is the SQL type of such a column.
	ZonedType = "STRUCT(t TIMESTAMP, s VARCHAR)"
	// ZonedLayout is the layout of such texts that Thalweg has written itself.
	// "" stands for UTC.
	ZonedLayout = "2006-01-02T15:04:05.999999999Z07:00"
)

// Zoned reports whether datetimes that are read in a Go layout have zones of their own.
func Zoned(layout string) bool {
	for _, e := range parseLayout(layout) {
		if e.kind == zoneName || e.kind == zoneOffset || e.kind == zoneISO {
			return true
		}
	}
	return false
}

// ZonedSQL packs an instant and the text that it was read from.
func ZonedSQL(instant, text string) string {
	return "struct_pack(t := " + instant + ", s := " + text + ")"
}

// Shown writes references for showing their values: column, or the text that a
// datetime with a zone of its own was read from.
func (c *Compiled) Shown(column func(Ref) string) func(Ref) string {
	return func(ref Ref) string {
		if c.mode.Zoned == nil || c.mode.Zoned(ref) == "" {
			return column(ref)
		}
		return "coalesce(nullif(" + zonedText(column(ref)) + ", ''), CAST(" +
			zonedInstant(column(ref)) + " AS VARCHAR))"
	}
}

func zonedInstant(column string) string { return "struct_extract(" + column + ", 't')" }
func zonedText(column string) string    { return "struct_extract(" + column + ", 's')" }

func layoutSQL(elements []element, layout, v string, zone *time.Location) string {
	fast := ""
	switch layout {
	case "2006-01-02":
		fast = "CAST(CAST(" + v + " AS DATE) AS VARCHAR)"
	case "2006-01-02 15:04:05":
		fast = "CAST(date_trunc('second', " + v + ") AS VARCHAR)"
	case goTime: // DuckDB's own text drops zeros at the end as .999999999 does
		fast = "(CAST(" + v + " AS VARCHAR) || " + sqltext.String(time.Time{}.In(zone).Format(" -0700 MST")) + ")"
	default:
		fast = piecesSQL(elements, v, zone, false)
	}
	years := false
	for _, e := range elements {
		years = years || e.kind == year4 || e.kind == year2
	}
	if !years {
		return fast
	}
	// Years before 1: DuckDB counts eras, Go counts through zero.
	return "CASE WHEN " + v + " < " + firstInstant + " THEN " + piecesSQL(elements, v, zone, true) + " ELSE " +
		fast + " END"
}

// ISOTextSQL renders the text of a datetime, a date or a timestamptz, the last in UTC. The text is that of DuckDB's
// cast, with two differences: between stands between the day and the time, and years before 1 are counted through
// zero. DuckDB counts those by eras, in a form of its own: 0044-03-15 (BC).
func ISOTextSQL(t Type, between, sql string) (string, error) {
	layout := "2006-01-02" + between + "15:04:05.999999"
	switch t {
	case Instant:
		sql = "timezone('UTC', " + sql + ")"
	case Date:
		layout = "2006-01-02"
	}
	cast := "CAST(" + sql + " AS VARCHAR)"
	if t != Date && between != " " {
		cast = "replace(" + cast + ", ' ', " + sqltext.String(between) + ")"
	}
	ancient, err := PrintSQL(DateTime, layout, "CAST("+sql+" AS TIMESTAMP)")
	return "(CASE WHEN " + sql + " < " + firstInstant + " THEN " + ancient + " ELSE " + cast + " END)", err
}

// strftimeCode is DuckDB's specifier for an element, "" if it has none.
func strftimeCode(k elementKind, ancient bool) string {
	if ancient && (k == year4 || k == year2) {
		return ""
	}
	return map[elementKind]string{
		year4: "%Y", year2: "%y", month2: "%m", month1: "%-m", monthShort: "%b", monthLong: "%B",
		day2: "%d", day1: "%-d", yearDay3: "%j", weekdayShort: "%a", weekdayLong: "%A",
		hour24: "%H", hour12Two: "%I", hour12One: "%-I", halfUpper: "%p",
		minute2: "%M", minute1: "%-M", second2: "%S", second1: "%-S",
	}[k]
}

// piecesSQL joins strftime calls with the elements that strftime lacks.
func piecesSQL(elements []element, v string, zone *time.Location, ancient bool) string {
	var parts []string
	format, codes := "", false
	shown := false // anything of v
	flush := func() {
		switch {
		case codes:
			shown = true
			parts = append(parts, "strftime("+v+", "+sqltext.String(format)+")")
		case format != "":
			parts = append(parts, sqltext.String(strings.ReplaceAll(format, "%%", "%")))
		}
		format, codes = "", false
	}
	for _, e := range elements {
		if e.kind == literalText {
			format += strings.ReplaceAll(e.text, "%", "%%")
			continue
		}
		if code := strftimeCode(e.kind, ancient); code != "" {
			format, codes = format+code, true
			continue
		}
		if e.kind == fraction0 && len(e.text) == 4 {
			format, codes = format+e.text[:1]+"%g", true
			continue
		}
		if e.kind == fraction0 && len(e.text) == 7 {
			format, codes = format+e.text[:1]+"%f", true
			continue
		}
		if e.kind == zoneName || e.kind == zoneOffset || e.kind == zoneISO {
			format += strings.ReplaceAll(time.Time{}.In(zone).Format(e.text), "%", "%%")
			continue
		}
		flush()
		shown = true
		parts = append(parts, elementSQL(e, v))
	}
	flush()
	if shown {
		return "(" + strings.Join(parts, " || ") + ")"
	}
	// The text is the same for all, but for NULL.
	return "CASE WHEN " + v + " IS NOT NULL THEN " + cmp.Or(strings.Join(parts, " || "), "''") + " END"
}

// elementSQL renders an element that strftime does not have.
func elementSQL(e element, v string) string {
	switch e.kind {
	case year4:
		return "format(CASE WHEN year(" + v + ") < 0 THEN '{:05d}' ELSE '{:04d}' END, year(" + v + "))"
	case year2:
		return "format('{:02d}', abs(year(" + v + ")) % 100)"
	case dayBlank:
		return "format('{:2d}', day(" + v + "))"
	case yearDayBlank:
		return "format('{:3d}', dayofyear(" + v + "))"
	case halfLower:
		return "lower(strftime(" + v + ", '%p'))"
	case fraction0:
		digits := len(e.text) - 1
		if digits > 6 {
			return "strftime(" + v + ", " + sqltext.String(e.text[:1]+"%f"+strings.Repeat("0", digits-6)) + ")"
		}
		return "left(strftime(" + v + ", " + sqltext.String(e.text[:1]+"%f") + "), " + strconv.Itoa(digits+1) + ")"
	case fraction9:
		digits := min(len(e.text)-1, 6)
		return "rtrim(rtrim(left(strftime(" + v + ", " + sqltext.String(e.text[:1]+"%f") + "), " +
			strconv.Itoa(digits+1) + "), '0'), " + sqltext.String(e.text[:1]) + ")"
	}
	return "''"
}

// parseTimeSQL renders the parsing of text by a Go layout: NULL where it does
// not match. v is a cheap expression. For layouts whose fields all have a fixed
// width DuckDB's own parsers do nearly all rows (90–160 ns), guarded so that
// they accept nothing that Go would not; the rest, and what they refuse, goes
// through a regular expression (1 µs) that is Go's rule to the letter.
func (r *renderer) parseTimeSQL(layout, v string) (string, error) {
	elements := parseLayout(layout)
	general, err := r.parseGeneral(elements, v)
	if err != nil {
		return "", err
	}
	if swift := swiftTimeSQL(layout, elements, v); swift != "" {
		return "coalesce(" + swift + ", " + general + ")", nil
	}
	return general, nil
}

// swiftTimeSQL renders the reading of texts of a layout without fractions of a second by DuckDB's own
// parsers. The SQL gives NULL for other texts. swiftTimeSQL returns "" if those parsers cannot read the
// layout.
func swiftTimeSQL(layout string, elements []element, v string) string {
	switch layout {
	case "2006-01-02":
		return fmt.Sprintf("CASE WHEN strlen(%[1]s) = 10 AND CAST(TRY_CAST(%[1]s AS DATE) AS VARCHAR) = %[1]s"+
			" THEN CAST(TRY_CAST(%[1]s AS DATE) AS TIMESTAMP) END", v)
	case "2006-01-02 15:04:05":
		return fmt.Sprintf("CASE WHEN strlen(%[1]s) = 19 AND CAST(TRY_CAST(%[1]s AS TIMESTAMP) AS VARCHAR) = %[1]s"+
			" THEN TRY_CAST(%[1]s AS TIMESTAMP) END", v)
	}
	format, width, ok := fixedWidth(elements)
	if !ok {
		return ""
	}
	oneBlank := "" // strptime reads any number of blanks for one, so that shorter fields would fit the length
	if strings.Contains(format, " ") {
		oneBlank = " AND NOT contains(" + v + ", '  ')"
	}
	return fmt.Sprintf("CASE WHEN strlen(%[1]s) = %[2]d AND %[1]s >= '0' AND %[1]s < ':' AND NOT (%[3]s)%[5]s"+
		" THEN try_strptime(%[1]s, %[4]s) END", v, width, endsInBlank(v), sqltext.String(format), oneBlank)
}

// endsInBlank: the blanks that DuckDB's parsers forgive at the end of text.
func endsInBlank(v string) string {
	var tests []string
	for _, blank := range []string{"' '", "chr(9)", "chr(10)", "chr(11)", "chr(12)", "chr(13)"} {
		tests = append(tests, "suffix("+v+", "+blank+")")
	}
	return strings.Join(tests, " OR ")
}

// fixedWidth returns the strptime format of a layout of which every field has
// a fixed number of digits. No blanks except before the hour, which Go also
// reads with one digit.
func fixedWidth(elements []element) (format string, width int, ok bool) {
	codes := map[elementKind]string{year4: "%Y", month2: "%m", day2: "%d", hour24: "%H", minute2: "%M", second2: "%S"}
	seen := map[elementKind]bool{}
	for i, e := range elements {
		width += len(e.text)
		if e.kind == literalText {
			if strings.ContainsAny(e.text, "%\t\n\r\v\f0123456789+-") && e.text != "-" {
				return "", 0, false
			}
			if strings.Contains(e.text, " ") && !(e.text == " " && i+1 < len(elements) &&
				elements[i+1].kind == hour24) {
				return "", 0, false
			}
			format += e.text
			continue
		}
		code, known := codes[e.kind]
		if !known || seen[e.kind] || (i == 0 && e.kind == hour24) {
			return "", 0, false
		}
		seen[e.kind] = true
		format += code
	}
	return format, width, seen[year4] && seen[month2] && seen[day2] && elements[0].kind != literalText
}

// group is a captured field of the general parser.
type group struct{ name, pattern string }

// groupOf is the pattern of an element, Go's rule for reading it. The last
// result reports an element that may only be skipped.
func groupOf(k elementKind) (group, bool) {
	const months = "jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec"
	const longMonths = "january|february|march|april|may|june|july|august|september|october|november|december"
	g, ok := map[elementKind]group{
		year4: {"y", `\d{4}`}, year2: {"yy", `\d\d`},
		month2: {"m", `0[1-9]|1[0-2]`}, month1: {"m", `0[1-9]|1[0-2]|[1-9]`},
		monthShort: {"mon", `(?i:` + months + `)`}, monthLong: {"mon", `(?i:` + longMonths + `)`},
		day2: {"d", `\d\d`}, day1: {"d", `\d\d?`}, dayBlank: {"d", ` ?\d\d?`},
		hour24: {"h", `2[0-3]|[01]\d|\d`}, hour12Two: {"h", `0\d|1[0-2]`}, hour12One: {"h", `0\d|1[0-2]|\d`},
		halfUpper: {"half", `AM|PM`}, halfLower: {"half", `am|pm`},
		minute2: {"mi", `[0-5]\d`}, minute1: {"mi", `[0-5]\d|\d`},
		second2: {"s", `[0-5]\d`}, second1: {"s", `[0-5]\d|\d`},
		fraction0: {"f", ""}, fraction9: {"f", ""},
	}[k]
	return g, ok
}

const weekdays = `(?i:monday|tuesday|wednesday|thursday|friday|saturday|sunday)`

// layoutPattern builds the regular expression and the names of its groups.
func layoutPattern(elements []element) (pattern string, names []string, err error) {
	used := map[string]bool{}
	var b strings.Builder
	b.WriteString(`(?s)^`)
	capture := func(name, p string) error {
		if used[name] {
			return fmt.Errorf("a layout for parsing may name each part of a time once")
		}
		used[name] = true
		names = append(names, name)
		b.WriteString("(" + p + ")")
		return nil
	}
	for i, e := range elements {
		if err = elementPattern(&b, e, elements[i+1:], capture); err != nil {
			return "", nil, err
		}
	}
	b.WriteString(`$`)
	return b.String(), names, nil
}

func elementPattern(b *strings.Builder, e element, rest []element, capture func(name, p string) error) error {
	switch e.kind {
	case literalText:
		b.WriteString(literalPattern(e.text, len(rest) == 0))
		return nil
	case weekdayShort:
		b.WriteString(`(?i:mon|tue|wed|thu|fri|sat|sun)`)
		return nil
	case weekdayLong:
		b.WriteString(weekdays)
		return nil
	case fraction0:
		b.WriteString(`[.,]`)
		return capture("f", `\d{`+strconv.Itoa(len(e.text)-1)+`}`)
	case fraction9:
		b.WriteString(`(?:[.,]`)
		err := capture("f", `\d+`)
		b.WriteString(`)?`)
		return err
	case zoneOffset, zoneISO:
		return zonePattern(b, e, capture)
	case zoneName:
		return fmt.Errorf("only Go knows which letters may be a zone")
	}
	g, ok := groupOf(e.kind)
	if !ok {
		return fmt.Errorf("%s is not supported in a layout for parsing", e.text)
	}
	if digitFollows(rest) {
		// Go reads the second digit where it can, so a single one is never right here.
		g.pattern = strings.TrimSuffix(strings.ReplaceAll(g.pattern, `\d\d?`, `\d\d`), `|\d`)
		g.pattern = strings.TrimSuffix(g.pattern, `|[1-9]`)
	}
	if err := capture(g.name, g.pattern); err != nil {
		return err
	}
	if (e.kind == second2 || e.kind == second1) && !fractionFollows(rest) {
		// Go takes a fraction after the seconds even when the layout has none.
		b.WriteString(`(?:[.,]`)
		err := capture("f", `\d+`)
		b.WriteString(`)?`)
		return err
	}
	return nil
}

// digitFollows: the next element starts with a digit.
func digitFollows(rest []element) bool {
	if len(rest) == 0 {
		return false
	}
	switch rest[0].kind {
	case literalText:
		return rest[0].text[0] >= '0' && rest[0].text[0] <= '9'
	case monthShort, monthLong, weekdayShort, weekdayLong, halfUpper, halfLower, fraction0, fraction9, zoneName,
		zoneOffset, zoneISO:
		return false
	}
	return true
}

// fractionFollows: the next element that is not literal text is a fraction.
func fractionFollows(rest []element) bool {
	for _, e := range rest {
		if e.kind != literalText {
			return e.kind == fraction0 || e.kind == fraction9
		}
	}
	return false
}

// literalPattern: a run of blanks in the layout stands for one or more blanks, at the end for none too.
func literalPattern(text string, last bool) string {
	var b strings.Builder
	for i := 0; i < len(text); {
		j := i
		for j < len(text) && text[j] == ' ' {
			j++
		}
		if j > i {
			if last && j == len(text) {
				b.WriteString(` *`)
			} else {
				b.WriteString(` +`)
			}
			i = j
			continue
		}
		for j < len(text) && text[j] != ' ' {
			j++
		}
		b.WriteString(regexp.QuoteMeta(text[i:j]))
		i = j
	}
	return b.String()
}

func zonePattern(b *strings.Builder, e element, capture func(name, p string) error) error {
	offset := map[string]string{
		"0700": `[+-](?:[01]\d|2[0-4])(?:[0-5]\d|60)`, "07:00": `[+-](?:[01]\d|2[0-4]):(?:[0-5]\d|60)`,
		"07": `[+-](?:[01]\d|2[0-4])`,
	}[e.text[1:]]
	if offset == "" {
		return fmt.Errorf("%s is not supported in a layout for parsing", e.text)
	}
	if e.kind == zoneISO {
		offset = "Z|" + offset
	}
	return capture("z", offset)
}

// parseGeneral renders the regular-expression parser.
func (r *renderer) parseGeneral(elements []element, v string) (string, error) {
	pattern, names, err := layoutPattern(elements)
	if err != nil {
		return "", err
	}
	if len(names) == 0 {
		return "", fmt.Errorf("the layout names no part of a time; Go layouts are written with 2006-01-02 15:04:05")
	}
	has := map[string]bool{}
	for _, n := range names {
		has[n] = true
	}
	match := "CASE WHEN regexp_matches(" + v + ", " + sqltext.String(pattern) + ") THEN regexp_extract(" + v + ", " +
		sqltext.String(pattern) + ", " + sqltext.Strings(names) + ") END"
	return r.bind(match, false, func(g string) string { return assemble(g, has) }), nil
}

// assemble makes a timestamp of the captured groups g: DuckDB's cast of ISO
// text checks the days of the month.
func assemble(g string, has map[string]bool) string {
	part := func(name, absent string) string {
		if has[name] {
			return g + "." + name
		}
		return "'" + absent + "'"
	}
	year := part("y", "0000")
	if has["yy"] {
		year = "CASE WHEN " + g + ".yy >= '69' THEN '19' ELSE '20' END || " + g + ".yy"
	}
	month := part("m", "01")
	if has["mon"] {
		month = "CAST((strpos('janfebmaraprmayjunjulaugsepoctnovdec', lower(left(" + g +
			".mon, 3))) + 2) // 3 AS VARCHAR)"
	}
	hour := part("h", "00")
	if has["half"] && has["h"] {
		hour = "CAST(CASE WHEN upper(" + g + ".half) = 'PM' AND CAST(" + g + ".h AS INTEGER) < 12 THEN CAST(" + g +
			".h AS INTEGER) + 12" +
			" WHEN upper(" + g + ".half) = 'AM' AND CAST(" + g + ".h AS INTEGER) = 12 THEN 0 ELSE CAST(" + g +
			".h AS INTEGER) END AS VARCHAR)"
	}
	text := "(" + strings.Join([]string{year, "'-'", month, "'-'", "ltrim(" + part("d", "01") + ", ' ')", "' '", hour,
		"':'", part("mi", "00"), "':'", part("s", "00")}, " || ")
	if has["f"] {
		text += " || CASE WHEN " + g + ".f = '' THEN '' ELSE '.' || left(" + g + ".f, 6) END"
	}
	out := "TRY_CAST(" + text + ") AS TIMESTAMP)"
	if has["z"] {
		digits := "replace(" + g + ".z, ':', '')"
		out = "(" + out + " - to_seconds(CASE WHEN " + g + ".z = 'Z' THEN 0 ELSE (CAST(" + digits +
			"[2:3] AS INTEGER) * 3600 + " +
			"CASE WHEN strlen(" + digits + ") > 3 THEN CAST(" + digits + "[4:5] AS INTEGER) * 60 ELSE 0 END) * " +
			"CASE WHEN " + digits + "[1] = '-' THEN -1 ELSE 1 END END))"
	}
	return out
}
