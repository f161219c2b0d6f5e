// Package pace spaces the conditional writes of processes that change the same
// partition of a store: each of them learns from what it loses and wins how many
// others there are, and leaves room for them.
//
// It promises that who competes with nobody does not wait, and that no wait is
// longer than Longest. It has no clock; simulations of a fleet use it as stores do.
package pace
