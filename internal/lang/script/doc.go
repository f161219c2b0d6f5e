// Package script is the language that people write: it loads a script with
// its parameters and the files that it pulls in, checks all of it, and hands
// over a model (see Script) in which every name is resolved and every
// expression has a type.
//
// It owns the keys of the language, the parameters, the rules about names,
// references and types, the fingerprint that says whether two scripts do the
// same, and the choice of the nodes that a run affects. Values, places and
// diagnostics are those of package document. It does not run anything: no SQL,
// no Python, no input file is opened.
//
// It promises:
//
//   - Load reports every problem that it can find at once, in the order of
//     the text, each with file, line and column in the text as written (before
//     parameters were put in), and never half a model: a Script is returned
//     only when there are no errors.
//   - A Script never changes after Load and may be read by any number of goroutines.
//   - The same text, parameters and pulled-in files give the same fingerprint,
//     whatever the comments, the spelling of keys or the format.
//   - No input makes it panic or run away: size, depth and expansion of aliases
//     and parameters have limits (limits.go).
//
// What can fail: reading a file (the diagnostic's Cause says how), and the
// person's script, params, Python or tag criteria (a diagnostic).
package script
