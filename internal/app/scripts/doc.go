// Package scripts says of a script what can be said without running it: its
// problems, how a run would go about it, how it looks, what it needs; and
// proposes one for files.
//
// It fails with sources.InvalidScriptError for a script that cannot be loaded,
// and with *fault.Error for what the user can mend.
package scripts
