package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"thalweg/internal/base/sqltext"
)

// Cluster asks for blocks of rows whose keys come in order, which may then stay as they come.
type Cluster struct {
	ValueSQL string // what is compared: VARCHAR or BIGINT over Query's columns, behind q
	Text     bool   // it is VARCHAR
	Runes    int    // that are kept of one
	Rows     int    // of a block
	// Keep decides by the keys of all blocks whether the part stays as it is, and
	// gives what is noted of it; nil: it does not.
	Keep func(blocks []KeyBlock) ([]byte, error)
}

// KeyBlock is the keys of some rows that follow one another.
type KeyBlock struct {
	Min   string `json:"min,omitempty"` // of texts the beginning
	Max   string `json:"max,omitempty"`
	Nulls bool   `json:"nulls,omitempty"` // some are NULL
	Empty bool   `json:"empty,omitempty"` // all are
}

// What the first rows tell: the keys of blocks of them must lie apart, as those
// of the part's blocks have to in the end. Counting how often a row has a lesser
// key than the one before would not do: each page of an export may be sorted,
// and have all keys.
const (
	sampleRows      = 20_000
	sampleBlockRows = 10 // few: a batch of some hundred rows has to have blocks as well
)

// writeClustered writes the rows as they come, if they come by key: what the
// first of them let expect, and all have to keep. ok is false if they do not,
// and nothing is written.
func (x *execution) writeClustered(ctx context.Context, out *PartOutput) (ok bool, err error) {
	c := out.Cluster
	if expected, err := x.expectClustered(ctx, c); err != nil || !expected {
		return false, ctx.Err() // what fails here fails again, and is explained
	}
	plain := PartOutput{Stage: out.Stage, Floats: out.Floats, RowGroupRows: c.Rows, Wide: out.Wide}
	if err := x.writeRows(ctx, &plain, x.task.Query); err != nil || len(x.res.Written) == 0 {
		return true, err
	}
	w := &x.res.Written[0]
	blocks, err := x.keyBlocks(ctx, c,
		fmt.Sprintf("SELECT file_row_number // %d AS b, %s AS v FROM read_parquet(%s, hive_partitioning = false, "+
			"union_by_name = false) AS q",
			c.Rows, c.ValueSQL, sqltext.Strings([]string{sqltext.Glob(w.Path)})))
	if err != nil {
		return true, err
	}
	if w.Keys, err = c.Keep(blocks); err != nil || w.Keys != nil {
		return true, err
	}
	x.res.Written = nil
	if err := os.Remove(w.Path); err != nil {
		return true, fmt.Errorf("remove a part whose rows do not lie by key: %w", err)
	}
	return false, nil
}

// expectClustered looks at the first rows. Blocks of one key say nothing: a key
// may have more rows than all that are looked at.
func (x *execution) expectClustered(ctx context.Context, c *Cluster) (bool, error) {
	blocks, err := x.keyBlocks(ctx, c,
		fmt.Sprintf("SELECT (row_number() OVER () - 1) // %d AS b, %s AS v FROM (SELECT * FROM (%s) LIMIT %d) AS q",
			sampleBlockRows, c.ValueSQL, x.task.Query, sampleRows))
	if err != nil {
		return false, err
	}
	keys, err := c.Keep(slices.DeleteFunc(blocks, func(b KeyBlock) bool { return b.Min == b.Max }))
	return keys != nil, err
}

// keyBlocks reads the keys v of blocks b of rows.
func (x *execution) keyBlocks(ctx context.Context, c *Cluster, rowsSQL string) (blocks []KeyBlock, err error) {
	least, greatest := "min(v)", "max(v)"
	if c.Text {
		least, greatest = fmt.Sprintf("left(min(v), %d)", c.Runes), fmt.Sprintf("left(max(v), %d)", c.Runes)
	}
	rows, err := x.in.Query(ctx,
		fmt.Sprintf("SELECT coalesce(CAST(%s AS VARCHAR), ''), coalesce(CAST(%s AS VARCHAR), ''), count(v) < "+
			"count(*), count(v) = 0"+
			" FROM (%s) GROUP BY b ORDER BY b", least, greatest, rowsSQL))
	if err != nil {
		return nil, fmt.Errorf("read the keys of rows: %w", err)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var b KeyBlock
		if err := rows.Scan(&b.Min, &b.Max, &b.Nulls, &b.Empty); err != nil {
			return nil, err
		}
		blocks = append(blocks, b)
	}
	return blocks, rows.Err()
}
