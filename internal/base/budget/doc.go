// Package budget decides what one process may use: it reads what the machine
// or its control group has, and splits one memory figure between DuckDB's
// slots, the Python interpreters and Go.
//
// It promises that the parts never add up to more than the whole. It fails
// only on figures that cannot work at all (Split).
package budget
