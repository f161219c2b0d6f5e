// Package records takes the records of files that are no tables of text, JSON and sheets
// of Excel workbooks, and writes the values of columns as CSV, which is what the engine
// reads. In front of each record stands the line or row that it has in its source.
//
// It promises that a value is written as it stands there: numbers by their digits, texts
// without their escapes, what is nested as JSON. What has no value is an empty cell
// without quotes; all texts are in quotes. A value that is not of its column's kind is
// written so that it cannot be taken for one. A record that cannot be read becomes a
// record with one field more: its line, what is wrong, and its text.
//
// What can fail: a source that is no such file, or is damaged so that its records cannot
// be told apart (fault.UserData, with the line), and writing, whose errors are given back
// as they are. It starts no goroutines.
package records
