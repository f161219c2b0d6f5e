// Package expr is the expression language of scripts: Capillaries' subset of
// Go. It owns parsing, static typing, constant folding and the translation to
// DuckDB SQL, and the three small languages beside it: order expressions, CSV
// print formats and CSV scan formats.
//
// It promises that
//
//   - an expression that passes [Expr.Check] renders to SQL that DuckDB can
//     bind, and whose value is the one that Go's semantics give (the list of
//     deliberate differences is in docs/expressions.md);
//   - nothing is silently wrong at run time: what cannot be computed exactly
//     raises an error, ours as [Raised];
//   - a NULL operand gives a NULL result (of iif too its condition), except that && and || follow SQL's
//     three-valued logic;
//   - an expression that is not [Compiled.Nullable] is never NULL over fields of which
//     those that [Mode] does not call nullable are not;
//   - an error inside a guarded part (the branch of iif that is not taken, the
//     right side of && and || when the left one decides) does not fire;
//   - the same source, scope and mode always give the same SQL text.
//
// An operand that fails beside one that is NULL: whether its error fires or the
// result is NULL is not said.
//
// One freedom is DuckDB's: it adds up the constants of (x + 1) + 2 first, so
// near 38 digits, which operations on ints and decimals have, an overflow may be
// found where there is none, or the other way round. A value is never different.
//
// Every failure of loading is an [*Error] with the byte range in the source;
// run-time failures are DuckDB's. A connection that runs compiled SQL must
// have run [Macros] before, and must leave DuckDB's ieee_floating_point_ops at
// its default (on).
package expr
