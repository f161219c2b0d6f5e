package expr

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"thalweg/internal/base/sqltext"
)

// defaultTimeLayout is the layout of default values of table fields.
const defaultTimeLayout = "2006-01-02T15:04:05.000-07:00"

// PrintSQL renders the text of a value in a CSV file: a Go print format with
// one verb (a decimal2 is its text with two digits, so %s), a Go layout for a
// datetime. What does not fit prints Go's marks: see PrintNote. An empty format prints numbers, bools and strings
// plainly. The error is an *Error with offsets in format.
func PrintSQL(t Type, format, sql string) (string, error) {
	r := &renderer{}
	n := &node{op: opRaw, raw: sql, typ: t, text: sql, zone: time.UTC, dec: decimalType{scale: columnScale}}
	whole := span{0, len(format)}
	if t.exact() {
		n.dec = exactDecimal(t)
	}
	if format == "" && t.TimeLayout() != "" {
		format = t.TimeLayout()
	}
	switch {
	case t == DateTime || t == Date || t == Instant:
		if _, err := layoutOf(&node{val: format, at: whole}); err != nil {
			return "", err
		}
		return r.formatTime(r.asTime(n), format), nil
	case t.IsDecimal():
		n = &node{op: opRaw, raw: "CAST(CAST(" + sql + " AS " + t.SQL() + ") AS VARCHAR)", typ: String, text: sql}
	}
	if format == "" {
		return r.text(n), nil
	}
	parts, err := r.printParts(n, t, format)
	if err == nil {
		return r.concat([]*node{n}, parts), nil
	}
	if tooWide(format) {
		return "", err
	}
	return r.printedByGo("", sqltext.String(format), []*node{n}), nil
}

// PrintNote says what is probably not meant with a format that PrintSQL
// takes: an *Error, or nil.
func PrintNote(t Type, format string) error {
	if t == DateTime || t == Date || t == Instant || format == "" {
		return nil
	}
	n := &node{op: opRaw, raw: "x", typ: t, text: "x"}
	if t.IsDecimal() {
		n.typ = String
	}
	mark := marked(format, []*node{n})
	if mark == "" {
		return nil
	}
	if _, err := (&renderer{}).printParts(n, t, format); err != nil {
		err.Message += ": it prints " + mark
		return err
	}
	return nil
}

// printParts renders the pieces of a format with one verb for n, a value of
// type t, if DuckDB can print it.
func (r *renderer) printParts(n *node, t Type, format string) ([]string, *Error) {
	whole := span{0, len(format)}
	pieces, bad := parseFormat(format)
	if bad != nil {
		return nil, span{bad.offset, bad.length}.errorf("%s", bad.message).hint("%s", bad.hint)
	}
	var parts []string
	verbs := 0
	for _, p := range pieces {
		if p.verb == nil {
			parts = append(parts, sqltext.String(p.literal))
			continue
		}
		if verbs++; verbs > 1 {
			return nil, span{p.offset, len(p.verb.text)}.errorf("%s has no value: a column is one value", p.verb.text)
		}
		if problem, hint := p.verb.fits(n.typ); problem != "" {
			if t.IsDecimal() {
				_, scale := t.Digits()
				problem, hint = p.verb.text+" cannot print "+t.phrase(),
					fmt.Sprintf("%%s prints it with %s after the point",
						plural(scale, "digit"))
				if t == Decimal {
					hint = "%s prints it with two digits after the point"
				}
			}
			return nil, span{p.offset, len(p.verb.text)}.errorf("%s", problem).hint("%s", hint)
		}
		parts = append(parts, r.formatted(n, p.verb))
	}
	if verbs == 0 {
		return nil, whole.errorf("the format %q prints no value",
			format).hint("it needs one verb, such as %%s, %%d, %%f or %%t")
	}
	return parts, nil
}

// ScanSQL renders the parsing of CSV text into t: NULL where the text cannot
// be parsed. sql is VARCHAR and not blank. Without a format: an int is strictly
// base 10, a float what Go's ParseFloat reads, a decimal2 is
// read exactly and rounded half away from zero, a bool is one of 1 t T TRUE
// true True 0 f F FALSE false False. With one: text before, one scan verb, text
// after (numbers), or a Go layout (datetime, where it is required; it keeps
// microseconds, which only StoreSQL cuts off). The error is an *Error with offsets in format.
func ScanSQL(t Type, format, sql string) (string, error) {
	whole := span{0, len(format)}
	r := &renderer{}
	n := &node{op: opRaw, raw: sql, typ: String, text: sql}
	if (t == String || t == Bool) && format != "" {
		return "", whole.errorf("%s column takes no format", t.phrase())
	}
	switch t {
	case String:
		return sql, nil
	case Bool:
		return r.let(n, func(v string) string {
			return "CASE WHEN " + sqltext.OneOf(v, []string{"1", "t", "T", "TRUE", "true", "True"}) +
				" THEN true WHEN " +
				sqltext.OneOf(v, []string{"0", "f", "F", "FALSE", "false", "False"}) + " THEN false END"
		}), nil
	case DateTime:
		return r.scanTime(n, format)
	case Date:
		return r.scanDate(n, format)
	case Instant:
		return r.scanInstant(n, format, "")
	case Int, Float, Decimal:
		if format != "" {
			return r.scanNumber(t, n, format, nil)
		}
		macro := map[Type]string{Int: "thalweg_scan_int", Float: "thalweg_scan_float",
			Decimal: "thalweg_scan_decimal"}[t]
		return r.let(n, func(v string) string { return macro + "(" + v + ")" }), nil
	}
	if t.exact() {
		if format != "" {
			return "", whole.errorf("%s column takes no format",
				t.phrase()).hint("it is read as a plain number; declare it as decimal2 or string to use a format")
		}
		return r.exactScan(t, n, false), nil
	}
	return "", whole.errorf("%s cannot be read from text", t.phrase())
}

// Exactly holds the rules for reading a column's text, if values that its type cannot hold exactly are
// errors.
type Exactly struct {
	Round bool   // digits behind those that the type has are rounded off
	Zone  string // of a timestamptz: the zone of texts without one; "": their layout has it
}

// ScanExactSQL is ScanSQL as Thalweg's own forms read text: NULL also where the
// type cannot hold the value exactly, or a number's format leaves some of the text over.
func ScanExactSQL(t Type, format, sql string, how Exactly) (string, error) {
	r := &renderer{}
	n := &node{op: opRaw, raw: sql, typ: String, text: sql}
	switch {
	case format != "" && (t == Int || t == Float || t == Decimal):
		return r.scanNumber(t, n, format, &how)
	case t.IsDecimal():
		if format != "" {
			break // it has none
		}
		return r.exactScan(t, n, how.Round), nil
	case t == Instant:
		if how.Round {
			n.raw = "regexp_replace(" + sql + ", '([.,][0-9]{6})[0-9]+', '\\1')"
		}
		return r.scanInstant(n, format, how.Zone)
	case t == Float:
		return r.let(n, func(v string) string { return how.float(v) }), nil
	case t == DateTime && !how.Round:
		scan, err := ScanSQL(t, format, sql)
		if err != nil {
			return "", err
		}
		exact := r.bind(r.exactTime(format, scan, sql), false, func(v string) string {
			return "CASE WHEN " + v + " = date_trunc('millisecond', " + v + ") THEN " + v + " END"
		})
		if swift := swiftTimeSQL(format, parseLayout(format), sql); swift != "" { // half the time, and nothing to check
			exact = "coalesce(" + swift + ", " + exact + ")"
		}
		return exact, nil
	}
	return ScanSQL(t, format, sql)
}

// float reads the text of a float.
func (how Exactly) float(v string) string {
	if how.Round {
		return "thalweg_scan_plain_float(" + v + ")"
	}
	return "thalweg_scan_exact_float(" + v + ")"
}

// exactTime is the reading of a datetime, by Go where its text may have more
// than six digits of the second, which the reading would cut.
func (r *renderer) exactTime(layout, scan, v string) string {
	for _, e := range parseLayout(layout) {
		if e.kind == second2 || e.kind == second1 { // Go takes a fraction behind any second
			return "CASE WHEN regexp_matches(" + v + ", '[.,][0-9]{6}[0-9]*[1-9]') THEN NULL ELSE " + scan + " END"
		}
	}
	return scan
}

func (r *renderer) scanDate(n *node, layout string) (string, error) {
	if layout == "" || layout == time.DateOnly {
		return r.let(n, func(v string) string { return "thalweg_scan_date(" + v + ")" }), nil
	}
	whole := span{0, len(layout)}
	if _, err := layoutOf(&node{val: layout, at: whole}); err != nil {
		return "", err
	}
	if t := time.Date(2006, time.November, 22, 13, 14, 15, 123456789,
		time.FixedZone("X", 60)); t.Format(layout) != dayOf(t).time().Format(layout) {
		return "", whole.errorf("the layout %q of a date has a time of the day",
			layout).hint("declare the column as datetime or timestamptz")
	}
	parsed, err := r.scanTime(n, layout)
	if err != nil {
		return "", err
	}
	return r.bind("CAST("+parsed+" AS DATE)", false, func(v string) string {
		return "CASE WHEN " + yearsSQL(v) + " THEN " +
			v + " END"
	}), nil
}

func (r *renderer) scanInstant(n *node, layout, zone string) (string, error) {
	whole := span{0, len(layout)}
	switch {
	case layout == "" && zone == "":
		layout = time.RFC3339Nano
	case layout == "":
		return "", whole.errorf("a timestamptz column with a zone needs a format").
			hint("a Go layout, such as 2006-01-02 15:04:05")
	}
	if _, err := layoutOf(&node{val: layout, at: whole}); err != nil {
		return "", err
	}
	switch zoned := Zoned(layout); {
	case !zoned && zone == "":
		return "", whole.errorf("the layout %q of a timestamptz has no zone", layout).
			hint("write -07:00 or Z07:00 where the text has it, or say zone: Europe/Berlin for texts without")
	case zoned && zone != "":
		return "", whole.errorf("the layout %q has a zone itself", layout).hint("leave zone out")
	}
	if zone == "" {
		zone = "UTC"
	}
	if _, err := LoadZone(zone); err != nil {
		return "", whole.errorf("%s", err).hint("a name such as Europe/Berlin or UTC")
	}
	return r.let(n, func(v string) string { return toInstant(instantText(layout, zone, v)) }), nil
}

// PrintInSQL is PrintSQL for a datetime or a timestamptz in a zone. Source is the text that messages quote.
func PrintInSQL(t Type, format, zone, sql, source string) (string, error) {
	if format == "" {
		format = t.TimeLayout()
	}
	whole := span{0, len(format)}
	if _, err := layoutOf(&node{val: format, at: whole}); err != nil {
		return "", err
	}
	if _, err := LoadZone(zone); err != nil {
		return "", whole.errorf("%s", err).hint("a name such as Europe/Berlin or UTC")
	}
	r := &renderer{}
	n := &node{op: opRaw, raw: sql, typ: t, text: sql, zone: time.UTC}
	return goFormatIn + "(" + r.sql(r.asTime(n)) + ", " + sqltext.String(format) + ", " + sqltext.String(zone) + ", " +
		sqltext.String(shorten(source)) + ")", nil
}

func (r *renderer) scanTime(n *node, layout string) (string, error) {
	whole := span{0, len(layout)}
	if layout == "" {
		return "", whole.errorf("a datetime column needs a format").hint("a Go layout, such as 2006-01-02 15:04:05")
	}
	if _, err := layoutOf(&node{val: layout, at: whole}); err != nil {
		return "", err
	}
	return r.let(n, func(v string) string {
		parsed, err := r.parseTimeSQL(layout, v)
		if err != nil { // a layout that DuckDB has nothing for
			parsed = goParse + "(" + sqltext.String(layout) + ", " + v + ")"
		}
		return parsed
	}), nil
}

// scanFormat is a scan format of one verb.
type scanFormat struct {
	before, after string // as patterns
	width         int    // characters of the number that count; 0: all
}

func parseScanFormat(t Type, format string) (scanFormat, *Error) {
	whole := span{0, len(format)}
	letters := "d"
	if t != Int {
		letters = "feEgGv"
	}
	out, verbs, literal := scanFormat{}, 0, ""
	for i := 0; i < len(format); {
		if format[i] != '%' {
			literal += format[i : i+1]
			i++
			continue
		}
		v, n, bad := parseVerb(format[i:])
		at := span{i, n}
		switch {
		case bad != "":
			return out, at.errorf("%s", bad).hint("%%%c reads %s", letters[0], t.phrase())
		case v.letter == '%':
			literal += "%"
		case verbs > 0:
			return out, at.errorf("%s is the second verb, a column is one value", v.text)
		case !strings.ContainsRune(letters, rune(v.letter)) || v.precision >= 0 || v.minus || v.plus ||
			v.space || v.zero && v.width < 0:
			return out, at.errorf("%s does not read %s", v.text, t.phrase()).hint("use %%%c", letters[0])
		default:
			out.before, literal, verbs = literal, "", 1
			out.width = max(v.width, 0)
		}
		i += n
	}
	if verbs == 0 {
		return out, whole.errorf("the format %q reads no value", format).hint("it needs one verb: %%%c", letters[0])
	}
	// What the verb takes as part of the number never is left for the text.
	taken := "0123456789"
	if t != Int {
		taken += "_.eEpPxX"
	}
	if literal != "" && strings.ContainsAny(literal[:1], taken) {
		return out, whole.errorf("text after the verb must not start with %q", literal[:1])
	}
	out.before, out.after = scanPattern(out.before), scanPattern(literal)
	if before, ok := strings.CutSuffix(out.after, scanBlanks); ok { // the text may end before them
		out.after = before + `(?:` + scanBlanks + `|$)`
	}
	return out, nil
}

// scanBlanks matches what a blank in a scan format does.
const scanBlanks = `[\t\v\f\r \x{85}\p{Z}]+`

// scanPattern: a run of blanks in a format stands for one or more blanks.
func scanPattern(text string) string {
	fields := strings.Split(regexp.QuoteMeta(text), " ")
	var b strings.Builder
	for i, f := range fields {
		if i > 0 && !strings.HasSuffix(b.String(), scanBlanks) {
			b.WriteString(scanBlanks)
		}
		b.WriteString(f)
	}
	return b.String()
}

// ScanEnd is the macro of the pattern of a scan format, which leaves what follows the
// format unread, as Go's Sscanf does.
const ScanEnd = "thalweg_scan_end"

// scanAtEnd ends the pattern of a format that has to be all there is, but for blanks.
const scanAtEnd = `[\s\p{Z}]*$`

func scanEndBy(body string) string {
	return "CREATE OR REPLACE TEMP MACRO " + ScanEnd + "(pattern) AS " + body
}

// ScanInPart defines ScanEnd as Macros does.
func ScanInPart() string { return scanEndBy("pattern") }

// ScanWhole defines ScanEnd so that a text with more than its format is no value: who
// reads with it first knows, if nothing fails, that nothing was left over.
func ScanWhole() string { return scanEndBy("pattern || " + sqltext.String(scanAtEnd)) }

// numberPattern is that of a scan format; its group is the number.
func numberPattern(t Type, format string) (string, *Error) {
	f, err := parseScanFormat(t, format)
	if err != nil {
		return "", err
	}
	value := `[+-]?[0-9]*`
	if t != Int {
		value = `[nN][aA][nN]|[+-]?[iI][nN][fF]|[+-]?0[xX][0-9a-fA-F_]*\.?[0-9a-fA-F_]*(?:[pP][+-]?[0-9_]*)?|[+-]?[0-9_]*\.?[0-9_]*(?:[eEpP][+-]?[0-9_]*)?`
	}
	switch {
	case f.width == 0:
	case t != Int:
		return "", span{0, len(format)}.errorf("a width is not supported when reading %s", t.phrase())
	default: // a sign counts
		value = fmt.Sprintf(`[+-][0-9]{0,%d}|[0-9]{0,%d}`, f.width-1, f.width)
	}
	return `^` + f.before + `\s*(` + value + `)` + f.after, nil
}

// scanNumber follows Go's Sscanf: blanks before the value are skipped, the
// verb takes as many characters as could belong to a number, what follows the
// format is ignored, or with exact is an error.
func (r *renderer) scanNumber(t Type, n *node, format string, exact *Exactly) (string, error) {
	pattern, err := numberPattern(t, format)
	if err != nil {
		return "", err
	}
	if exact != nil {
		text := "regexp_extract(" + r.sql(n) + ", " + sqltext.String(pattern+scanAtEnd) + ", 1)"
		switch t {
		case Int:
			return r.bind(text, false, func(v string) string { return "thalweg_scan_int(" + v + ")" }), nil
		case Float:
			return r.bind(text, false, exact.float), nil
		}
		return r.bind(text, false, func(v string) string {
			return r.exactScan(t, &node{op: opRaw, raw: v, typ: String, text: v}, exact.Round)
		}), nil
	}
	scanned := r.bind("regexp_extract("+r.sql(n)+", "+ScanEnd+"("+sqltext.String(pattern)+"), 1)", false,
		func(v string) string {
			if t == Int {
				return "thalweg_scan_int(" + v + ")"
			}
			return "coalesce(thalweg_scan_float(" + v + "), CASE WHEN contains(" + v + ", 'p') THEN " + goFloat + "(" +
				v + ") END)"
		})
	if t == Decimal {
		scanned = r.bind(scanned, false, func(v string) string {
			return "CASE WHEN isfinite(" + v + ") THEN thalweg_float_decimal2(" + v + ") END"
		})
	}
	return scanned, nil
}

// NumberFormat takes texts apart as a scan format reads them.
type NumberFormat struct{ pattern *regexp.Regexp }

// ParseNumberFormat gives nil for types and formats that are none of numbers.
func ParseNumberFormat(t Type, format string) *NumberFormat {
	if format == "" || t != Int && t != Float && t != Decimal {
		return nil
	}
	pattern, err := numberPattern(t, format)
	if err != nil {
		return nil
	}
	return &NumberFormat{regexp.MustCompile(pattern)}
}

// Read gives the number in a text, and what the format leaves over behind it, without
// blanks. ok is false of a text that the format does not read at all.
func (f *NumberFormat) Read(text string) (number, rest string, ok bool) {
	if f == nil {
		return "", "", false
	}
	at := f.pattern.FindStringSubmatchIndex(text)
	if at == nil || at[2] == at[3] {
		return "", "", false
	}
	return text[at[2]:at[3]], strings.TrimSpace(text[at[1]:]), true
}

// DefaultSQL renders default_value or col_default_value text (or the zero
// value when it is blank) as SQL of type t. csvFormat is the column's format
// when the text comes from one. The error is an *Error with offsets in text.
func DefaultSQL(t Type, text, csvFormat string) (string, error) {
	whole := span{0, len(text)}
	trimmed := strings.TrimSpace(text)
	if t == String {
		return sqltext.String(text), nil
	}
	if t.Nested() {
		return "", whole.errorf("a list or struct has no default").
			hint("it is NULL where there is none: make the column nullable")
	}
	value, err := defaultValue(t, trimmed, csvFormat)
	if err != nil {
		return "", whole.errorf("%q is not %s", trimmed, t.phrase()).hint("%s", err.Error())
	}
	n := &node{typ: t}
	n.constant(value)
	if t.exact() {
		v := value.(number).trim()
		digits, scale, _ := t.Exact()
		if v.scale > scale || v.digits(scale) > digits {
			return "", whole.errorf("%q is not a %s", trimmed, t)
		}
		return decimalLiteral(v, exactDecimal(t)), nil
	}
	if t == Decimal {
		v := value.(number).round(columnScale)
		if len(v.at(columnScale).Text(10)) > narrowDigits {
			return "", whole.errorf("%q has more than %d digits before the point", trimmed, narrowDigits-columnScale)
		}
		return decimalLiteral(v, decimalType{scale: columnScale}), nil
	}
	return constantSQL(n), nil
}

// DefaultIsExact reports whether a column of the type holds a default value as it is
// written: DefaultSQL rounds decimal2 and float, and cuts a datetime. What is no value
// of the type is for DefaultSQL to refuse.
func DefaultIsExact(t Type, text, csvFormat string) bool {
	text = strings.TrimSpace(text)
	if text == "" {
		return true
	}
	value, err := defaultValue(t, text, csvFormat)
	if err != nil {
		return true
	}
	switch t {
	case Decimal:
		return value.(number).trim().scale <= columnScale
	case Float:
		written, plain := parseNumber(text)
		if !plain {
			return true // in a format of its own, or too long to be looked at
		}
		f := value.(float64)
		kept, ok := numberOf(f)
		return written.mantissa.Sign() == 0 || f != 0 &&
			(written.trim().scale > 0 || !ok || written.String() == kept.String())
	case DateTime:
		if csvFormat == "" {
			csvFormat = defaultTimeLayout
		}
		v, err := time.ParseInLocation(csvFormat, text, time.UTC)
		return err != nil || v.Equal(v.Truncate(time.Millisecond))
	}
	return true
}

func defaultValue(t Type, text, format string) (any, error) {
	zero := text == ""
	if t.exact() {
		t = Decimal
	}
	switch t {
	case Date:
		return defaultDate(text, format)
	case Instant:
		return defaultInstant(text, format)
	case Int:
		if zero {
			return int64(0), nil
		}
		return defaultInt(text, format)
	case Float:
		if zero {
			return float64(0), nil
		}
		return defaultFloat(text, format)
	case Decimal:
		if zero {
			text = "0"
		}
		if v, ok := parseNumber(text); ok {
			return v, nil
		}
		f, err := defaultFloat(text, format)
		if err != nil {
			return nil, err
		}
		if v, ok := numberOf(f); ok {
			return v, nil
		}
		return nil, fmt.Errorf("it needs a plain number")
	case Bool:
		if zero {
			return false, nil
		}
		b, err := strconv.ParseBool(text)
		if err != nil {
			return nil, fmt.Errorf("it is one of 1 t T TRUE true True 0 f F FALSE false False")
		}
		return b, nil
	case DateTime:
		if zero {
			return time.Time{}, nil
		}
		if format == "" {
			format = defaultTimeLayout
		}
		v, err := time.ParseInLocation(format, text, time.UTC)
		if err != nil {
			return nil, fmt.Errorf("the layout is %s", format)
		}
		return v.Truncate(time.Millisecond), nil
	}
	return nil, fmt.Errorf("there is no text of that type")
}

func defaultDate(text, format string) (any, error) {
	if text == "" {
		return dayOf(time.Time{}), nil
	}
	for _, layout := range []string{time.DateOnly, format} {
		if v, err := time.ParseInLocation(layout, text, time.UTC); layout != "" && err == nil && inYears(v) {
			return dayOf(v), nil
		}
	}
	return nil, fmt.Errorf("write it like 2024-12-31")
}

func defaultInstant(text, format string) (any, error) {
	if text == "" {
		return time.Time{}, nil
	}
	for _, layout := range []string{time.RFC3339Nano, format} {
		if v, ok := parseInstant(layout, text, time.UTC); layout != "" && ok && Zoned(layout) {
			return v, nil
		}
	}
	return nil, fmt.Errorf("write it like 2024-12-31T23:59:59.123456+01:00")
}

func defaultInt(text, format string) (any, error) {
	v, err := strconv.ParseInt(text, 10, 64)
	if err != nil && format != "" {
		_, err = fmt.Sscanf(text, format, &v)
	}
	if err != nil {
		return nil, fmt.Errorf("it needs a base-10 integer")
	}
	return v, nil
}

func defaultFloat(text, format string) (float64, error) {
	v, err := strconv.ParseFloat(text, 64)
	if err != nil && format != "" {
		_, err = fmt.Sscanf(text, format, &v)
	}
	if err != nil {
		return 0, fmt.Errorf("it needs a number")
	}
	return v, nil
}
