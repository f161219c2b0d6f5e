// Package document is the text that people write, before it means anything: it
// reads YAML and JSON into values that know their places, lays such texts out
// (Format), and collects and shows what is wrong with them (Report, Diagnostic).
//
// What the keys of a document mean is the business of package script.
//
// It promises:
//
//   - Every value gives its place in the text as people wrote it, before parameters
//     were put in (Source), down to the character inside of a quoted text.
//   - Diagnostics come in the order of the text, without secrets, and in two forms: for
//     people with the line and a mark under it, for programs as JSON.
//   - Format keeps comments and meaning, and formatting twice changes nothing more.
//   - No input makes it panic or run away: size, depth and expansion of aliases have
//     limits (limits.go).
//
// What can fail: a text that is neither YAML nor JSON (SyntaxError), and one that cannot
// be laid out without a change of meaning (a *fault.Error of Format).
package document
