// Package format writes numbers for people: counts, sizes, times, shares, and
// bars made of letters, which need neither colours nor a terminal.
//
// It promises texts that are the same everywhere. Nothing in it can fail.
package format
