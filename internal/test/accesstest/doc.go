// Package accesstest is the conformance suite of stores of users, tokens, sessions and the log of access: what
// access.Store promises, for every backend.
//
// A backend's test hands Run a function that opens one store several times over. What can fail is the test.
package accesstest
