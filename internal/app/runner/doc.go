// Package runner runs scripts: it begins runs, resumes and retries them, works
// on them until they are over or wait for people, and runs a script over a
// matrix of values. Forecast and Explain say beforehand what a run would do.
//
// A summary is valid beside an error whenever its run has a number. It fails
// with scripts.InvalidScriptError or *fault.Error for what the user can mend.
package runner
