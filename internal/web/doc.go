// Package web is the web application: the files that ui/ is built into, and how browsers get them.
//
// It promises:
//   - The files are in the program, and are the same for everybody: no data of an instance is in them.
//   - A file has an address with the digest of all files, and never changes there.
//   - The page allows the scripts and styles of this server only, sends nothing to others, and is in no frame.
//
// What can fail: the files, if they are not whole; the program says so when it starts.
package web
