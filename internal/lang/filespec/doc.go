// Package filespec is what scripts say of files that are more than CSV in UTF-8: how they are compressed, in which
// characters their text is written, and what is taken from the records of JSON and of sheets.
//
// It promises that names and the encoded form of a Spec, which plans and copies keep, do not change.
//
// What can fail: a path, a range or an encoded Spec that is none, with an error that says what is wrong with it.
package filespec
