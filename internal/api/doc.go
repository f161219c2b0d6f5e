// Package api is the HTTP API of one instance: what the command line can do, for programs
// and for pages in a browser.
//
// It promises:
//   - Each operation names the permission that it needs (x-permission in the OpenAPI
//     document), and nobody without it reaches the operation's code.
//   - What an operation answers is a value of package view: the bytes that --json prints.
//   - A failure is a problem of RFC 9457 with kind, place, hint and proposed actions. A
//     failure of ours has no details; the log has them.
//   - A request names a host that the server knows, and one from another site changes nothing.
//
// What can fail: the instance's state; requests that are too large or too slow. Nothing
// that a client sends ends the process.
package api
