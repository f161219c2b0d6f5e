// Package orders decides what becomes of runs that people stop, take, do again in
// parts, or declare invalid: what an order to a run has to name so that its
// result is right and nothing else is done, and what to say of that beforehand.
//
// It works on state alone (state.Store), reaches single runs and never lists
// all of a workspace's, and keeps nothing: an order that is given is recorded
// with its run, and whoever works on the run carries it out.
//
// It promises that a closure has every node whose rows may depend on what is
// done again, and no other. What can fail: *fault.Error for a wish that cannot
// be had, with the way out, and the errors of the store.
package orders
