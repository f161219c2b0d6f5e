// Package bill says what a run cost: the time of the machines of its workers by what it went to, services apart, and
// their price where it is known.
//
// It promises sums that add up: worked, waited and lost are the whole time that the run has had of machines, and nodes
// have all that was worked and lost. A worker pays for the part of its slots' time that the run has had, so runs that
// are worked on at once are not paid twice; workers of one host share its price by their cores. A machine of unknown
// type, or of a type without a price, has its time and no money: Bill.Unpriced is how much of it there is.
//
// It reads nothing and nothing of it can fail: a run without time sheets has no bill.
package bill
