// Package simulate runs the real coordinators and executors (packages coordinator
// and executor) of a whole fleet over a state in memory, in virtual time: what they
// wait for is made up, that is calls of the state, transfers of parts and the work
// of batches, by measured costs (Costs). It says how much of the fleet's time is
// work, and what takes the rest (Result). A test holds the traces over a real store
// equal.
//
// It promises that the same seed gives the same trace, byte by byte: of all
// goroutines one is at work at a time, time goes on only when all wait, and chance
// comes from the seed alone. It takes no lease, file or service of anybody.
//
// What can fail: a *fault.Error for costs that make no sense, the context's error,
// and what the store answers, which would be a mistake of this program.
package simulate
