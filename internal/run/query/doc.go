// Package query understands the SQL of sql nodes: it implements
// script.Describer with DuckDB.
//
// It owns
//
//   - the rules of such a query: one SELECT; the node's tables and scan_file, nothing else; no function whose
//     result is not determined by its arguments,
//   - the mapping of DuckDB's types to those of fields,
//   - the rewriting that makes a query's result independent of the order in which its rows arrive.
//
// It promises that nothing is run: queries are parsed and bound against empty
// tables in an instance that may open no file; of files that scan_file names,
// the header or the footer is read. What it says is the same for the same
// query, tables and files. What the person can mend is a problem with its place
// in the query; its errors are ours or the environment's.
//
// Not covered: rows that are equal in the ORDER BY of a window function or of a
// LIMIT inside of a grouped subquery are told apart only by the order in which
// they arrive (script.QueryInfo.OneThread).
package query
