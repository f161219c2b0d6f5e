// Package explore visits every state that the contract of state allows, for two
// workers, a person, and a run of two nodes with a gate between them: every order
// in which their calls can come, within Bounds. After each call the promises of package state are checked:
//
//   - No commit is lost, counts twice or comes back after an order that ended it.
//   - The gate is not passed without a decision about what it has shown, and nothing behind it is made from
//     anything else.
//   - Nothing is begun in a run that is paused or over.
//
// At last each state has to lead on to an end, and to a complete run where nothing has failed and nobody has
// ended it.
//
// The store is the one in memory (statetest/hostile), with the rules of
// package state that all stores share. state.Carry, state.PlanNode and
// orders.Close run as they are. A model stands in for coordinators, executors and
// state.Decide between their calls: they read one thing after the other, decide
// about one, and act later. What a node's job looks at besides (package pipeline
// compares tables and decisions once more) is left out: it has to hold without.
// Other stores are held to the same answers on ways through these states that are
// drawn at random: Walk, and ExploredWays of statetest.
//
// The second worker's clock is ahead by more than a lease, so each lease of the
// first one has ended for it at once. States are visited breadth first; those that
// answer alike are one (hostile.Store.AppendState), and of each a digest and its
// successors are kept, about a hundred bytes.
//
// Each of these was broken by hand, with one batch in each node; the states are
// those that had been visited when that was found. Where a run does not come to
// its end, all had to be.
//
//	break                                           where           states  what it said
//	a claim holds whatever the fence                rules            1,283  a batch is revived (stop)
//	a stop does not fence                           effects          1,597  a batch is revived (stop)
//	a bid of an earlier epoch counts                rules          711,821  no end: a claim that is worth nothing (redo)
//	a bid that is repeated is refused               rules           57,859  no end: nobody knows of the claim (lost answer)
//	an attempt that is lost commits                 hostile/claims      55  the commit is confirmed, and lost
//	a commit that is repeated is refused            hostile/claims      64  what the table shows is thrown away (lost answer)
//	attempts are numbered anew after a redo         hostile/node   122,076  no end (redo)
//	a decision about what was shown earlier counts  effects        528,471  passed without a decision (redo, late decision)
//	a redo keeps the decision                       effects         26,212  passed without a decision (redo)
//	a batch that is to be redone stays done         hostile/node     6,898  a batch stays done (redo)
//	a node moves in any epoch                       rules          450,359  made from rows that nobody approved (redo)
//	a gate that is redone keeps its plan            effects         46,334  passed without a decision (redo)
//	a reopening keeps a rejection                   effects         16,344  passed without a decision (go on)
//	a rejected gate goes on                         effects          3,190  passed without a decision
//	a plan is made in any epoch                     hostile/node    47,375  passed without a decision (redo)
//	a pause leaves running nodes alone              effects            677  the run is paused, and a node is running (pause)
//	a pause leaves nodes alone that are not planned effects            184  the run is paused, and a node is pending (pause)
//	a stop leaves a gate waiting                    effects          6,907  the run is stopped, and a node waiting (stop)
//	a pause fences what is under way                effects        430,077  no end: a claim that is worth nothing (pause)
//	an order is heard of again                      hostile/node     1,069  a node forgot an order (pause)
//	an order is ended before all have heard         orders             353  the run is stopped, and a node goes on (stop)
//	orders are carried out from the first node on   orders          91,888  made from rows that nobody approved (redo)
//	a look goes on that an order has come between   orders         192,972  made from rows that nobody approved (redo)
//	a run completes in any epoch                    hostile/store  193,794  the run is complete, and a node pending (redo)
//
// One was not found, because it breaks nothing by itself: a run with an order under
// way may be completed. Its epoch is another one than who completes it has read.
package explore
