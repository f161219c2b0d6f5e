package plan

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"thalweg/internal/base/sqltext"
	"thalweg/internal/lang/expr"
	"thalweg/internal/lang/script"
	"thalweg/internal/run/engine"
	"thalweg/internal/store/state"
)

// Rows often come sorted by the key by which they will be read: exports are, and
// files of one account each. Moving them into buckets would be for nothing. A
// part of a bucketed table whose rows lie so is left as it is, and its manifest
// entry keeps the least and greatest key of each block of rows. When all parts of
// a table are such, its readers cut it by ranges of the key and read the blocks
// that may have rows of theirs. Ranges are of the key's first component: rows
// with the same key are in the same range.

// Limits of clustered parts.
const (
	// keyRunes is the number of characters that a block keeps of a text. Ranges begin with such texts, so no
	// more is needed to tell the side of a beginning on which a text is.
	keyRunes = 32
	// overlapsMax limits how many others a block may overlap on average: neighbours share the key at which
	// one ends.
	overlapsMax = 3
)

// keyBlocks is the manifest's record of a part that lies by key.
type keyBlocks struct {
	Key    string            `json:"key"`  // fingerprint: see bucketKey
	Rows   int64             `json:"rows"` // of each block but the last
	Blocks []engine.KeyBlock `json:"blocks"`
}

// blocksOf reads what the manifest says of a part; nil if it does not lie by key.
func blocksOf(p state.Part) *keyBlocks {
	var b keyBlocks
	if len(p.Keys) == 0 || json.Unmarshal(p.Keys, &b) != nil || b.Rows <= 0 {
		return nil
	}
	return &b
}

// Settle decides the layout of a stored table once it is complete. If no part had to be put into buckets, its
// parts are in canonical order.
func (t *Table) Settle() {
	if t.Layout.Hash == "" || len(t.Parts) == 0 ||
		slices.ContainsFunc(t.Parts, func(p state.Part) bool { return !asCame(p) }) {
		return
	}
	t.Layout.Buckets, t.Layout.OrderCols = 0, 0
	t.blocks = make([]*keyBlocks, len(t.Parts))
	for i, p := range t.Parts {
		t.blocks[i] = blocksOf(p)
	}
}

// KeyRange is the keys from From to before To.
type KeyRange struct {
	From *string `json:"from,omitempty"` // nil: from the least, and NULL
	To   *string `json:"to,omitempty"`   // nil: to the greatest
}

// rangesOf reports whether keys of a type can be cut into ranges.
func rangesOf(t expr.Type) bool {
	return t == expr.String || t == expr.Int || t == expr.Decimal || t == expr.DateTime || t == expr.Date ||
		t == expr.Instant
}

// rangeValueSQL is the first component of a key as ranges compare it: a text, or
// a BIGINT.
func rangeValueSQL(t expr.Type, sql string) string {
	if t == expr.String {
		return sql
	}
	return engine.TransportSQL(t, sql)
}

// compareKeys orders values as DuckDB does: texts by their bytes.
func compareKeys(t expr.Type, a, b string) int {
	if t == expr.String {
		return strings.Compare(a, b)
	}
	x, _ := strconv.ParseInt(a, 10, 64)
	y, _ := strconv.ParseInt(b, 10, 64)
	return cmp.Compare(x, y)
}

// sql is the condition that value is in the range.
func (r KeyRange) sql(t expr.Type, value string) string {
	literal := func(v string) string {
		if t == expr.String {
			return sqltext.String(v)
		}
		return "CAST(" + sqltext.String(v) + " AS BIGINT)"
	}
	switch {
	case r.From == nil && r.To == nil:
		return "true"
	case r.From == nil:
		return fmt.Sprintf("(%[1]s < %[2]s OR %[1]s IS NULL)", value, literal(*r.To))
	case r.To == nil:
		return fmt.Sprintf("%s >= %s", value, literal(*r.From))
	}
	return fmt.Sprintf("(%[1]s >= %[2]s AND %[1]s < %[3]s)", value, literal(*r.From), literal(*r.To))
}

// has reports whether a block may have rows of the range.
func (r KeyRange) has(t expr.Type, b engine.KeyBlock) bool {
	if b.Nulls && r.From == nil {
		return true
	}
	return !b.Empty && (r.From == nil || compareKeys(t, b.Max, *r.From) >= 0) &&
		(r.To == nil || compareKeys(t, b.Min, *r.To) < 0)
}

// first is the type and the SQL of the key's first component behind alias.
func (k keyed) first(alias string) (expr.Type, string) {
	t := k.table.Layout.keyTypes(k.key)[0]
	return t, rangeValueSQL(t, k.keySQL(alias)[0])
}

// clustered gives the blocks of the table's parts; nil if it does not lie by the key.
func (k keyed) clustered() []*keyBlocks {
	want := bucketKey(keyHash, k.key, k.table.Layout.types())
	if slices.ContainsFunc(k.table.blocks, func(b *keyBlocks) bool { return b == nil || b.Key != want }) {
		return nil
	}
	return k.table.blocks
}

// cuts divides the keys into so many shares: into ranges of equal size where the
// table lies by the key, else into buckets.
func (k keyed) cuts(buckets int) []Cut {
	if ranges := k.ranges(buckets); ranges != nil {
		return ranges
	}
	return hashCuts(buckets)
}

// hashCuts divides all keys, whatever they are, into buckets.
func hashCuts(buckets int) []Cut {
	cuts := make([]Cut, buckets)
	for i := range cuts {
		cuts[i] = Cut{Buckets: buckets, Bucket: i, Hash: keyHash}
	}
	return cuts
}

// ranges cuts a table that lies by the key; nil if it does not, or has too few
// different keys for that.
func (k keyed) ranges(want int) []Cut {
	parts := k.clustered()
	if parts == nil || want < 2 {
		return nil
	}
	t, _ := k.first("")
	type block struct {
		min  string
		rows int64
	}
	var blocks []block
	var total int64
	for i, p := range parts {
		left := k.table.Parts[i].Rows
		for _, b := range p.Blocks {
			rows := min(p.Rows, left)
			left -= rows
			if total += rows; !b.Empty {
				blocks = append(blocks, block{b.Min, rows})
			}
		}
	}
	slices.SortStableFunc(blocks, func(a, b block) int { return compareKeys(t, a.min, b.min) })
	var cuts []Cut
	var from *string
	var rows int64
	for i, b := range blocks {
		if i > 0 && rows >= ceilDiv(total, int64(want)) && compareKeys(t, blocks[i-1].min, b.min) < 0 {
			cuts = append(cuts, Cut{Buckets: 1, Hash: keyHash, Range: &KeyRange{From: from, To: &b.min}})
			from, rows = &b.min, 0
		}
		rows += b.rows
	}
	if cuts = append(cuts, Cut{Buckets: 1, Hash: keyHash, Range: &KeyRange{From: from}}); 2*len(cuts) < want {
		return nil
	}
	return cuts
}

// rangeSlices lists the blocks that may have rows of a range; all of a table
// that does not lie by the key.
func (k keyed) rangeSlices(r KeyRange) []PartSlice {
	parts := k.clustered()
	if parts == nil {
		return wholeTable(k.table)
	}
	t, _ := k.first("")
	var out []PartSlice
	for i, p := range parts {
		var run *PartSlice
		for n, b := range p.Blocks {
			if !r.has(t, b) {
				run = nil
				continue
			}
			if run == nil {
				out = append(out, PartSlice{Part: i, From: int64(n) * p.Rows})
				run = &out[len(out)-1]
			}
			if run.To = int64(n+1) * p.Rows; n == len(p.Blocks)-1 {
				run.To = 0
			}
		}
	}
	return out
}

// clusterOf says how a part's rows may lie instead of in buckets; nil where that
// is not tried: rows that carry their order lie in none, and a query that has to
// see all of its rows first would be asked twice.
func (p *Planner) clusterOf(n *script.Node, in Inputs, l Layout, rows int) *engine.Cluster {
	if orderColsOf(n, in) > 0 || n.Query != nil {
		return nil
	}
	t := l.keyTypes(l.Key)[0]
	if !rangesOf(t) {
		return nil
	}
	return &engine.Cluster{ValueSQL: rangeValueSQL(t, l.keySQL(l.Key, "q")[0]), Text: t == expr.String, Runes: keyRunes,
		Rows: rows,
		Keep: func(blocks []engine.KeyBlock) ([]byte, error) {
			if overlaps(t, blocks) > overlapsMax*len(blocks) {
				return nil, nil
			}
			return json.Marshal(keyBlocks{Key: l.BucketKey, Rows: int64(rows), Blocks: blocks})
		}}
}

// overlaps counts for each block the others that may have the same keys.
func overlaps(t expr.Type, blocks []engine.KeyBlock) int {
	var least, greatest []string
	for _, b := range blocks {
		if !b.Empty {
			least, greatest = append(least, b.Min), append(greatest, b.Max)
		}
	}
	compare := func(a, b string) int { return compareKeys(t, a, b) }
	slices.SortFunc(least, compare)
	slices.SortFunc(greatest, compare)
	below := func(sorted []string, v string, orEqual int) int {
		i, _ := slices.BinarySearchFunc(sorted, v, func(e, v string) int { return 2*compare(e, v) - orEqual })
		return i
	}
	n := 0
	for _, b := range blocks {
		if !b.Empty {
			n += below(least, b.Max, 1) - below(greatest, b.Min, 0) - 1 // itself
		}
	}
	return n
}
