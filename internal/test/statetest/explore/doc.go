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
//	break                                               where             what it said                                        states
//	a claim holds whatever the fence                    rules.go          a batch is revived (stop)                           1,283
//	a stop does not fence                               effects.go        a batch is revived (stop)                           1,597
//	a bid of an earlier epoch counts                    rules.go          no end: a claim that is worth nothing (redo)      711,821
//	a bid that is repeated is refused                   rules.go          no end: nobody knows of the claim (lost answer)    57,859
//	an attempt that is lost commits                     hostile/claims.go the commit is confirmed, and lost                      55
//	a commit that is repeated is refused                hostile/claims.go what the table shows is thrown away (lost answer)      64
//	attempts are numbered anew after a redo             hostile/node.go   no end (redo)                                     122,076
//	a decision about what was shown earlier counts      effects.go        passed without a decision (redo, late decision)   528,471
//	a redo keeps the decision                           effects.go        passed without a decision (redo)                   26,212
//	a batch that is to be redone stays done             hostile/node.go   a batch stays done (redo)                           6,898
//	a node moves in any epoch                           rules.go          made from rows that nobody approved (redo)        450,359
//	a gate that is redone keeps its plan                effects.go        passed without a decision (redo)                   46,334
//	a reopening keeps a rejection                       effects.go        passed without a decision (go on)                  16,344
//	a rejected gate goes on                             effects.go        passed without a decision                           3,190
//	a plan is made in any epoch                         hostile/node.go   passed without a decision (redo)                   47,375
//	a pause leaves running nodes alone                  effects.go        the run is paused, and a node is running (pause)      677
//	a pause leaves nodes alone that are not planned     effects.go        the run is paused, and a node is pending (pause)      184
//	a stop leaves a gate waiting                        effects.go        the run is stopped, and a node waiting (stop)       6,907
//	a pause fences what is under way                    effects.go        no end: a claim that is worth nothing (pause)     430,077
//	an order is heard of again                          hostile/node.go   a node forgot an order (pause)                      1,069
//	an order is ended before all have heard             orders.go         the run is stopped, and a node goes on (stop)         353
//	orders are carried out from the first node on       orders.go         made from rows that nobody approved (redo)         91,888
//	a look goes on that an order has come between       orders.go         made from rows that nobody approved (redo)        192,972
//	a run completes in any epoch                        hostile/store.go  the run is complete, and a node pending (redo)    193,794
//
// One was not found, because it breaks nothing by itself: a run with an order under
// way may be completed. Its epoch is another one than who completes it has read.
package explore
