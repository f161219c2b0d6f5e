// Package planning chooses machines for a run: which of them, and how many, for a deadline or a budget.
//
// Types of machines × counts are bounded first by what no simulation could change: the work by the slots, the longest
// chain of batches, the memory of a slot. The cheapest that remain are simulated by package forecast. A plan is in time
// if nine of ten runs are foreseen to be: the high end of the interval.
//
// It promises that no deployment is proposed whose bound is above the deadline or the budget, and that the frontier
// falls: who is slower costs less. The same question has the same answer. It fails as the simulator does, and with a
// *fault.Error for questions that make no sense. That none is in time is an answer, not an error.
package planning
