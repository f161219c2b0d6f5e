// Package schedule begins runs: by the clock (schedules), and for new files
// (watches). What a run is, and who works on it, is the business of others.
//
// It promises, whatever dies at any moment, and with any number of schedulers
// at once:
//
//   - never twice: a moment of a schedule, and a version of a file, has one token,
//     and all runs that are begun with a token are the same run for ever;
//   - never forgotten: a moment is in the record of its schedule (Registry) before its
//     run is begun, until that is known, or until it is known why it was skipped.
//
// A record says up to which moment a schedule has been looked at, which moments
// are due and not begun, the last run, and what was skipped and why. Writers of
// a record do not see each other, and need not: of each one it is true that all
// moments up to Looked were begun, skipped, or are in Queue. An older record
// that comes late has moments looked at again, which tokens make harmless.
//
// Whether a clock was put forward or back, or the machine slept, is not asked:
// a moment is missed if nobody looked until OnTime after it.
//
// What can fail: beginning a run, which is tried again, later and later, told
// once, and shown (Standing.Failing); and the box, which ends a look: the next
// one begins anew.
package schedule
