// Package infer writes a script for files: it reads all of CSV or Parquet files
// that are to be read together, and proposes each column's type with the evidence for it.
//
// It promises:
//   - the proposed types read every row of the files as they are now, but for
//     rows that the proposal counts and puts aside: CSV files are looked at once,
//     then read with the very reader of scripts, as Parquet files are;
//   - nothing is guessed silently: what speaks against the next narrower type,
//     leading zeros, two possible orders of day and month, texts that stand for a
//     missing value, values of another kind, numbers that another file decides, and what differs between files are
//     in the evidence;
//   - the same files give the same script, which writes a file that is not there yet.
//
// What can fail: a file is missing or unreadable (fault.UserData or
// fault.Environment), half of its records or more are broken
// (fault.UserData), it has more columns than ColumnsMax, there are more files than
// FilesMax. Memory is bounded by Options.MemoryBytes, and some kilobytes for a column.
package infer
