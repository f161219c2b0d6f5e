// Package outputs knows the files and tables that a script's nodes write: it
// refuses scripts whose outputs overwrite each other, their inputs or the state,
// and says which are there already.
//
// It fails with *fault.Error of kind Script, which names both nodes.
package outputs
