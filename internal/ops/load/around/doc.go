// Package around has what stands around a load: what processors count of processes while it runs, a second load beside
// it, the settings of servers and of this host, and what the measuring itself costs.
//
// It promises that what cannot be seen is named, with why, and is never a figure; that no process that it starts
// outlives its call; and that settings show nothing that may be a password. It fails if a second load does not run as
// long as the first one would need it to, because of a failure of its own, or if it is canceled.
package around
