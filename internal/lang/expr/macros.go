package expr

import (
	"slices"

	"thalweg/internal/base/sqltext"
)

// Macros are the CREATE MACRO statements that a DuckDB connection must have
// run before any compiled SQL; each uses those before it only. They hold what
// is too long to repeat in each expression. A macro's arguments are copied into
// its body, so the renderer passes names or cheap expressions only. Structs
// that lambdas take apart have names that no field can have: in t.part a column
// t would be found first. textBytes is the limit of a text that functions make:
// see TextBytes.
func Macros(textBytes int64) []string {
	return slices.Concat(textMacros(textBytes), orderMacros(), convertMacros(), decimalMacros(), floatTextMacros(),
		scanMacros(), keyMacros())
}

// orderMacros are those of values with positions.
func orderMacros() []string {
	return []string{
		// Values by their positions, both gathered in the same sequence.
		`CREATE OR REPLACE TEMP MACRO thalweg_in_order(vals, positions) AS
			CASE WHEN positions = list_sort(positions) THEN vals ELSE list_select(vals, list_grade_up(positions)) END`,
		joinedBy(
			`CASE WHEN coalesce((thalweg_in_order(list(x), list(o)))[1], '') <> '' THEN array_to_string(thalweg_in_order(list(x), list(o)), sep)
			ELSE coalesce(array_to_string(list_slice(thalweg_in_order(list(x), list(o)),
				list_position(list_transform(thalweg_in_order(list(x), list(o)), lambda s: s <> ''), true), count(*)), sep), '') END`),
	}
}

// Joined is the macro that joins the texts x of a group with sep in the order of
// o, which has no equals. No separator follows text that is still empty.
const Joined = "thalweg_joined"

// joinedBy defines Joined.
func joinedBy(body string) string {
	return "CREATE OR REPLACE TEMP MACRO " + Joined + "(x, o, sep) AS " + body
}

// JoinedAnyhow defines Joined by gathering texts and positions in lists, which
// need not come in order, as Macros does.
func JoinedAnyhow() string { return orderMacros()[1] }

// NotAsCame is in the message of the failure of what JoinedAsCame defines.
const NotAsCame = "thalweg: texts that cannot be joined as they come"

// JoinedAsCame defines Joined by joining texts as they come: no list holds them.
// Aggregates of a group meet its rows in the same sequence, so the positions
// gathered beside prove that this is their order; where it is not, it fails. It
// fails too where the first text behind empty ones could be taken for a piece of
// the separators before it: where it begins with a character of theirs. Nothing
// that hides failures may stand around it.
func JoinedAsCame() string {
	const firstText = "first(x) FILTER (WHERE x <> '')"
	return joinedBy(`CASE WHEN list(o) <> list_sort(list(o)) THEN error(` + sqltext.String(NotAsCame) + `)
		WHEN first(x) <> '' THEN string_agg(x, sep)
		WHEN ` + firstText + ` IS NULL THEN ''
		WHEN contains(sep, left(` + firstText + `, 1)) THEN error(` + sqltext.String(NotAsCame) + `)
		ELSE substr(string_agg(x, sep), strpos(string_agg(x, sep), ` + firstText + `)) END`)
}

// scanMacros read values of text.
func scanMacros() []string {
	return []string{
		ScanInPart(),
		// Strict base-10 integer: text that prints back the same is one (57 ns, the bare cast 27); for
		// 007, +5 and -0 a pattern keeps out the decimals, exponents, blanks, underscores and hexadecimal
		// that DuckDB's cast takes.
		`CREATE OR REPLACE TEMP MACRO thalweg_scan_int(x) AS
			CASE WHEN CAST(TRY_CAST(x AS BIGINT) AS VARCHAR) = x THEN TRY_CAST(x AS BIGINT)
				WHEN regexp_full_match(x, '[+-]?[0-9]+') THEN TRY_CAST(x AS BIGINT) END`,
		// The start and end of text that a number may have: keeps out the blanks, the second sign, the
		// underscores and the names (inf, nan) that DuckDB's casts take. 50 ns.
		`CREATE OR REPLACE TEMP MACRO thalweg_plain_number(x) AS
			x >= '+' AND x < ':' AND NOT contains(x, '_') AND NOT starts_with(x, '+-')
			AND NOT (suffix(x, ' ') OR suffix(x, chr(9)) OR suffix(x, chr(10)) OR suffix(x, chr(11))
				OR suffix(x, chr(12)) OR suffix(x, chr(13)))`,
		// Go's ParseFloat; the few hexadecimal ones are read by Go itself.
		`CREATE OR REPLACE TEMP MACRO thalweg_scan_float(x) AS
			CASE WHEN thalweg_plain_number(x) AND isfinite(TRY_CAST(x AS DOUBLE)) THEN TRY_CAST(x AS DOUBLE)
				WHEN regexp_full_match(x, '(?i)nan|[+-]?inf(inity)?') THEN TRY_CAST(ltrim(x, '+') AS DOUBLE)
				WHEN regexp_full_match(x, '(?i)[+-]?0x[0-9a-f_.]+p[+-]?[0-9_]+') THEN thalweg_go_float(x)
				WHEN regexp_full_match(x, '[+-]?([0-9]+(_[0-9]+)*(\.([0-9]+(_[0-9]+)*)?)?|\.[0-9]+(_[0-9]+)*)([eE][+-]?[0-9]+(_[0-9]+)*)?')
					AND isfinite(TRY_CAST(replace(x, '_', '') AS DOUBLE)) THEN TRY_CAST(replace(x, '_', '') AS DOUBLE) END`,
		// The same without underscores.
		`CREATE OR REPLACE TEMP MACRO thalweg_scan_plain_float(x) AS
			CASE WHEN thalweg_plain_number(x) AND isfinite(TRY_CAST(x AS DOUBLE)) THEN TRY_CAST(x AS DOUBLE)
				WHEN NOT contains(x, '_') THEN thalweg_scan_float(x) END`,
		// The same, but no whole number whose digits a float does not keep (2^53 + 1), and no zero of a number that
		// is none. The digits of a float are those of its value, or the shortest that read back, with zeros behind
		// them. What is neither zero nor as large as 2^53 comes first: looking at all digits takes 270 ns more,
		// and each use of a macro in another one makes the plan of every batch longer.
		`CREATE OR REPLACE TEMP MACRO thalweg_scan_exact_float(x) AS
			CASE WHEN thalweg_plain_number(x) AND abs(TRY_CAST(x AS DOUBLE)) BETWEEN 1e-300 AND 9007199254740991 THEN TRY_CAST(x AS DOUBLE)
				WHEN x = '0' OR x = '0.0' OR x = '0.00' THEN CAST(0 AS DOUBLE)
				ELSE list_transform([thalweg_scan_plain_float(x)], lambda v:
					CASE WHEN v = 0 THEN CASE WHEN NOT regexp_matches(x, '^[+-]?[0.]*[1-9]') THEN v END
						WHEN strlen(x) < 16 OR NOT regexp_full_match(x, '[+-]?[0-9]{16,}(\.0*)?') THEN v
						WHEN ltrim(regexp_extract(x, '[0-9]+'), '0') IN (printf('%.0f', abs(v)),
							regexp_extract(thalweg_float_plain(abs(v)), '^[0-9]+')) THEN v END)[1] END`,
		// Exact decimal, rounded half away from zero to two digits.
		`CREATE OR REPLACE TEMP MACRO thalweg_scan_decimal(x) AS
			CASE WHEN thalweg_plain_number(x) THEN TRY_CAST(thalweg_without_exponent(x) AS DECIMAL(18,2)) END`,
		`CREATE OR REPLACE TEMP MACRO thalweg_scan_decimal16(x) AS
			CASE WHEN thalweg_plain_number(x) THEN TRY_CAST(thalweg_without_exponent(x) AS DECIMAL(38,16)) END`,
		// Digits behind the point of a number's text without exponent, but for zeros at its end.
		`CREATE OR REPLACE TEMP MACRO thalweg_fraction_digits(x) AS
			CASE WHEN contains(x, '.') THEN strlen(rtrim(x, '0')) - strpos(x, '.') ELSE 0 END`,
		`CREATE OR REPLACE TEMP MACRO thalweg_scan_date(x) AS
			CASE WHEN x >= '0001-01-01' AND regexp_full_match(x, '[0-9]{4}-[0-9]{2}-[0-9]{2}') THEN TRY_CAST(x AS DATE) END`,
	}
}

// keyMacros make the components of sort keys.
func keyMacros() []string {
	return []string{
		// The first n bytes of s, which is longer. A character cut in two becomes the smallest one that
		// starts with the bytes kept, so that keys compare as their bytes would. The result is then
		// longer than n bytes, so no text of at most n bytes is equal to it by accident.
		`CREATE OR REPLACE TEMP MACRO thalweg_inside(s, i) AS hex(encode(s)[i:i]) BETWEEN '80' AND 'BF'`,
		`CREATE OR REPLACE TEMP MACRO thalweg_cut(s, n) AS
			list_transform([CASE WHEN NOT thalweg_inside(s, n + 1) THEN n WHEN NOT thalweg_inside(s, n) THEN n - 1
					WHEN NOT thalweg_inside(s, n - 1) THEN n - 2 ELSE n - 3 END], lambda k:
				list_transform([decode(encode(s)[1:k])], lambda p:
					CASE WHEN k = n THEN p ELSE
						list_transform([substr(s, length(p) + 1, 1)], lambda c:
							p || chr(greatest((unicode(c) >> (6 * (strlen(c) - (n - k)))::INTEGER) << (6 * (strlen(c) - (n - k)))::INTEGER,
								CASE strlen(c) WHEN 3 THEN 2048 WHEN 4 THEN 65536 ELSE 128 END)::INTEGER))[1]
					END)[1])[1]`,
		// A string component of a sort key: no diacritics, n bytes, no blanks at the end.
		`CREATE OR REPLACE TEMP MACRO thalweg_key(x, n) AS
			list_transform([nfc_normalize(strip_accents(x))], lambda s:
				rtrim(CASE WHEN strlen(s) <= n THEN s ELSE thalweg_cut(s, n) END, ' '))[1]`,
	}
}
