// Package caller says who asks the application for something: a name, the
// roles it acts in, whether somebody has verified them, and the way it came in.
// It decides nothing; what a caller may do is decided where it is done.
package caller
