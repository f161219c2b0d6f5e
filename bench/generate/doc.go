// Package generate makes synthetic data sets to try the system on.
//
// It owns one data set so far, the portfolio: six template funds trading 250
// invented tickers, cloned for as many accounts as wanted, with quarter-end
// holdings, sparse end-of-day prices and companies with a sector. Shape and
// proportions follow the public portfolio example that the project is
// compatible with; every name, price and quantity is invented.
//
// It promises:
//   - the same [Options] give byte-identical files, whatever the machine's
//     core count: all randomness is integer arithmetic on one seeded stream,
//     and each file is written by one thread in a total order;
//   - holdings are the running sums of the transactions and never negative;
//   - every price that the portfolio formulas ask for lies inside the range
//     of dates of its ticker;
//   - a directory appears complete or not at all, and nothing that another
//     program or person wrote is removed.
//
// What can fail: options out of range or a directory holding other files
// (fault.Script, nothing is touched), and the disk (fault.Environment, the
// unfinished copy is removed).
package generate
