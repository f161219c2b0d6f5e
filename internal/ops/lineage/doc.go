// Package lineage says what rows and columns are made of.
//
// Trace goes from rows of a table, or of an output file, back through the nodes
// to the records of the input files (docs/decisions/0040-lineage.md says how:
// nothing is kept for it while a run works). RecordOf does so for one row that
// has failed, and calls no function of the user's. Columns goes through the
// expressions of a script. OpenLineage tells a run's events to those who keep
// lineage for many systems.
//
// It promises that the rows that it names are those of which others were made. A batch that is
// executed once more has to give the rows that the run has kept, and input files
// have to be those that were read. Where more cannot be known than "one of
// these rows" it says so (see Role of package plan). It changes nothing of a run.
//
// Failures are *fault.Error; a file that is gone or a script that cannot be
// loaded ends the way of the rows that need it, with a note, and no other.
package lineage
