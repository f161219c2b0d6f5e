// Package fleet says who works for an instance, on which runs, and what begins
// when: its workers, its runs that are not over, its schedules and watches; and
// what of all that needs people.
// It changes nothing, and fails where the state cannot be read.
package fleet
