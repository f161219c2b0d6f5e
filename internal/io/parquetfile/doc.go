// Package parquetfile knows the structure of Parquet files: it reads footers,
// walks the pages of column chunks, verifies their checksums, and writes views
// of a file.
//
// Values are decoded by DuckDB. What DuckDB takes from a file without looking
// twice, this package looks at first: sizes and offsets that lead out of
// the file, pages that do not hold as many values as they should, checksums
// (of pages, and those of gzip, which DuckDB ignores), parts of a schema that
// contradict each other.
//
// A view is a small Parquet file that holds the bytes of some chunks of another
// file as they are, under a footer of our own. In it columns have names that
// cannot be taken for one another, no statistics, and the types that their bytes
// have: a DECIMAL(2,2) in INT64 is an INT64 there, so that whoever reads it sees
// all 64 bits. What the values mean is for the reader to say.
//
// It promises that nothing in a file is believed that could cost memory or time
// out of proportion to the file, and that every failure is a *DamagedError,
// except those of the operating system. It has no state and starts no goroutines.
package parquetfile
