// Package roundtrip tests that files and tables of databases go in and out without a difference: generated tables are
// written by others and read by Thalweg, written by Thalweg and read by others, and written and
// read by Thalweg, in each form that it knows. It has no code of its own beside its tests.
//
// The others are DuckDB in its strict mode, always, and pandas, pyarrow, openpyxl and Python's
// json where THALWEG_TEST_READERS names an interpreter that has them; of databases their own
// clients (sqlite3, psql, mariadb), where those and the servers are here. `make chaos` takes 200
// tables a form, other runs a few. A failure names the table, the form and the first cell that differs.
package roundtrip
