// Package diagnosis examines on demand: this machine, a state directory, the
// services and workers of a cluster, and the hooks that are told of runs.
//
// What it finds wrong is a finding with what mends it, no error. It fails only if
// it cannot examine anything, for want of a directory or because it is interrupted.
package diagnosis
