// Package runs lists, shows and follows the runs of an instance: which there
// are, how each is, what happens in it, what it waits for.
//
// What it says was true a moment ago. It fails with *fault.Error for a run that
// is not there, and where the state cannot be read.
package runs
