package cassandra

import (
	"fmt"
	"unicode/utf8"

	"thalweg/internal/store/state"
)

// partition names a partition of state_rows.
type partition struct {
	workspace string
	run       int64  // 0: the workspace's own
	node      string // "": the run's own
}

func ofWorkspace(name string) partition    { return partition{workspace: name} }
func ofRun(key state.RunKey) partition     { return partition{key.Workspace, key.Run, ""} }
func ofNode(key state.NodeKey) partition   { return partition{key.Workspace, key.Run, key.Node} }
func (p partition) with(more ...any) []any { return append([]any{p.workspace, p.run, p.node}, more...) }

// keyBytesMost bounds the names of a key; Cassandra takes some more.
const keyBytesMost = 60_000

// mayBe reports whether there can be a partition of that name: Cassandra calls every other
// name a mistake of the caller.
func (p partition) mayBe() bool {
	return p.workspace != "" && len(p.workspace)+len(p.node) <= keyBytesMost && utf8.ValidString(p.workspace) &&
		utf8.ValidString(p.node)
}

func isRun(key state.RunKey) bool   { return key.Run > 0 && ofRun(key).mayBe() }
func isNode(key state.NodeKey) bool { return key.Run > 0 && key.Node != "" && ofNode(key).mayBe() }

// Kinds of rows. The numbers are stored.
const (
	kindHead    = 0 // one: what every change rewrites
	kindSegment = 1 // n1: its number; the status of segmentBatches batches
	kindAttempt = 3 // n1: batch, n2: attempt
	kindEra     = 4 // n1: its number; when batches were freed
	kindSpan    = 5 // n1: place
	kindToken   = 6 // n1, n2: of a creator's token, the run that it has made
	kindEvent   = 8 // n1: seq
)

// place names a row of a partition.
type place struct {
	kind   int8
	n1, n2 int64
}

// rowsOf and planOf begin the conditions of queries. Their arguments are a partition's.
const (
	rowsOf = ` FROM state_rows WHERE workspace = ? AND run = ? AND node = ? AND `
	planOf = ` FROM state_plans WHERE workspace = ? AND run = ? AND node = ? AND digest = ? AND slice = `
)

var headPlace = place{kind: kindHead}

func nameRun(key state.RunKey) string {
	return fmt.Sprintf("run %d of workspace %q", key.Run, key.Workspace)
}

func nameNode(key state.NodeKey) string {
	return fmt.Sprintf("node %q of %s", key.Node, nameRun(key.RunKey))
}

func nameBatch(key state.BatchKey) string {
	return fmt.Sprintf("batch %d of %s", key.Batch, nameNode(key.NodeKey))
}

func pageLimit(limit int) int {
	if limit <= 0 || limit > state.PageMax {
		return state.PageMax
	}
	return limit
}
