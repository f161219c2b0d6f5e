// Package infer writes a script for a file: it reads all of a CSV or Parquet
// file and proposes each column's type with the evidence for it.
//
// It promises:
//   - the proposed types read every row of the file as it is now: they are
//     tried with the very expressions by which a script reads, and Parquet files
//     through the same views;
//   - nothing is guessed silently: what speaks against the next narrower type,
//     leading zeros, two possible date layouts and texts that stand for a
//     missing value are in the evidence;
//   - the same file gives the same script.
//
// What can fail: the file is missing or unreadable (fault.UserData or
// fault.Environment), its records have different numbers of fields
// (fault.UserData), it has more columns than ColumnsMax. Memory is bounded by
// Options.MemoryBytes.
package infer
