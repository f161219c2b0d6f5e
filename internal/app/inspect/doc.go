// Package inspect looks at what runs have made: it queries tables, checks them,
// traces rows to the lines of their inputs, and says who reads what. It changes
// nothing of a run.
//
// It fails with *fault.Error for a query, table or column that cannot be.
package inspect
