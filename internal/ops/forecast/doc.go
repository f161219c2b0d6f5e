// Package forecast says how long a run will take, and how much of its workers' time, from the records of earlier
// runs of the same script.
//
// A Record holds what each node of a complete run took (Read). A Model is fitted to records: the time of a node is
// a + b × bytes that it reads, neither below 0. One record gives b only: time in proportion. The simulator of package
// simulate carries the model's batches out on a fleet, with the real coordinators. The interval is the spread of that
// over chances, widened by how far the model was off for each record when that was left out.
//
// It promises no more than 80 %: one of five runs lies outside. It fails if the state cannot be read, and with
// ErrNoRecord if no run can be learnt from. Nothing is stored.
package forecast
