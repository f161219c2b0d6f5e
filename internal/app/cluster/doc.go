// Package cluster owns the services of a cluster: the state, the parts and the
// broker that its configuration names. It makes what they lack (keyspace, tables,
// directories), refuses what a configuration asks of them and they cannot give,
// and says how each is looked at.
//
// Failures that whoever wrote the configuration has to mend name its place there;
// what may pass by itself is left as the service has said it.
package cluster
