// Package limit says what a run has taken of its limit (state.Limit), when it has reached it, and whether it is
// expected to. It only reads what state knows.
package limit
