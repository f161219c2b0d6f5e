package expr

import (
	"fmt"
	"slices"

	"thalweg/internal/sqltext"
)

// Macros are the CREATE MACRO statements that a DuckDB connection must have
// run before any compiled SQL; each uses those before it only. They hold what
// is too long to repeat in each expression. A macro's arguments are copied into
// its body, so the renderer passes names or cheap expressions only. Structs
// that lambdas take apart have names that no field can have: in t.part a column
// t would be found first. textBytes is the limit of a text that functions make:
// see TextBytes.
func Macros(textBytes int64) []string {
	return slices.Concat(textMacros(textBytes), orderMacros(), numberMacros(), scanMacros(), keyMacros())
}

// orderMacros are those of values with positions.
func orderMacros() []string {
	return []string{
		// Values by their positions, both gathered in the same sequence.
		`CREATE OR REPLACE TEMP MACRO thalweg_in_order(vals, positions) AS
			CASE WHEN positions = list_sort(positions) THEN vals ELSE list_select(vals, list_grade_up(positions)) END`,
	}
}

// numberMacros convert, multiply, divide and print numbers.
func numberMacros() []string {
	return []string{
		// Nearest float64 of a decimal with at most two digits after the point: one correctly rounded
		// division up to 2^53, else through text (DuckDB adds two rounded parts there).
		`CREATE OR REPLACE TEMP MACRO thalweg_decimal_float(x) AS
			CASE WHEN abs(x) < 90000000000000 THEN CAST(x AS DOUBLE) ELSE CAST(CAST(x AS VARCHAR) AS DOUBLE) END`,
		// The same of a decimal of a file, whose type DuckDB knows when it binds the statement.
		`CREATE OR REPLACE TEMP MACRO thalweg_open_float(x) AS
			CASE WHEN typeof(x) = 'DECIMAL(18,2)' THEN thalweg_decimal_float(x) ELSE CAST(CAST(x AS VARCHAR) AS DOUBLE) END`,
		// Products of decimals of files: as the operators have them, and rounded to two digits.
		openProduct("thalweg_open_multiply", decimalType{wide: true, scale: quotientScale}),
		openProduct("thalweg_open_multiply2", decimalType{scale: columnScale}),
		// A number's text without its exponent. DuckDB's cast of such text to DECIMAL rounds wrongly
		// (5e-324 becomes 1e-16), so no text with an exponent reaches it.
		`CREATE OR REPLACE TEMP MACRO thalweg_without_exponent(x) AS
			CASE WHEN NOT contains(x, 'e') AND NOT contains(x, 'E') THEN x ELSE
				list_transform([regexp_extract(x, '^([+-]?)([0-9]*)\.?([0-9]*)[eE]([+-]?[0-9]+)$', ['sign', 'whole', 'part', 'exponent'])], lambda "thalweg:t":
					list_transform([{'digits': "thalweg:t".whole || "thalweg:t".part, 'point': strlen("thalweg:t".whole) + greatest(least(TRY_CAST("thalweg:t".exponent AS BIGINT), 60), -400)}], lambda "thalweg:p":
						CASE WHEN "thalweg:t".exponent = '' OR "thalweg:p".digits = '' THEN NULL ELSE "thalweg:t".sign END || CASE WHEN "thalweg:p".point <= 0 THEN '0.' || repeat('0', -"thalweg:p".point) || "thalweg:p".digits
							WHEN "thalweg:p".point >= strlen("thalweg:p".digits) THEN "thalweg:p".digits || repeat('0', "thalweg:p".point - strlen("thalweg:p".digits))
							ELSE left("thalweg:p".digits, "thalweg:p".point) || '.' || substr("thalweg:p".digits, "thalweg:p".point + 1) END)[1])[1] END`,
		// decimal2(float): the shortest decimal of the float. Up to 15 digits a decimal and its float
		// determine each other, so the cheap cast is checked by casting back; the rest goes through
		// text (2.2 µs). Not finite or too large: DuckDB's conversion error.
		`CREATE OR REPLACE TEMP MACRO thalweg_float_decimal(x) AS
			CASE WHEN abs(x) < 1e9 AND CAST(TRY_CAST(x AS DECIMAL(18,6)) AS DOUBLE) = x
				THEN CAST(CAST(x AS DECIMAL(18,6)) AS DECIMAL(38,16))
				ELSE CAST(thalweg_without_exponent(CAST(x AS VARCHAR)) AS DECIMAL(38,16)) END`,
		// The same when the result is rounded to two digits anyway: the cheap cast is right unless the
		// third digit is too near to 5.
		`CREATE OR REPLACE TEMP MACRO thalweg_float_decimal2(x) AS
			CASE WHEN abs(x) < 1e9 AND abs(abs(x) * 100 - floor(abs(x) * 100) - 0.5::DOUBLE) > 1e-4
				THEN TRY_CAST(x AS DECIMAL(18,2))
				ELSE CAST(thalweg_without_exponent(CAST(x AS VARCHAR)) AS DECIMAL(18,2)) END`,
		// Product of two DECIMAL(18,2), rounded to two digits: in 64 bits when both are below ten millions.
		`CREATE OR REPLACE TEMP MACRO thalweg_multiply(x, y) AS
			CASE WHEN x BETWEEN -9999999.99 AND 9999999.99 AND y BETWEEN -9999999.99 AND 9999999.99
				THEN CAST(x * y AS DECIMAL(18,2))
				ELSE CAST(CAST(x AS DECIMAL(38,2)) * CAST(y AS DECIMAL(38,2)) AS DECIMAL(18,2)) END`,
		// Quotient of two HUGEINTs, y not zero: 16 digits after the point, half away from zero, by long
		// division in two steps of 8 digits so that nothing outgrows 38 digits. About 3 µs.
		`CREATE OR REPLACE TEMP MACRO thalweg_quotient(x, y) AS
			list_transform([(x % y) * 100000000], lambda a: list_transform([(a % y) * 100000000], lambda b:
				CAST(((x // y) * 100000000 + a // y) * 100000000 + b // y
					+ CASE WHEN abs(b % y) >= abs(y) - abs(b % y) THEN sign(x) * sign(y) ELSE 0 END AS DECIMAL(38,0))
					* CAST('0.0000000000000001' AS DECIMAL(17,16)))[1])[1]`,
		fineQuotient(),
		// Quotient of two DECIMAL(18,2), y not zero. Below 10^11 the two-step rounding (16 digits, then
		// 2) cannot differ from one step: that needs a divisor of more than 10^14 hundredths.
		`CREATE OR REPLACE TEMP MACRO thalweg_divide2(x, y) AS
			CASE WHEN x BETWEEN -100000000000 AND 100000000000 AND y BETWEEN -100000000000 AND 100000000000
				THEN CAST((CAST(x * 100 AS BIGINT) * 200 + CAST(y * 100 AS BIGINT) * (CASE WHEN (x < 0) = (y < 0) THEN 1 ELSE -1 END))
						// (CAST(y * 100 AS BIGINT) * 2) AS DECIMAL(18,0)) * 0.01
				ELSE CAST(thalweg_quotient(CAST(CAST(x AS DECIMAL(38,2)) * 100 AS HUGEINT), CAST(CAST(y AS DECIMAL(38,2)) * 100 AS HUGEINT)) AS DECIMAL(18,2)) END`,
		// Go's %v of a float, from DuckDB's shortest digits: the same up to 10^6 (without ".0"), above
		// that Go writes an exponent where DuckDB does from 10^16 on. 230 ns, 180 of them DuckDB's own.
		`CREATE OR REPLACE TEMP MACRO thalweg_float_exponent(sign, digits) AS
			list_transform([rtrim(replace(digits, '.', ''), '0')], lambda m: sign || m[1]
				|| CASE WHEN strlen(m) > 1 THEN '.' || m[2:] ELSE '' END
				|| 'e+' || lpad(CAST(strpos(digits, '.') - 2 AS VARCHAR), 2, '0'))[1]`,
		`CREATE OR REPLACE TEMP MACRO thalweg_float_text(x) AS
			CASE WHEN abs(x) < 1e6 AND x <> trunc(x) THEN CAST(x AS VARCHAR)
				WHEN abs(x) < 1e6 AND x <> 0 THEN CAST(CAST(x AS INTEGER) AS VARCHAR)
				WHEN x = 0 THEN replace(CAST(x AS VARCHAR), '.0', '')
				WHEN isnan(x) THEN 'NaN'
				WHEN isinf(x) THEN CASE WHEN x > 0 THEN '+Inf' ELSE '-Inf' END
				WHEN abs(x) >= 1e16 THEN CAST(x AS VARCHAR)
				WHEN x IS NOT NULL THEN thalweg_float_exponent(CASE WHEN x < 0 THEN '-' ELSE '' END, CAST(abs(x) AS VARCHAR)) END`,
		// Sum over count, rounded down; 0 over no rows.
		`CREATE OR REPLACE TEMP MACRO thalweg_average(s, n) AS
			CASE WHEN n = 0 THEN 0 WHEN s < 0 AND s % n <> 0 THEN s // n - 1 ELSE s // n END`,
	}
}

// scanMacros read values of text.
func scanMacros() []string {
	return []string{
		// Strict base-10 integer: text that prints back the same is one (57 ns, the bare cast 27); for
		// 007, +5 and -0 a pattern keeps out the decimals, exponents, blanks, underscores and hexadecimal
		// that DuckDB's cast takes.
		`CREATE OR REPLACE TEMP MACRO thalweg_scan_int(x) AS
			CASE WHEN CAST(TRY_CAST(x AS BIGINT) AS VARCHAR) = x THEN TRY_CAST(x AS BIGINT)
				WHEN regexp_full_match(x, '[+-]?[0-9]+') THEN TRY_CAST(x AS BIGINT) END`,
		// The start and end of text that a number may have: keeps out the blanks, the second sign, the
		// underscores and the names (inf, nan) that DuckDB's casts take. 50 ns.
		`CREATE OR REPLACE TEMP MACRO thalweg_plain_number(x) AS
			x >= '+' AND x < ':' AND NOT contains(x, '_') AND NOT starts_with(x, '+-') AND NOT (suffix(x, ' ') OR suffix(x, chr(9)) OR suffix(x, chr(10)) OR suffix(x, chr(11)) OR suffix(x, chr(12)) OR suffix(x, chr(13)))`,
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
		// Exact decimal, rounded half away from zero to two digits.
		`CREATE OR REPLACE TEMP MACRO thalweg_scan_decimal(x) AS
			CASE WHEN thalweg_plain_number(x) THEN TRY_CAST(thalweg_without_exponent(x) AS DECIMAL(18,2)) END`,
		`CREATE OR REPLACE TEMP MACRO thalweg_scan_decimal16(x) AS
			CASE WHEN thalweg_plain_number(x) THEN TRY_CAST(thalweg_without_exponent(x) AS DECIMAL(38,16)) END`,
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

// openProduct makes a macro for the product of decimals with up to 22 digits
// after the point, rounded once to t. Few values have so many digits: the fewer
// they are, the more room there is before the point for the product.
func openProduct(name string, t decimalType) string {
	body := "error(" + sqltext.String(RuntimeMarker+"a product of decimals of more than 38 digits") + ")"
	for _, scales := range [][2]int{{19, 19}, {14, 14}, {8, 18}, {18, 8}, {8, 14}, {14, 8}, {4, 18}, {18, 4}, {2, 20}, {20, 2}, {8, 8}} {
		exact := func(i int) string {
			return fmt.Sprintf("DECIMAL(%d,%d)", narrowDigits-columnScale+scales[i], scales[i])
		}
		body = fmt.Sprintf("CASE WHEN TRY_CAST(x AS %[1]s) = x AND TRY_CAST(y AS %[2]s) = y THEN CAST(CAST(x AS %[1]s) * CAST(y AS %[2]s) AS %[3]s) ELSE %[4]s END", exact(0), exact(1), t.sql(), body)
	}
	return "CREATE OR REPLACE TEMP MACRO " + name + "(x, y) AS CASE WHEN x IS NOT NULL AND y IS NOT NULL THEN " + body + " END"
}

// fineQuotient is thalweg_quotient in steps of 2 digits, for operands with
// more than 16 digits after the point: it leaves room for divisors up to
// 10^36, where steps of 8 digits end at 10^30.
func fineQuotient() string {
	const steps = quotientScale / 2
	step := func(n int) string { return sqltext.Ident(fmt.Sprintf("thalweg:q%d", n)) }
	last := step(steps)
	body := fmt.Sprintf("CAST(%[1]s.q + CASE WHEN abs(%[1]s.r) >= abs(y) - abs(%[1]s.r) THEN sign(x) * sign(y) ELSE 0 END AS DECIMAL(38,0))"+
		" * CAST('0.0000000000000001' AS DECIMAL(17,16))", last)
	for i := steps; i > 0; i-- {
		body = fmt.Sprintf("list_transform([{'q': %[1]s.q * 100 + (%[1]s.r * 100) // y, 'r': (%[1]s.r * 100) %% y}], lambda %[2]s: %[3]s)[1]", step(i-1), step(i), body)
	}
	return "CREATE OR REPLACE TEMP MACRO thalweg_quotient_fine(x, y) AS list_transform([{'q': x // y, 'r': x % y}], lambda " + step(0) + ": " + body + ")[1]"
}
