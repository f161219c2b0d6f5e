// Package reuse says what a node's rows follow from, so that a run can take
// over what another has computed: the node's identity, a list of named parts
// that is hashed. Two nodes of the same identity have the same rows.
//
// It looks at names, sizes and times of files and at records of state; it reads
// no rows. What cannot be the same twice, or cannot be known to be, has no
// identity but a reason why not. It cannot say what a formula reads besides its
// arguments: a clock, chance, a file that it opens. That is its author's to
// declare (reuse: false).
//
// Raise Semantics with every change after which a node of the same script and
// inputs gives other rows, another order of them, or other bytes of a file,
// however small: what earlier versions have computed is not taken over then.
package reuse
