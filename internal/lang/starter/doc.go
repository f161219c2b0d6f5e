// Package starter has small projects to begin with: scripts with inputs, and tests of them.
// They promise to run and pass their tests as they are. Write replaces nothing: it
// fails with a fault.Script if a file is there already, before it has written any.
package starter
