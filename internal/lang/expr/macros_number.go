package expr

import (
	"fmt"

	"thalweg/internal/base/sqltext"
)

// convertMacros convert numbers.
func convertMacros() []string {
	return []string{
		// Nearest float64 of a decimal with at most two digits after the point: one correctly rounded
		// division up to 2^53, else through text (DuckDB adds two rounded parts there).
		`CREATE OR REPLACE TEMP MACRO thalweg_decimal_float(x) AS
			CASE WHEN abs(x) < 90000000000000 THEN CAST(x AS DOUBLE) ELSE CAST(CAST(x AS VARCHAR) AS DOUBLE) END`,
		// Nearest float64 of an int of any size.
		`CREATE OR REPLACE TEMP MACRO thalweg_int_float(x) AS
			CASE WHEN x BETWEEN -9223372036854775807 AND 9223372036854775807 THEN CAST(CAST(x AS BIGINT) AS DOUBLE)
				ELSE CAST(CAST(x AS VARCHAR) AS DOUBLE) END`,
		// The same of a decimal of a file, whose type DuckDB knows when it binds the statement.
		`CREATE OR REPLACE TEMP MACRO thalweg_open_float(x) AS
			CASE WHEN typeof(x) = 'DECIMAL(18,2)' THEN thalweg_decimal_float(x) ELSE CAST(CAST(x AS VARCHAR) AS DOUBLE) END`,
		// A number's text without its exponent. DuckDB's cast of such text to DECIMAL rounds wrongly
		// (5e-324 becomes 1e-16), so no text with an exponent reaches it.
		`CREATE OR REPLACE TEMP MACRO thalweg_without_exponent(x) AS
			CASE WHEN NOT contains(x, 'e') AND NOT contains(x, 'E') THEN x ELSE
				list_transform([regexp_extract(x, '^([+-]?)([0-9]*)\.?([0-9]*)[eE]([+-]?[0-9]+)$', ['sign', 'whole', 'part', 'exponent'])],
					lambda "thalweg:t":
					list_transform([{'digits': "thalweg:t".whole || "thalweg:t".part,
							'point': strlen("thalweg:t".whole) + greatest(least(TRY_CAST("thalweg:t".exponent AS BIGINT), 60), -400)}],
						lambda "thalweg:p":
						CASE WHEN "thalweg:t".exponent = '' OR "thalweg:p".digits = '' THEN NULL ELSE "thalweg:t".sign END
							|| CASE WHEN "thalweg:p".point <= 0 THEN '0.' || repeat('0', -"thalweg:p".point) || "thalweg:p".digits
							WHEN "thalweg:p".point >= strlen("thalweg:p".digits)
								THEN "thalweg:p".digits || repeat('0', "thalweg:p".point - strlen("thalweg:p".digits))
							ELSE left("thalweg:p".digits, "thalweg:p".point) || '.' || substr("thalweg:p".digits, "thalweg:p".point + 1) END)[1])[1] END`,
		// The shortest decimal of a float, as text without an exponent; text that no number has if it is not finite.
		`CREATE OR REPLACE TEMP MACRO thalweg_float_plain(x) AS
			CASE WHEN isfinite(x) THEN thalweg_without_exponent(CAST(x AS VARCHAR)) WHEN x IS NOT NULL THEN CAST(x AS VARCHAR) END`,
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
	}
}

// decimalMacros multiply and divide decimals.
func decimalMacros() []string {
	return []string{
		// Product of two DECIMAL(18,2), rounded to two digits: in 64 bits when both are below ten millions.
		`CREATE OR REPLACE TEMP MACRO thalweg_multiply(x, y) AS
			CASE WHEN x BETWEEN -9999999.99 AND 9999999.99 AND y BETWEEN -9999999.99 AND 9999999.99
				THEN CAST(x * y AS DECIMAL(18,2))
				ELSE CAST(CAST(x AS DECIMAL(38,2)) * CAST(y AS DECIMAL(38,2)) AS DECIMAL(18,2)) END`,
		exactProduct(),
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
				ELSE CAST(thalweg_quotient(CAST(CAST(x AS DECIMAL(38,2)) * 100 AS HUGEINT),
					CAST(CAST(y AS DECIMAL(38,2)) * 100 AS HUGEINT)) AS DECIMAL(18,2)) END`,
		// Sum over count, rounded down; 0 over no rows.
		`CREATE OR REPLACE TEMP MACRO thalweg_average(s, n) AS
			CASE WHEN n = 0 THEN 0 WHEN s < 0 AND s % n <> 0 THEN s // n - 1 ELSE s // n END`,
	}
}

// floatTextMacros print floats.
func floatTextMacros() []string {
	return []string{
		// 0 for -0 and one NaN, of any type of floats: 3 ns.
		`CREATE OR REPLACE TEMP MACRO thalweg_unsigned(x) AS CASE WHEN isnan(x) THEN 'nan' ELSE x + 0 END`,
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
	}
}

// exactProduct is the product of two HUGEINTs of at most 38 digits without its
// last k digits, k > 0, rounded half away from zero. Of the halves of 19 digits
// every product fits 38, with what is carried. Above 38 digits there are the
// digits h, below them l: half away from zero is decided by one digit.
func exactProduct() string {
	const half = "CAST('10000000000000000000' AS HUGEINT)"
	power := func(k string) string { return "CAST('1' || repeat('0', " + k + ") AS HUGEINT)" }
	five := func(k string) string { return "CAST('5' || repeat('0', " + k + ") AS HUGEINT)" }
	p, q, s, t := sqltext.Ident("thalweg:p"), sqltext.Ident("thalweg:q"), sqltext.Ident("thalweg:s"),
		sqltext.Ident("thalweg:t")
	body := fmt.Sprintf("CASE WHEN k > 38 THEN (%[1]s.h + %[2]s.sign * %[3]s) // %[4]s"+
		" WHEN abs(%[1]s.h) >= %[5]s - 1 THEN %[6]s"+
		" ELSE %[1]s.h * %[7]s + (%[1]s.l + %[2]s.sign * %[8]s) // %[5]s END",
		t, p, five("k - 39"), power("k - 38"), power("least(k, 38)"),
		Raised{Message: "a product of decimals of more than 38 digits"}.SQL(), power("38 - k"), five("k - 1"))
	for _, level := range []struct{ name, value string }{
		{t, fmt.Sprintf("{'h': %[1]s.a * %[1]s.c + %[2]s.carry // %[4]s + %[3]s.carry // %[4]s, "+
			"'l': (%[3]s.carry %% %[4]s) * %[4]s + %[2]s.last}", p, q, s, half)},
		{s, fmt.Sprintf("{'carry': %[1]s.b * %[1]s.c + %[2]s.carry %% %[3]s}", p, q, half)},
		{q, fmt.Sprintf("{'carry': %[1]s.a * %[1]s.d + (%[1]s.b * %[1]s.d) // %[2]s, 'last': (%[1]s.b * "+
			"%[1]s.d) %% %[2]s}", p, half)},
		{p, fmt.Sprintf("{'a': x // %[1]s, 'b': x %% %[1]s, 'c': y // %[1]s, 'd': y %% %[1]s, 'sign': "+
			"sign(x) * sign(y)}", half)},
	} {
		body = "list_transform([" + level.value + "], lambda " + level.name + ": " + body + ")[1]"
	}
	return "CREATE OR REPLACE TEMP MACRO thalweg_product(x, y, k) AS " + body
}

// fineQuotient is thalweg_quotient in steps of 2 digits, for operands with
// more than 16 digits after the point: it leaves room for divisors up to
// 10^36, where steps of 8 digits end at 10^30.
func fineQuotient() string {
	const steps = quotientScale / 2
	step := func(n int) string { return sqltext.Ident(fmt.Sprintf("thalweg:q%d", n)) }
	last := step(steps)
	body := fmt.Sprintf("CAST(%[1]s.q + CASE WHEN abs(%[1]s.r) >= abs(y) - abs(%[1]s.r) THEN sign(x) * sign(y) ELSE 0 "+
		"END AS DECIMAL(38,0))"+
		" * CAST('0.0000000000000001' AS DECIMAL(17,16))", last)
	for i := steps; i > 0; i-- {
		body = fmt.Sprintf("list_transform([{'q': %[1]s.q * 100 + (%[1]s.r * 100) // y, 'r': (%[1]s.r * 100) %% y}], "+
			"lambda %[2]s: %[3]s)[1]",
			step(i-1), step(i), body)
	}
	return "CREATE OR REPLACE TEMP MACRO thalweg_quotient_fine(x, y) AS" +
		" list_transform([{'q': x // y, 'r': x % y}], lambda " + step(0) + ": " + body + ")[1]"
}
