package plan

import (
	"thalweg/internal/base/budget"
	"thalweg/internal/lang/script"
)

// Size is what a table holds.
type Size struct {
	Rows  int64
	Bytes int64 // uncompressed
	Parts int   // a batch reads whole ones, or row groups of them
}

// pieces returns into how many batches of so many rows the table can be cut.
func (s Size) pieces(rows int64) int64 { return max(ceilDiv(s.Rows, rows), int64(s.Parts)) }

// EstimateBatches returns about how many batches a node of a type has that reads tables of these sizes. What is
// looked up counts for lookups only. The files and row groups that a real plan goes by are not known to it.
func EstimateBatches(b budget.Budget, kind script.NodeType, read, lookup Size) int {
	p := &Planner{Budget: b}
	n := int64(1)
	switch kind {
	case script.TableFile:
		return 1
	case script.FileTable:
		n = p.batchesOf(read.Bytes)
	case script.LookupTable:
		if lookup.Bytes > b.BroadcastBytes {
			lean := powerOfTwo(ceilDiv(lookup.Bytes*gatherFactor, leanBytes))
			lies := p.bucketsFor(read.Bytes, joinFactor) > p.fewScans() // see layout
			return min(max(p.bucketsFor(lookup.Bytes, gatherFactor), lean, p.leftBuckets(read.Bytes, lies)), bucketsMax)
		}
		if read.Bytes > b.SmallBytes {
			n = min(p.batchesOf(read.Bytes), read.pieces(rowGroupRowsMin))
		}
	case script.Distinct:
		if read.Bytes > b.SmallBytes {
			return p.bucketsFor(read.Bytes, joinFactor)
		}
	case script.ProcPyCalc, script.PyTableNode:
		n = min(max(p.batchesOf(read.Bytes), ceilDiv(read.Rows, pythonRows)), read.pieces(pythonRows/2))
		if read.Bytes > b.SmallBytes {
			n = max(n, int64(b.Slots))
		}
	default:
		n = min(p.batchesOf(read.Bytes), read.pieces(rowGroupRowsMin))
	}
	return int(min(max(n, 1), batchesMax))
}
