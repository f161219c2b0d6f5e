// Package compare says how the rows of two tables differ: which are in one of
// them only, which changed, and in which columns.
//
// It owns what "the same row" means. Values are compared exactly: NULL is not
// the empty text, -0 is not 0, NaN is NaN, texts are compared byte by byte.
// Without a key the tables are multisets of rows. With one, rows that are in
// both tables leave each other's sight first; of a key with one row left on
// either side that row has changed, any others have been removed or added. So
// keys that occur more than once give a definite answer, too.
//
// What it promises is the same for the same rows, however they lie in parts.
// Rows are read by DuckDB within a memory limit, which puts aside on disk what
// does not fit; parts with the same bytes are not read as rows. Nothing is
// written but the spill directory. Its errors are *fault.Error for what the
// person can mend (a column that is not there) and the engine's.
package compare
