// Package files brings input files into DuckDB and output files out of it:
// it cuts inputs into batches, writes the SQL that reads them with the
// script's types, writes the COPY statements that produce CSV and Parquet,
// and explains which value of which line made a read fail.
//
// It owns the meaning of input bytes. A CSV file means what csvrecord.go says
// it means: RFC 4180 with quotes out of place tolerated in one line (as Go's
// encoding/csv with LazyQuotes, behaviour §3.1, but without taking other lines
// in). DuckDB's reader is faster but disagrees in the odd cases, so DuckDB only
// ever sees bytes on which both agree: every byte range is scanned first, a
// range that is plain is handed over as it is (a symbolic link), and any
// other is rewritten into the scratch directory. The scan runs at memory
// speed; the rewrite is the slow path of odd files.
//
// It promises:
//   - rows come in the order of the slices, inside a slice in the order of
//     the file, for any number of threads (preserve_insertion_order is on);
//   - the slices of a plan cover every data record exactly once, and the
//     same inputs give the same plan;
//   - an input that changed after it was planned is refused, not half read;
//   - no value is dropped, cut or guessed: a record with the wrong number of
//     fields, a value that its column's type cannot hold, a missing column
//     are errors which name file, line, column and value.
//
// What can fail: files that are missing or unreadable (fault.Environment),
// values and structure of files (fault.UserData), readers and writers that
// the script declares wrongly (fault.Script). It has no state of its own and
// starts goroutines only inside a call, which waits for them.
package files
