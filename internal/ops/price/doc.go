// Package price says what an hour of a machine costs: by a dated book that comes with the program, which a file of the
// user's adds to and replaces in part. Each price has its region, its date and its source.
//
// It promises sums without drift: Money counts millionths of a US dollar in whole numbers, and one rounding, half away
// from zero, is made where a time is paid. A machine that no line names has no price; none is guessed from a name.
//
// What can fail: a file of prices, with a diagnostic at its place. It fetches nothing: a book is as old as its dates.
package price
