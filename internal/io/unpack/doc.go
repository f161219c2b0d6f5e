// Package unpack turns the bytes of an input file into the text that they stand for, in
// UTF-8: compressed files, which are known by how they begin, and text in other
// character sets, which the script names.
//
// It promises that nothing is lost or guessed: data that ends early or is damaged, a byte
// that the character set does not have, half of a pair in UTF-16 are errors that name
// where. What was written until then is no text of the file.
//
// What can fail: the data (fault.UserData), reading and writing, whose errors are given
// back as they are. It keeps nothing between calls and starts no goroutines.
package unpack
