// Package doctor looks at a machine and at the services of a cluster, and says
// of each thing that it looked at what it saw, whether that is good, and what
// somebody can do about it.
//
// It owns the order of checks, their time limits, and the judgement of what
// they see. What reaches services is given to it: stores, backends, and
// functions that ask. What it writes to try things out is removed again.
//
// It promises that a service that hangs takes no more time than its checks'
// limits, that the others are looked at meanwhile, that findings come in the
// order in which checks were given, and that what failed is a finding, not an
// error. The one exception to goroutines that are waited for is here: a check that does
// not come back although its context has ended hangs in a system call, on a dead disk, and is left
// behind; nothing else that its service has is touched then.
//
// It cannot fail; Examine ends early when its context does.
package doctor
