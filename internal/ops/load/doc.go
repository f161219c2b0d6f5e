// Package load measures what a store can take: it sends operations, and says how many a second it carries out, and
// after how long each.
//
// It promises that latencies of an open loop count from when an operation was meant to begin, so that a standstill of
// the store is in them; that figures of a warm-up are in none of them; and that histograms of several generators are
// merged without loss. Errors of operations are counted and shown, not dropped. It fails if no operation succeeds.
package load
