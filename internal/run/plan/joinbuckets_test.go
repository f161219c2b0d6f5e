package plan

import (
	"cmp"
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/base/budget"
	"thalweg/internal/lang/expr"
	"thalweg/internal/lang/script"
	"thalweg/internal/run/engine"
	"thalweg/internal/store/state"
)

const joinBucketsScript = `
nodes:
  left:
    type: file_table
    r: {urls: [left.csv], csv: {hdr_line_idx: 0}, columns: {k: {col_type: int, csv: {col_hdr: k}}}}
    w: {name: lefts, fields: {k: {expression: r.k, type: int}}}
  right:
    type: file_table
    r: {urls: [right.csv], csv: {hdr_line_idx: 0}, columns: {k: {col_type: int, csv: {col_hdr: k}}, ` +
	`x: {col_type: float, csv: {col_hdr: x}}, s: {col_type: string, csv: {col_hdr: s}}}}
    w:
      name: rights
      fields: {k: {expression: r.k, type: int}, x: {expression: r.x, type: float}, s: {expression: r.s, type: string}}
      indexes: {idx_rights_k: non_unique(k)}
  look_up:
    type: table_lookup_table
    r: {table: lefts}
    l: {index_name: idx_rights_k, join_on: r.k, join_type: left, group: GROUP}
    w: {name: found, fields: {k: {expression: r.k, type: int}, v: {expression: 'VALUE', type: TYPE}}}
`

// A lookup has as many buckets as what it holds needs, however many rows pass by.
func TestBucketsOfALookupFollowWhatItHolds(t *testing.T) {
	t.Parallel()
	const (
		left, right = 1_000, 20_000_000 // rows; 16 and 160 bytes each
		held        = 256               // buckets in which the right side fits
		passing     = 4                 // buckets of the right side that are no more than a batch
	)
	for name, tc := range map[string]struct {
		group, value, typ string
		left              int64
		plain             bool  // the right table lies in no buckets
		leftLies          bool  // the left one does
		batch             int64 // bytes, of 24 MiB unless given
		want              int
	}{
		"each match":                      {"false", "l.s", "string", left, false, false, 0, passing},
		"counts":                          {"true", "count()", "int", left, false, false, 0, passing},
		"a greatest text":                 {"true", "max(l.s)", "string", left, false, false, 0, passing},
		"both sides":                      {"true", "count_if(r.k > l.k)", "int", left, false, false, 0, passing},
		"texts in order":                  {"true", `string_agg(l.s, ",")`, "string", left, false, false, 0, held},
		"floats added in order":           {"true", "sum(l.x)", "float", left, false, false, 0, held},
		"the last row":                    {"true", "l.s", "string", left, false, false, 0, held},
		"many on the left":                {"false", "l.s", "string", right, false, false, 0, 32},
		"many keys to group":              {"true", "max(l.s)", "string", right, false, false, 0, held},
		"not in buckets":                  {"false", "l.s", "string", left, true, false, 0, 2},
		"small batches":                   {"false", "l.s", "string", right, false, true, 1 << 20, 512},
		"each would read all on the left": {"false", "l.s", "string", right, false, false, 1 << 20, 32},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := strings.NewReplacer("GROUP", tc.group, "VALUE", tc.value, "TYPE", tc.typ).Replace(joinBucketsScript)
			s, diags := script.Load(context.Background(),
				script.Sources{Path: "s.yaml",
					Read: func(context.Context, string) ([]byte, error) { return []byte(text), nil }})
			require.False(t, diags.HasErrors(), diags.Render())
			table := func(node string, rows, width int64) *Table {
				n := s.Node(node)
				return &Table{Node: n, Writer: node, Layout: layoutOf(n.Table.Fields),
					Parts: []state.Part{{Bucket: -1, Rows: rows, RawBytes: rows * width}}}
			}
			in := Inputs{Reader: table("left", tc.left, 16), Lookup: table("right", right, 160)}
			inBuckets := func(l *Layout, key expr.Order) {
				l.Buckets, l.Key, l.Hash, l.BucketKey = 1024, key, keyHash, bucketKey(keyHash, key, l.types())
			}
			if !tc.plain {
				inBuckets(&in.Lookup.Layout, sideKey(s.Node("look_up"), true))
			}
			if tc.leftLies {
				inBuckets(&in.Reader.Layout, sideKey(s.Node("look_up"), false))
			}
			p := Planner{Script: s, Budget: budget.Budget{Slots: 2, SlotEngineBytes: 96 << 20,
				BatchBytes: cmp.Or(tc.batch, 24<<20),
				SmallBytes: 8 << 20, BroadcastBytes: 8 << 20}}
			plan, batches, err := p.PlanNode(context.Background(), s.Node("look_up"), in)
			require.NoError(t, err)
			require.Len(t, batches, tc.want)
			require.Equal(t, tc.want, plan.Join.Buckets)
		})
	}
}

// A left side that lies by the key is read once, however small the batches. Of another one each batch reads all: there
// are few, or as many as it needs to fit.
func TestLeftSidesThatEachBatchReads(t *testing.T) {
	t.Parallel()
	const gib = 1 << 30
	for _, tc := range []struct {
		bytes int64
		lies  bool
		slots int
		want  int
	}{
		{16 * gib, true, 4, 64},
		{16 * gib, false, 4, 4},
		{16 * gib, false, 6, 8}, // numbers of buckets are powers of two
		{16 * gib, false, 32, 32},
		{256 * gib, false, 4, 64},
		{1, false, 4, 1},
	} {
		p := Planner{Budget: budget.Budget{Slots: tc.slots, SlotEngineBytes: 8 * joinFactor * gib / 2,
			BatchBytes: gib / 4}}
		require.Equal(t, tc.want, p.leftBuckets(tc.bytes, tc.lies), "%+v", tc)
	}
}

// A table in buckets is no help to ranges of keys, nor is one that lies by the key to buckets.
func TestWhatLiesAsCutsDo(t *testing.T) {
	t.Parallel()
	n := &script.Node{}
	key := expr.Order{{Field: "k"}}
	layout := layoutOf([]*script.Field{{Name: "k", Type: expr.Int}})
	name := bucketKey(keyHash, key, layout.types())
	part := []state.Part{{Bucket: -1, Rows: 10}}
	clustered := keyed{&Table{Node: n, Layout: layout, Parts: part,
		blocks: []*keyBlocks{{Key: name, Rows: 10, Blocks: []engine.KeyBlock{{Min: "1", Max: "9"}}}}}, key}
	layout.Buckets, layout.Key, layout.Hash, layout.BucketKey = 8, key, keyHash, name
	inBuckets := keyed{&Table{Node: n, Layout: layout, Parts: part, blocks: []*keyBlocks{nil}}, key}
	from := "5"
	ranges, hashes := Cut{Buckets: 1, Hash: keyHash, Range: &KeyRange{From: &from}}, hashCuts(8)[0]
	require.True(t, clustered.lies(ranges))
	require.False(t, clustered.lies(hashes))
	require.False(t, inBuckets.lies(ranges))
	require.True(t, inBuckets.lies(hashes))
}

// A table that a lookup reads is put into buckets where there would be many, whatever the number of slots.
func TestLayoutOfWhatALookupReads(t *testing.T) {
	t.Parallel()
	text := strings.NewReplacer("GROUP", "false", "VALUE", "l.s", "TYPE", "string").Replace(joinBucketsScript)
	s, diags := script.Load(context.Background(), script.Sources{Path: "s.yaml",
		Read: func(context.Context, string) ([]byte, error) { return []byte(text), nil }})
	require.False(t, diags.HasErrors(), diags.Render())
	for _, slots := range []int{1, 2, 6, 8, 12} {
		p := Planner{Script: s, Budget: budget.Budget{Slots: slots, SlotEngineBytes: 1 << 30, BatchBytes: 256 << 20}}
		require.Zero(t, p.layout(s.Node("right"), Inputs{}, []size{{1_000, 100_000}}).Buckets, slots)
		require.Positive(t, p.layout(s.Node("right"), Inputs{}, []size{{1_000_000_000, 1 << 40}}).Buckets, slots)
	}
}
