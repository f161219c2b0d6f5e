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

<!-- Written by ` + "`go test ./internal/expr -run TestReference -update`" + `; do not edit. -->

An expression computes a value from the fields of a row. The syntax is that of Go expressions: literals, fields written
` + "`alias.field`" + `, operators, parentheses and function calls.

| alias | fields | where |
| --- | --- | --- |
| ` + "`r`" + ` | the file or table that the node reads | everywhere but ` + "`having`" + ` and lookup filters |
| ` + "`l`" + ` | the table that the node looks up | fields of a lookup node, its filter |
| ` + "`p`" + ` | what the node's processor computed | fields of a custom node |
| ` + "`w`" + ` | the row about to be written | ` + "`having`" + ` |
| ` + "`nrs`, `e`" + ` | run and node status | dependency rules, with constants such as ` + "`wfmodel.RunComplete`" + ` |

## Values

| literal | type |
| --- | --- |
| ` + "`123`" + ` | int (64 bits, -9223372036854775808 included); decimal2 if it is outside of them |
| ` + "`1.5`, `1e3`" + ` | float |
| ` + "`\"text\"`" + ` | string as it stands: backslashes are not interpreted, double quotes at both ends are stripped |
| ` + "`` `text` ``" + ` | string as it stands; the form for text with double quotes and for patterns |
| ` + "`true`, `false`" + ` | bool |
| ` + "`null`" + ` | of what stands beside it |
| ` + "`time.January` … `time.December`, `time.UTC`" + ` | arguments of ` + "`time.Date`" + ` |

A type is never changed silently: an int field needs an int, and ` + "`len(…)`" + ` is not one before ` + "`int(…)`" + `.

**NULL.** A field can be NULL only if it is declared ` + "`nullable: true`" + `, and an expression over such fields can be NULL: then it needs a
nullable field itself. NULL in gives NULL out, also as the condition of ` + "`iif`" + `, except that ` + "`&&` and `||`" + ` follow SQL (` + "`false && NULL`" + ` is
false, ` + "`true || NULL`" + ` is true). ` + "`is_null(x)`" + ` tests for it, ` + "`coalesce(x, y)`" + ` replaces it; ` + "`x == null`" + ` is refused, because it would be NULL
for every x. The literal ` + "`null`" + ` takes its type from what stands beside it in ` + "`iif` and `coalesce`" + `, from a conversion (` + "`int(null)`" + `), or from
the field if it is the whole expression. Where a condition is asked for (` + "`having`" + `, filters, tags, rules) NULL does not hold.

## Operators

| operator | on | result |
| --- | --- | --- |
| ` + "`+ - *`" + ` | two numbers | float if either is float, else decimal2 if either is, else int. An int that leaves 64 bits is an error, and so is a decimal2 with more than 16 digits before the point: the message names row, values and expression |
| ` + "`/`" + ` | two numbers | the same; ints are cut toward zero; zero is an error except for floats |
| ` + "`%`" + ` | two ints | remainder with the sign of the left side; zero is an error |
| ` + "`+`" + ` | two strings | one string |
| ` + "`+ -`" + ` | a date and an int; two dates (` + "`-`" + `) | the date so many days later or earlier; the days between, an int |
| ` + "`== != < <= > >=`" + ` | two numbers, strings, dates; datetimes and timestamptz, also with each other | bool; bools only ` + "`==`" + ` and ` + "`!=`" + ` |
| ` + "`&& \\|\\|`" + ` | bools | bool; the right side is not evaluated where the left one decides |
| ` + "`!`, `-`" + ` | a bool, a number | |

**Decimals with digits.** If one side is a ` + "`decimal(p,s)`" + `, the operation is exact: + and - have the digits behind the point of the side with more of them, a
product those of both, / always 16, half away from zero. A float literal beside it counts as it is written: ` + "`r.rate * 1.1`" + ` is exact. Beside other floats it becomes a float.
The type of the result has room for all values, up to 38 digits; a value with more is an error. A product of 38 or more digits behind the point is refused:
` + "`round(x, 4)`" + ` makes them fewer. A ` + "`decimal2`" + ` beside it has its two digits. ` + "`iif`" + ` and ` + "`coalesce`" + ` of decimals have a type that holds all of them.

**Decimal2.** In table fields, file columns and aggregates every operation on nothing but ` + "`decimal2`" + ` (and ints) is rounded to 2 digits, half away from zero, and
must fit 16 digits before the point. In ` + "`having`" + `, filters, tags and rules + - * are exact and / gives 16 digits; a product may have at
most 38 digits after the point, and 38 in all. What does not fit is an error, never a wrong value.

A decimal2 of a Parquet file has all of the file's digits in the expressions of its ` + "`file_table`" + ` (up to 22 after the point), and loses those behind
the second when it is stored. Operations on it are rounded likewise, once, from all digits; comparisons, ` + "`string`, `float`, `iif` and `coalesce`" + ` see them
all. In ` + "`having`" + ` a product of such decimals has 16 digits after the point and at most 22 before it, a sum at most 16 before it. A divisor must be
below 10^14, unless both sides have at most two digits after the point in their files.

**Having** sees each value as its expression computed it, before it is stored: ` + "`w.x`" + ` with ` + "`x: r.x`" + ` is what ` + "`r.x`" + ` is in the expressions of the node (a
datetime with microseconds, a decimal2 of Parquet with all digits), and ` + "`x: r.d + r.e`" + ` is rounded to 2 digits, because the operation is. What the table
or the file keeps of it is rounded or cut afterwards.

**Strings** are compared byte by byte after double quotes at both ends are stripped and each backslash-quote in them is replaced (by a
backslash on the left, by a quote on the right), so ` + "`\"abc\"`" + ` with quotes in the data equals ` + "`abc`" + `.

**Floats** follow IEEE: division by zero gives an infinity, NaN equals nothing.

**Datetimes** are instants with microseconds, and milliseconds in UTC once stored. They are printed in their own zone: one that is read from
text whose layout has a zone (a CSV cell, ` + "`time.Parse`" + `, what Python gives), or made by ` + "`time.Date`" + ` with one, keeps it within the node.

## Functions

Arguments are of exactly the type given. *number* is int, float or decimal2.
`

const referenceEnd = `
Aggregates are the whole expression of a field in a lookup with ` + "`group: true`" + `; nothing else can be computed with them there. They skip NULLs; over no
value they are NULL in a nullable field, else the zero value.

## How long texts can be

DuckDB computes an expression for 2,048 rows at a time on each thread, and what it makes of texts there comes on top of its share of ` + "`--memory`" + `.
So ` + "`strings.ReplaceAll`" + `, ` + "`fmt.Sprintf`" + ` and chains of ` + "`+`" + ` look at the length of a text before they make it. It may have

- the share of a batch divided by 8,192 and by its threads: about 20 KB at 512 MB and two cores, 200 KB at 4 GB; at least 16 KiB, at most 16 MiB.
  An expression with more than four functions that can make texts grow shares four times that among them;
- in any case three times the length of the fields that it is made of: a row of 5 MB can be worked on.

A longer one fails like a value that cannot be read: the message names row, column, expression, length and limit, and with ` + "`bad_rows`" + ` the row is
kept there. Give more ` + "`--memory`" + `, or fewer ` + "`--cores`" + `. What cannot grow much costs nothing: a replacement that is not longer than what it
replaces, a chain with each field at most four times in it and at most 4 KiB of literals and widths. Results do not depend on ` + "`--memory`" + ` otherwise.
A text of literals only, made when the script is loaded, has at most 1 MiB.

Not bounded: ` + "`string_agg`" + ` (a group's texts are as long as its rows make them), long texts in many rows that do not grow (2,048 times their
length for each function), what formulas in Python return, and ` + "`sql`" + ` nodes, which compute what they say.

## Order expressions and indexes

` + "`field, field(desc), field(ignore_case, 128)`" + `: modifiers are ` + "`asc`" + ` (default), ` + "`desc`" + `; ` + "`nulls_last`" + ` (default, whatever the
direction), ` + "`nulls_first`" + `; for strings also ` + "`case_sensitive`" + ` (default),
` + "`ignore_case`" + ` and a length in bytes (at least 16, less means 16; at most 1024). An order compares strings without diacritics, up to that
length (64 bytes by default), without blanks at the end; what is equal so far, in all of its fields, is sorted by the exact strings. An index is ` + "`unique(…)` or `non_unique(…)`" + ` around the same;
there values are equal only if they are the same byte for byte, unless ` + "`ignore_case`" + ` or a length says otherwise: see [Keys](scripts.md#keys).

## Differences from Capillaries

| here | there |
| --- | --- |
| an int that leaves 64 bits is an error | it wraps |
| the branch of iif that is not taken and the decided side of && and \|\| are not evaluated | both are, and can fail |
| a verb of fmt.Sprintf that does not fit its argument gives a warning at load time | only the text has %!d(…) marks |
| a text that is made has at most three times the length of its fields, or what [--memory holds](#how-long-texts-can-be); the name of a zone has at most 96 bytes | any length |
| %T and the marks of verbs call decimals and datetimes string; * takes no width, a width has at most 1,000 characters | names of Go types; any |
| the arguments of time.FixedZone must be literals | they may be computed |
| min and max over no rows are 0 or "", over nothing but NaN they are NaN | the largest numbers show |
| string_agg and float sums follow the order of the rows | the order changes from run to run |
| time.Now() is UTC and the same for all rows of a batch | local time, row by row |
| decimal2 of a float or of text keeps 16 digits after the point | all |
| times are compared to the microsecond; more digits in a literal are an error | to the nanosecond |
| inside a sorted string, a character below the blank sorts after the end of the text | before a blank |
`

// Names of the groups of the reference page, in its order.
func functionGroups() []string {
	return []string{"Conversions", "Choice", "NULL", "Text", "Numbers", "Time", "Aggregates"}
}
