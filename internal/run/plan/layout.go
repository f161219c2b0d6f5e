package plan

import (
	"encoding/json"
	"fmt"
	"strings"

	"thalweg/internal/base/fault"
	"thalweg/internal/base/sqltext"
	"thalweg/internal/lang/expr"
	"thalweg/internal/lang/script"
	"thalweg/internal/store/state"
)

// formatVersion of the records that plans leave in state. A record of another
// version cannot be read by this binary.
const formatVersion = 1

// Column is a column of a table.
type Column struct {
	Name     string `json:"name"`               // as the script names it
	Physical string `json:"physical,omitempty"` // in the parts, if different
	Type     string `json:"type"`               // the script's word for it
	Nullable bool   `json:"nullable,omitempty"` // there may be NULLs in it
}

// SortColumn is a column by which a table's rows are in order.
type SortColumn struct {
	Column     string `json:"column"` // as stored
	Desc       bool   `json:"desc,omitempty"`
	NullsFirst bool   `json:"nulls_first,omitempty"`
}

// Stored is the column's name in the parts.
func (c Column) Stored() string {
	if c.Physical != "" {
		return c.Physical
	}
	return c.Name
}

// Layout describes the order and the buckets of a table's rows in its parts.
type Layout struct {
	Columns   []Column `json:"columns"`
	OrderCols int      `json:"order_cols"` // columns __o0 …; 0: the parts are in canonical order
	// Sort: the canonical order is that of these columns, and __o0 is made of them.
	Sort    []SortColumn `json:"sort,omitempty"`
	Buckets int          `json:"buckets"` // power of two; 0: not bucketed
	// BucketKey is the fingerprint of the key, Key the key, Hash the function that
	// puts it into buckets. The rows of a part lie by bucket, in column __b, and in
	// canonical order within one. Without Hash they were put into a part for each
	// bucket, by a version that named neither.
	BucketKey string     `json:"bucket_key,omitempty"`
	Key       expr.Order `json:"key,omitempty"`
	Hash      string     `json:"hash,omitempty"`
}

// layoutOf gives the columns of a table with these fields, with names that
// DuckDB, which ignores case, can keep apart.
func layoutOf(fields []*script.Field) Layout {
	var l Layout
	declared, seen := map[string]bool{}, map[string]bool{}
	for _, f := range fields {
		declared[strings.ToLower(f.Name)] = true
	}
	for i, f := range fields {
		c := Column{Name: f.Name, Type: f.Type.String(), Nullable: f.Nullable}
		low := strings.ToLower(f.Name)
		if seen[low] || strings.HasPrefix(low, "__") || low == "file_index" || low == "file_row_number" ||
			low == "filename" {
			c.Physical = fmt.Sprintf("%s_%d", strings.TrimLeft(f.Name, "_"), i)
			for declared[strings.ToLower(c.Physical)] || seen[strings.ToLower(c.Physical)] {
				c.Physical += "_"
			}
		}
		seen[strings.ToLower(c.Stored())] = true
		l.Columns = append(l.Columns, c)
	}
	return l
}

// Schema fingerprints the columns, for manifest entries.
func (l Layout) Schema() string {
	parts := make([]string, len(l.Columns))
	for i, c := range l.Columns {
		parts[i] = c.Stored() + ":" + c.Type
		if c.Nullable {
			parts[i] += "?"
		}
	}
	return strings.Join(parts, ",")
}

func (l Layout) column(name string) (Column, bool) {
	for _, c := range l.Columns {
		if c.Name == name {
			return c, true
		}
	}
	return Column{}, false
}

// floats lists the columns that parts store as DOUBLE.
func (l Layout) floats() []string {
	var names []string
	for _, c := range l.Columns {
		if c.Type == expr.Float.String() {
			names = append(names, c.Stored())
		}
	}
	return names
}

// types maps field names to their types.
func (l Layout) types() map[string]expr.Type {
	m := make(map[string]expr.Type, len(l.Columns))
	for _, c := range l.Columns {
		m[c.Name], _ = expr.ParseType(c.Type)
	}
	return m
}

// sortKey is one value by which rows come in the order of columns: as bytes. A
// float of -0 comes before one of 0 where nothing else decides.
func (l Layout) sortKey() string {
	args := make([]string, len(l.Sort))
	for i, c := range l.Sort {
		direction, nulls := "ASC", "NULLS LAST"
		if c.Desc {
			direction = "DESC"
		}
		if c.NullsFirst {
			nulls = "NULLS FIRST"
		}
		args[i] = sqltext.Ident(c.Column) + ", " + sqltext.String(direction+" "+nulls)
	}
	for _, c := range l.floats() {
		args = append(args, "signbit("+sqltext.Ident(c)+"), 'DESC NULLS LAST'")
	}
	return "create_sort_key(" + strings.Join(args, ", ") + ")"
}

// orderColumns lists the names __o0 … of n hidden order columns.
func orderColumns(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("__o%d", i)
	}
	return names
}

// Table is a complete table that a node reads.
type Table struct {
	Node   *script.Node
	Run    state.RunKey // the run that wrote it
	Writer string       // the node that wrote it
	Layout Layout
	Parts  []state.Part
	// Identity tells the rows from those of every other table: which node of
	// which run wrote them, and the how manieth time.
	Identity string

	members    []member     // of a table made by Together
	blocks     []*keyBlocks // of each part, if all lie by key: see Settle
	ComputedIn string       // the node inside which an ephemeral table is computed; "": it is stored

	Inner   *Inputs    // of an ephemeral table: what it is computed from
	own     ownBatches // of an ephemeral table, while its reader is planned
	inlined *inlined   // of an ephemeral table, while a task is made
}

// Ephemeral reports whether the table is not stored, but computed by its reader.
func (t *Table) Ephemeral() bool { return t != nil && t.Inner != nil }

// Rows in the table.
func (t *Table) Rows() int64 {
	var n int64
	for _, p := range t.Parts {
		n += p.Rows
	}
	return n
}

// Bytes estimates what the table weighs in memory: Parquet's uncompressed
// size, or what its plainest columns must take, whichever is more, because
// dictionaries hide repeated text.
func (t *Table) Bytes() int64 {
	var n int64
	for i := range t.Parts {
		n += t.partBytes(i)
	}
	return n
}

func (t *Table) partBytes(part int) int64 { return partBytes(t.Holder(part).Layout, t.Parts[part]) }

func partBytes(l Layout, p state.Part) int64 { return max(p.RawBytes, p.Rows*rowWidth(l)) }

// rowWidth is the least that a row of l takes in memory.
func rowWidth(l Layout) int64 {
	var width int64
	for _, c := range l.Columns {
		width += 8
		if c.Type == expr.String.String() {
			width += 8
		}
	}
	return width
}

// NodePlan is the stored plan of a node: enough to read its table.
type NodePlan struct {
	Version int    `json:"version"`
	Table   string `json:"table,omitempty"` // "" for nodes that write files
	Layout  Layout `json:"layout"`
	// Sources says of each table what wrote the rows that are read.
	Sources map[string]Source `json:"sources,omitempty"`
	Join    *JoinPlan         `json:"join,omitempty"`
	// columns of the side tables that the node may write, by state.Part.Side
	Sides map[string]Layout `json:"sides,omitempty"`
	// ComputedIn is the node inside which the rows of an ephemeral table are computed; "": they are stored.
	ComputedIn string `json:"computed_in,omitempty"`
	// rows of a row group, where that cannot be seen from the tables that are read; 0: it can
	RowGroup int  `json:"row_group,omitempty"`
	Wide     bool `json:"wide,omitempty"` // of RowGroup: see engine.PartOutput
	// Follows is the identity of the rows (package reuse). Opaque here. Opaque here.
	Follows json.RawMessage `json:"follows,omitempty"`
	// Unique has what is promised of the table's keys. Nothing is planned by it.
	Unique []UniqueKey `json:"unique,omitempty"`
}

// Source identifies the rows of a table that a node was planned to read: the node that wrote them, and which
// of its results (Table.Identity). A plan of an earlier version has no identity, or no node either: it is the
// script's then.
type Source struct {
	state.NodeKey
	Identity string `json:"identity,omitempty"`
}

// UniqueKey says that no two rows of a table have the same values in some
// fields, but for rows that have a NULL there.
type UniqueKey struct {
	Fields []string `json:"fields"`
	Check  string   `json:"check,omitempty"` // that has to have passed; "": the rows are made so
}

// uniqueKeys lists what a node promises of its table's keys: in its indexes first.
func uniqueKeys(n *script.Node) []UniqueKey {
	var out []UniqueKey
	for _, ix := range n.Table.Indexes {
		if !ix.Unique {
			continue
		}
		key := UniqueKey{Check: ix.Name}
		if n.Type == script.Distinct {
			key.Check = ""
		}
		for _, k := range ix.Key {
			key.Fields = append(key.Fields, k.Field)
		}
		out = append(out, key)
	}
	for _, c := range n.Checks {
		if c.Kind == script.CheckUnique && c.Where == nil {
			out = append(out, UniqueKey{Fields: c.Fields, Check: c.Name})
		}
	}
	return out
}

// JoinPlan says whether a lookup joins by buckets.
type JoinPlan struct {
	Buckets int `json:"buckets"` // 0: every batch reads the whole right side
}

// Encode writes the plan for state.
func (p NodePlan) Encode() ([]byte, error) { return json.Marshal(p) }

// DecodeNodePlan reads a plan from state.
func DecodeNodePlan(data []byte) (NodePlan, error) {
	var p NodePlan
	if err := json.Unmarshal(data, &p); err != nil {
		return p, fmt.Errorf("read a node's plan: %w", err)
	}
	if p.Version != formatVersion && p.Version != ephemeralVersion {
		return p, fault.OtherForm("the plan of a node", p.Version, max(formatVersion, ephemeralVersion))
	}
	return p, nil
}

// ident quotes a stored column behind an alias.
func ident(alias, name string) string { return alias + "." + sqltext.Ident(name) }
