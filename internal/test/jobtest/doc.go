// Package jobtest has what tests of crashes share: a checkpoint at which a
// process kills itself.
//
// It promises that nothing of the process runs on behind the point. It cannot fail.
package jobtest
