// Package backoff spaces the tries of processes that change the same partition of a
// store by conditional writes, of which one at a time is won.
//
// It promises that who has lost nothing does not wait, and that no wait is longer
// than Longest. It has no clock; simulations of a fleet use it as stores do.
package backoff
