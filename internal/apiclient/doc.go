// Package apiclient asks a server for what commands show and order: app.Operations over the HTTP API.
//
// It promises that a failure is the fault.Error that the server had, with its kind, code, place and hint, and that
// orders are sent with a key of their own, so that one whose answer was lost is repeated and done once. What can fail:
// the network, the server, and what the token may not.
package apiclient
