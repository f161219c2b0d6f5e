// Package plan turns a node of a script and the tables it reads into work:
// the layout of the table it will write, the batches that write it, and for
// each batch a task for the engine.
//
// It owns three decisions and their words: layouts (which hidden order columns
// and buckets a table has), slices (which rows a batch reads) and the SQL of
// each node type. Planning reads file headers and manifests, never rows, and
// is deterministic: the same script, inputs and budget give the same batches.
//
// Rows have a canonical order: the order of the input files and of the rows in
// them, carried through every node. A table whose parts, in manifest order,
// hold its rows in canonical order needs no record of it. Nodes that cannot
// keep it (lookups, distinct) and tables that are written in buckets carry it
// in hidden columns __o0, __o1 …: sorting by them gives the canonical order.
//
// Failures are *fault.Error for what the user can mend (a missing file, an
// unknown run) and plain errors for what only we can.
package plan
