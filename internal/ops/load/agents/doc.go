// Package agents has several machines put one load on a store together: agents wait for loads, and a fleet of them is
// told by one coordinator what to do and when.
//
// It promises that all agents begin at one instant by the coordinator's clock, however wrong their own are, as exactly
// as the quickest round trip to each tells; that histograms are merged count by count; that a load is divided without
// rest; and that whoever dies, does not answer or answers wrongly ends the load with an error that names it. An agent
// that is not asked for a while ends what it does. Nobody without the token is told anything, and nobody is waited for
// without an end.
//
// Agents have no rights of their own on a store: the coordinator tells them the target, with what opens it. So the
// token is worth as much as a login, and what crosses a network should cross it by TLS.
package agents
