// Package worker takes batches of all runs of an instance until it is told to
// end: it joins runs that come up, refuses those that cannot be worked on here
// and says why, and gives back what is in flight when it ends.
//
// It outlives a state, a broker or a disk that is away for a while. It fails
// where there is too little memory for any run, or the state refuses it.
package worker
