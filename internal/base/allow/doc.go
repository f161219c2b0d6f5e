// Package allow decides what a run that others have begun may open: files, addresses, databases, hosts, variables,
// commands.
//
// A Policy is pinned in the run, so every process that works on the run enforces it. It is asked at the moment of
// opening: with parameters filled in and links resolved, and by the dialer with the address that a host's name
// stands for then.
//
// What is refused is a *fault.Error of kind Script and code Forbidden that names the setting to change. The message
// is the same whether there is something at the place or not.
package allow
