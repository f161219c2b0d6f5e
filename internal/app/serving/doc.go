// Package serving owns what a server of an instance is set up from: its
// configuration, and the store of its users and tokens.
//
// A configuration with mistakes is an InvalidScriptError that lists all of them.
package serving
