package expr

import (
	"fmt"
	"strings"
)

// Reference writes the reference page of the language (docs/expressions.md)
// from the table of functions.
func Reference() string {
	var b strings.Builder
	b.WriteString(referenceIntro)
	for _, group := range functionGroups() {
		fmt.Fprintf(&b, "\n### %s\n\n| Function | Result | What it does |\n| --- | --- | --- |\n", group)
		for _, f := range functions() {
			if f.group != group {
				continue
			}
			result := f.resultDoc
			if result == "" {
				result = f.result.String()
			}
			fmt.Fprintf(&b, "| `%s` | %s | %s |\n", f.signature(), result, f.doc)
		}
	}
	b.WriteString(referenceEnd)
	return b.String()
}

const referenceIntro = `# Expressions

<!-- Written by ` + "`go test ./internal/lang/expr -run TestReference -update`" + `; do not edit. -->

An expression computes a value from the fields of a row. The syntax is that of Go expressions: literals, fields written
` + "`alias.field`" + `, operators, parentheses and function calls.

| alias | fields | where |
| --- | --- | --- |
| ` + "`r`" + ` | the file or table that the node reads | everywhere but ` + "`having`" + ` and lookup filters |
| ` + "`l`" + ` | the table that the node looks up | fields of a lookup node, its filter |
| ` + "`p`" + ` | what the node's processor computed | fields of a custom node |
| ` + "`w`" + ` | the row that is to be written | ` + "`having`" + ` |
| ` + "`nrs`, `e`" + ` | run and node status | dependency rules, with constants such as ` + "`wfmodel.RunComplete`" + ` |

## Values

| literal | type |
| --- | --- |
| ` + "`123`" + ` | int (64 bits, -9223372036854775808 included); decimal2 if an int cannot hold it |
| ` + "`1.5`, `1e3`" + ` | float |
| ` + "`\"text\"`" + ` | string as it stands: backslashes are not interpreted, double quotes at both ends are stripped |
| ` + "`` `text` ``" + ` | string as it stands; the form for text with double quotes and for patterns |
| ` + "`true`, `false`" + ` | bool |
| ` + "`null`" + ` | the type of the value beside it |
| ` + "`time.January` … `time.December`, `time.UTC`" + ` | arguments of ` + "`time.Date`" + ` |

Types never change silently: an int field needs an int, so write ` + "`int(len(…))`" + ` and not ` + "`len(…)`" + `.

**NULL** in an operator or function gives NULL, also in the condition of ` + "`iif`" + `. ` + "`&&` and `||`" + ` follow SQL: ` + "`false && NULL`" + ` is
false, ` + "`true || NULL`" + ` is true. ` + "`is_null(x)`" + ` tests for NULL, ` + "`coalesce(x, y)`" +
	` replaces it. ` + "`x == null`" + ` is refused, because it would be NULL
for every x. The literal ` + "`null`" + ` takes its type from the other values in ` + "`iif` and `coalesce`" +
	`, from a conversion (` + "`int(null)`" + `), or from
the field if it is the whole expression. In a condition NULL counts as false. [What can be NULL](scripts.md#null) is known when the script loads.

## Operators

| operator | on | result |
| --- | --- | --- |
| ` + "`+ - *`" + ` | two numbers | float if one of them is a float, else decimal2 if one is, else int |
| ` + "`/`" + ` | two numbers | the same; the quotient of ints is cut toward zero; a division by zero is an error except for floats |
| ` + "`%`" + ` | two ints | remainder with the sign of the left side; a division by zero is an error |
| ` + "`+`" + ` | two strings | one string |
| ` + "`+ -`" + ` | a date and an int; two dates (` + "`-`" + `) | the date so many days later or earlier; the days between the two, an int |
| ` + "`== != < <= > >=`" + ` | two numbers, strings, dates; datetimes and timestamptz, also with each other | bool; bools only ` + "`==` and `!=`" + ` |
| ` + "`&& \\|\\|`" + ` | bools | bool; the right side is not evaluated if the left side decides |
| ` + "`!`, `-`" + ` | a bool, a number | |

**Ranges.** A value that its type cannot hold is an error: the message names the row, its values and the expression.

**Ints.** Operators and comparisons compute ints with up to 38 digits, so that ` + "`r.i + 1 > 0` and `(r.i " +
	"+ r.j) / 2`" + ` are right at the ends of 64 bits, too.
Where such a value is stored, or is the argument of a function other than ` + "`iif`, `coalesce` and the conversions" + `, it must fit 64 bits.

**Decimals with digits.** If one side is a ` + "`decimal(p,s)`" +
	`, the operation is exact. The result of + or - has as many digits after the point as the side with more of them,
a product as many as both sides together, and a quotient always 16, rounded half away from zero. ` +
	`A float literal counts as it is written: ` + "`r.rate * 1.1`" +
	` is exact. Beside any other float the decimal becomes a float.
The type of the result has room for all values, up to 38 digits; a value with more is an error. A product of 38 or more digits after the point is refused:
give one side fewer digits with ` + "`round(x, 4)`" + `. A ` + "`decimal2`" +
	` on the other side has its two digits. ` + "`iif` and `coalesce`" +
	` of decimals have a type that holds all of them.

**Decimal2.** In table fields, file columns and aggregates each operation on ` + "`decimal2`" +
	` and ints alone is rounded to 2 digits, half away from zero. The result may have
16 digits before the point, an int beside the decimal has all of its digits. In ` + "`having`" +
	`, filters, tags and rules + - * are exact, and / gives 16 digits; a product may have at
most 38 digits after the point, and 38 in all.

A decimal2 of a Parquet file has all of the file's digits (up to 22 after the point) in the expressions of its ` + "`file_table`" + `. It is rounded to
2 digits when it is stored. An operation on such decimals uses all digits, and its result is rounded once. ` +
	`Comparisons, ` + "`string`, `float`, `iif` and `coalesce`" + ` use all
digits, too. In ` + "`having`" +
	` a product of such decimals has 16 digits after the point and at most 22 before it, a sum at most 16 before it. A divisor must be
below 10^14, unless both sides have at most two digits after the point in their files.

**Having** uses the values before they are stored: with ` + "`x: r.x`" + ` the value of ` + "`w.x`" + ` is a
datetime with microseconds, a decimal2 of Parquet with all digits; with ` + "`x: r.d + r.e`" + ` it is rounded to 2 digits, because the operation is.

**Strings** are compared byte by byte. Before that, double quotes at both ends are removed, and each backslash followed by a quote is replaced: by a
backslash in the left string, by a quote in the right one. So ` + "`\"abc\"`" + ` with quotes in the data equals ` + "`abc`" + `.

**Floats** follow IEEE: division by zero gives an infinity, and NaN equals nothing.

**Datetimes** are instants with microseconds; a stored datetime has milliseconds, in UTC. Within the node a datetime is printed in the zone of the
text that it was read from (a CSV cell, ` + "`time.Parse`" + `, a result of Python), or that ` + "`time.Date`" + ` gave it.

## Functions

An argument must have exactly the type that is given here. *number* is int, float or decimal2.
`

const referenceEnd = `
An aggregate is the whole expression of a field in a lookup with ` + "`group: true`" +
	`: the field cannot compute anything else with it. [NULL](scripts.md#null) says what aggregates do with
NULLs, and without any value.

## How long texts can be

DuckDB computes an expression for 2,048 rows at a time on each thread, and the texts that it makes meanwhile are beyond its share of ` + "`--memory`" + `.
So ` + "`strings.ReplaceAll`, `fmt.Sprintf`" + ` and chains of ` + "`+`" + ` bound a text before they make it, by the larger of two limits:

- the memory of the batch divided by 8,192 and by its threads: about 20 KB at 512 MB and two cores, 200 KB at 4 GB; at least 16 KiB, at most 16 MiB.
  If an expression has more than four functions that can make texts grow, they share four times that length;
- three times the length of the fields that it is made of. So a row of 5 MB can be worked on.

A longer text fails like a value that cannot be read. Give more ` + "`--memory`" + `, or fewer ` + "`--cores`" +
	`. Not checked are a replacement that is not longer than the text that it
replaces, and a chain with each field at most four times and at most 4 KiB of literals and widths. ` +
	`Apart from this limit, results do not depend on ` + "`--memory`" + `.
A text made of literals only has at most 1 MiB.

There is no such limit for ` + "`string_agg`" + `, for long texts in many rows that do not grow (2,048 times their
length for each function), for results of Python formulas, and in ` + "`sql`" + ` nodes.

## Order expressions and indexes

An order is a list of fields with modifiers: ` + "`field, field(desc), field(ignore_case, 128)`" + ` ([Orders](scripts.md#orders)).
An index is such a list in ` + "`unique(…)`" + ` or ` + "`non_unique(…)`" + ` ([Keys](scripts.md#keys)).

## Differences from Capillaries

| in Thalweg | in Capillaries |
| --- | --- |
| a verb of fmt.Sprintf that does not fit its argument gives a warning at load time | only the text has %!d(…) marks |
| the texts that functions make have [a limit](#how-long-texts-can-be); the name of a zone has at most 96 bytes | any length |
| %T and the marks of verbs call decimals and datetimes string; * takes no width, a width has at most 1,000 characters | names of Go types; any |
| the arguments of time.FixedZone must be literals | they may be computed |
| string_agg and float sums follow the order of the rows | the order changes from run to run |
| time.Now() is UTC and the same for all rows of a batch | local time, row by row |
| decimal2 of a float or of text keeps 16 digits after the point | it keeps all digits |
| times are compared to the microsecond; more digits in a literal are an error | times are compared to the nanosecond |
| inside a sorted string, a character below the blank sorts after the end of the text | it sorts before a blank |
`

// Names of the groups of the reference page, in its order.
func functionGroups() []string {
	return []string{"Conversions", "Choice", "NULL", "Text", "Numbers", "Time", "Aggregates"}
}
