// Package openlineage tells OpenLineage events of the runs that a process works
// on, if anybody wants that: to the address or file that is named, or that
// OPENLINEAGE_URL names.
//
// Telling never fails a run: what cannot be told is logged, and told later.
package openlineage
