// Package app is the one door to Thalweg: the command line, an API and tests
// open an instance by it, ask its services, and give orders in the name of a
// caller. It returns data, and never prints.
//
// Nothing in it belongs to the process: two Apps, on two state directories and
// with different secrets, work side by side.
//
// Its services are those of the packages below it. It fails with *fault.Error,
// whose Code says what callers decide on; a script that cannot be loaded is an
// InvalidScriptError.
package app
