// Package app is the only entry to Thalweg for the command line, an API and tests.
// They open an instance, call its services, and give orders in the name of a
// caller. The package returns data, and never prints.
//
// It has no global state: two Apps, on two state directories and with different
// secrets, can work in one process.
//
// Its services are implemented by the packages below it. Errors are *fault.Error, and
// callers decide by their Code. A script that cannot be loaded is an
// InvalidScriptError.
package app
