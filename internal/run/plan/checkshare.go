package plan

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"thalweg/internal/base/sqltext"
	"thalweg/internal/lang/expr"
	"thalweg/internal/lang/script"
	"thalweg/internal/run/engine"
)

// The checks of a large table are shared out among batches. Each looks at some
// of the rows for rules that look at rows one by one, and at all rows of some keys
// for those that compare rows, and leaves beside the table how many it has
// looked at, how many failed, and the first of these. The batch behind them adds
// up, keeps the first rows of all and judges: what it says does not depend on how
// the work was shared out.

// CheckShare is the part that one of several batches has in a node's checks.
type CheckShare struct {
	Of    int `json:"of"`    // power of two: how many look at rows
	Index int `json:"index"` // of this one; Of: it adds up what they found
	// Scans is among how many the rows are shared out by a key that their table
	// does not lie by: each of them reads all.
	Scans int `json:"scans"`
}

// judges reports whether the batch looks at what others have found. nil: one
// batch does it all.
func (s *CheckShare) judges() bool { return s != nil && s.Index == s.Of }

// Looks reports whether others judge what the batch finds.
func (s *CheckShare) Looks() bool { return s != nil && s.Index < s.Of }

// cut gives the batch's share of the keys by which sides meet; ok is false if it
// has none.
func (s *CheckShare) cut(sides ...keyed) (c Cut, ok bool) {
	if !s.Looks() {
		return Cut{}, true
	}
	cuts := hashCuts(s.Scans)
	lies := func(k keyed) bool { return k.clustered() != nil }
	inBuckets := func(k keyed) bool { return k.matches(keyHash) }
	if !slices.ContainsFunc(sides, func(k keyed) bool { return !inBuckets(k) }) {
		cuts = hashCuts(s.Of)
	} else if !slices.ContainsFunc(sides, func(k keyed) bool { return !lies(k) }) {
		if ranges := sides[0].ranges(s.Of); ranges != nil {
			cuts = ranges
		}
	}
	if s.Index >= len(cuts) {
		return Cut{}, false
	}
	return cuts[s.Index], true
}

// rows gives the slices of the batch's share of a table's rows.
func (s *CheckShare) rows(t *Table) []PartSlice {
	if !s.Looks() {
		return wholeTable(t)
	}
	rows := t.Rows()
	return rowRange(t, rows*int64(s.Index)/int64(s.Of), rows*int64(s.Index+1)/int64(s.Of))
}

// checkShares decides among how many batches the checks of a node are shared
// out; 1: one batch does it all.
func (p *Planner) checkShares(n *script.Node, in Inputs, sizes []size) int {
	if n.Table == nil || !slices.ContainsFunc(n.Checks, shared) && len(uniqueIndexes(n)) == 0 {
		return 1
	}
	var leftRows int64
	if in.Reader != nil {
		leftRows = in.Reader.Rows()
	}
	bytes := estimateBytes(n, sizes, leftRows)
	for _, target := range n.CheckedTables() {
		bytes = max(bytes, in.Named[target.Table.Name].Bytes())
	}
	if bytes <= p.Budget.SmallBytes {
		return 1
	}
	return p.bucketsFor(bytes, joinFactor)
}

// shared reports whether a check is shared out; others are one scan of few columns.
func shared(c *script.Check) bool {
	switch c.Kind {
	case script.CheckRows, script.CheckFreshness:
		return false
	case script.CheckReconcile:
		return len(c.By) > 0
	}
	return true
}

// checkWorks are the batches that check a node's rows, of which the last judges.
func (p *Planner) checkWorks(shares, phase int) []Work {
	if shares == 1 {
		return []Work{{Check: true, Phase: phase}}
	}
	scans := min(shares, p.fewScans())
	var works []Work
	for i := range shares {
		works = append(works, Work{Check: true, Phase: phase, Share: &CheckShare{Of: shares, Index: i, Scans: scans}})
	}
	return append(works, Work{Check: true, Phase: phase + 1, Share: &CheckShare{Of: shares,
		Index: shares, Scans: scans}})
}

// keyOf is the order of fields as they are: the key by which rules compare rows.
func keyOf(fields []string) expr.Order {
	key := make(expr.Order, len(fields))
	for i, f := range fields {
		key[i].Field = f
	}
	return key
}

// checked is the input of a batch's share of a node's checks.
type checked struct {
	own   *Table      // nil: the node writes files, whose rows are rows
	rows  checkedRows // of all shares
	share *CheckShare
	paths Paths
	read  func(*Table, []PartSlice) // told what rules look at; nil: nobody asks
}

func (c checked) reads(t *Table, slices []PartSlice) {
	if c.read != nil {
		c.read(t, slices)
	}
}

// each returns the rows of the share, for a rule that looks at rows one by one.
func (c checked) each() checkedRows {
	if !c.share.Looks() {
		return c.rows
	}
	slices := c.share.rows(c.own)
	c.reads(c.own, slices)
	return tableRows(c.own, slices, c.paths)
}

// once returns the rows for a rule that is not shared out; ok is false if the rule is another batch's.
func (c checked) once() (rows checkedRows, ok bool) {
	if ok = !c.share.Looks() || c.share.Index == 0; ok && c.read != nil {
		c.reads(c.own, wholeTable(c.own))
	}
	return c.rows, ok
}

// byKey returns the rows for a rule that compares rows by a key, and those of the target table, if there is
// one.
func (c checked) byKey(key expr.Order, target *Table, targetKey expr.Order, fields []string) (v keyedRows, ok bool) {
	v.rows = c.rows
	other := keyed{target, targetKey}
	sides := []keyed{{c.own, key}}
	if target != nil {
		sides = append(sides, other)
	}
	cut, ok := c.share.cut(sides...)
	if ok && c.share.Looks() {
		v.rows.from, v.rows.order = sides[0].rows(cut, c.paths, allFields(c.own.Layout), "w")
	}
	if ok && c.share.Looks() {
		c.reads(c.own, sides[0].slices(cut))
	}
	if target != nil {
		if ok {
			c.reads(target, other.slices(cut))
		}
		v.other, v.otherOrder = other.rows(cut, c.paths, fields, "r")
		v.ref, v.otherUnknown = columns{"r": target.Layout}.ref, target.Scattered()
	}
	return v, ok
}

// keyedRows are rows of a node, and of a table that they are compared with.
type keyedRows struct {
	rows       checkedRows
	other      string // "(SELECT …) AS r"
	otherOrder []string
	ref        func(expr.Ref) string

	otherUnknown bool // as checkedRows.unknown
}

// foundTable gathers what a batch finds: failing rows with their rule and place,
// and one row without place for each rule, and for the batch, that says how much.
const (
	foundTable = "__found"
	foundRule  = "__rule"  // its number; foundBatch: what the batch read
	foundAt    = "__at"    // sorts like the failing rows of the rule
	foundTotal = "__total" // JSON of a total; for foundBatch what it read
	foundBatch = -1
)

// total is the finding of a share by a rule.
type total struct {
	Checked  int64  `json:"checked,omitempty"`
	Failed   int64  `json:"failed,omitempty"`
	Message  string `json:"message,omitempty"`
	Measured string `json:"measured,omitempty"`
}

// placeSQL sorts like rows in an order of columns.
func placeSQL(order []string) string {
	return "hex(create_sort_key(" + strings.Join(order, ", 'ASC NULLS LAST', ") + ", 'ASC NULLS LAST'))"
}

// begin makes the table of what is found.
func (x *inspection) begin(ctx context.Context, db engine.Querier) error {
	_, err := oneRow(ctx, db,
		fmt.Sprintf("CREATE OR REPLACE TEMP TABLE %s AS SELECT %s, '' AS %s, '' AS %s, CAST(0 AS BIGINT) AS %s, '' "+
			"AS %s FROM %s WHERE false",
			foundTable, strings.Join(x.rows.stored(), ", "), failedMessage, foundAt, foundRule,
			foundTotal, x.rows.from))
	return err
}

// readsText names the parts that the checks read: what was found in others does not count.
func (x *inspection) readsText() string {
	sum := sha256.New()
	for _, key := range x.reads {
		fmt.Fprintln(sum, key)
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// leave writes down how much a share has found, for who adds up.
func (x *inspection) leave(ctx context.Context, db engine.Querier) error {
	values := []string{fmt.Sprintf("(%d, %s)", foundBatch, sqltext.String(x.readsText()))}
	for i, r := range x.rules {
		if r.absent {
			continue
		}
		res := x.results[i]
		data, err := json.Marshal(total{res.Checked, res.Failed, res.Message, res.Measured})
		if err != nil {
			return fmt.Errorf("check %s: %w", r.name, err)
		}
		values = append(values, fmt.Sprintf("(%d, %s)", i, sqltext.String(string(data))))
	}
	_, err := oneRow(ctx, db, fmt.Sprintf("INSERT INTO %s (%s, %s) VALUES %s", foundTable, foundRule, foundTotal,
		strings.Join(values, ", ")))
	return err
}

// addUp takes in what the shares have left. complete is false if one of them
// is not there, or has read other parts than there are now: the table that rows
// are compared with may have been written again since.
func (x *inspection) addUp(ctx context.Context, db engine.Querier, share CheckShare) (complete bool, err error) {
	if len(x.found) == 0 {
		return false, nil
	}
	query := fmt.Sprintf("CREATE TEMP TABLE %s AS SELECT * FROM read_parquet(%s, hive_partitioning = false)",
		foundTable, sqltext.Strings(x.found))
	if _, err := oneRow(ctx, db, query); err != nil {
		return false, err
	}
	batches, err := oneRow(ctx, db, fmt.Sprintf("SELECT count(*) FROM %s WHERE %s = %d AND %s = %s",
		foundTable, foundRule, foundBatch, foundTotal, sqltext.String(x.readsText())))
	if err != nil || asInt(batches[0]) != int64(share.Of) {
		return false, err
	}
	for i, r := range x.rules {
		list, err := texts(ctx, db, fmt.Sprintf("SELECT %s FROM %s WHERE %s = %d AND %s IS NOT NULL",
			foundTotal, foundTable, foundRule, i, foundTotal))
		if err != nil {
			return false, err
		}
		res := &x.results[i]
		for _, text := range list {
			var t total
			if err := json.Unmarshal([]byte(text), &t); err != nil {
				return false, fmt.Errorf("read what check %s found: %w", r.name, err)
			}
			res.Checked, res.Failed = res.Checked+t.Checked, res.Failed+t.Failed
			if t.Message != "" {
				res.Message = t.Message
			}
			if t.Measured != "" {
				res.Measured = t.Measured
			}
		}
	}
	return true, nil
}
