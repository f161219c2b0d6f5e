// Package hostile has, for tests, what a distributed store is like at its
// worst. Store is a state store in memory that is made of partitions: each has
// its own lock, no change looks into another, and a list over several is of no
// one moment. It is written to be obviously right and nothing else: the suite
// of package statetest compares every other store with it. Wrap makes any store
// lose calls and answers, repeat them, and deliver them late.
package hostile
