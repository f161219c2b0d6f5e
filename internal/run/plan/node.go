package plan

import (
	"context"
	"encoding/json"
	"fmt"
	"math/bits"
	"slices"

	"thalweg/internal/base/budget"
	"thalweg/internal/base/fault"
	"thalweg/internal/io/files"
	"thalweg/internal/lang/expr"
	"thalweg/internal/lang/script"
	"thalweg/internal/run/engine"
	"thalweg/internal/store/state"
)

// Limits of a plan.
const (
	batchesMax = 32_000 // of a node
	bucketsMax = 1_024  // of a table
	// batchesPerSlot evens out batches of unequal cost.
	batchesPerSlot = 4
	// joinFactor is the memory for a right side, as a multiple of its uncompressed bytes. It covers hash
	// table or sorted rows, and the row group being written (docs/decisions/0003-memory-budget.md).
	joinFactor = 6
	// gatherFactor takes joinFactor's place where values are gathered: DuckDB puts
	// none of them aside, and some buckets are larger than others
	// (docs/decisions/0031-lookups.md).
	gatherFactor = 8
	// leanBytes is the wanted memory of a lookup's bucket even where there is more: more in flight makes
	// nothing faster (docs/decisions/0003-memory-budget.md).
	leanBytes = 1 << 30
	// scansMax limits the reads of a table, each filtered by the hash of its key, that are preferred to
	// writing it in buckets (docs/decisions/0002-parts.md).
	scansMax = 4
	// rowGroupRowsMin: reading some rows of a row group costs as much as
	// reading all, so a part is not cut into less than one.
	rowGroupRowsMin = engine.PartRowGroupRows
	// rowGroupRowsFew is the least that a row group of a part has: DuckDB's vector.
	rowGroupRowsFew = 2_048
	// bucketGroupRowsMin is the least where rows lie in buckets and are not wide
	// (docs/decisions/0031-lookups.md).
	bucketGroupRowsMin = 4_096
	// pythonRows limits the rows of a Python batch whose rows are small. Reading a row group twice costs
	// nothing beside computing it.
	pythonRows = 20_000
	// pythonBytes is the least that a Python batch has of rows that weigh much.
	pythonBytes = 4 << 20
)

// Work is the stored input of a batch: slices of files and parts.
type Work struct {
	Files []files.Slice   `json:"files,omitempty"`
	Scans [][]files.Slice `json:"scans,omitempty"` // of the files that a query reads
	// rows that it reads beside the CSV of Scans, whose rows nobody has counted
	Counted int64            `json:"counted,omitempty"`
	Parts   []PartSlice      `json:"parts,omitempty"` // of the reader's table; with a Cut, those that have its rows
	Cut                      // of work by key; none: Parts, and all of other tables
	Inner   map[string]*Work `json:"inner,omitempty"`    // what it computes of ephemeral tables, by their names
	FromRow int64            `json:"from_row,omitempty"` // canonical rows [FromRow, ToRow): files written per batch
	ToRow   int64            `json:"to_row,omitempty"`
	Ranged  bool             `json:"ranged,omitempty"`
	Check   bool             `json:"check,omitempty"`    // it checks the node's rows and writes none
	Share   *CheckShare      `json:"share,omitempty"`    // of the checks; nil: all
	Found   []state.Part     `json:"-"`                  // what the other shares have left, for the one that judges
	Again   bool             `json:"-"`                  // it has all rows at hand: see ErrLookAgain
	Phase   int              `json:"-"`                  // see state.BatchSpec.Phase
	BadCaps bool             `json:"bad_caps,omitempty"` // it compares the bad rows of the others with the node's caps
	// Manifest says that it writes the manifest of the files that the others have written.
	Manifest bool `json:"manifest,omitempty"`
	Only     bool `json:"only,omitempty"` // it does all that there is to read; set where bad rows are counted
	finer    int  // how many times finer than planned its keys are cut, for want of memory; 0: as planned
}

// Decode reads a batch's work from its spec.
func (w *Work) Decode(spec state.BatchSpec) error {
	if err := json.Unmarshal(spec.Work, w); err != nil {
		return fmt.Errorf("read the work of batch %d: %w", spec.Batch, err)
	}
	return nil
}

// Inputs are the complete tables that a node reads.
type Inputs struct {
	Reader *Table            // nil for file_table
	Lookup *Table            // nil without lookup
	Named  map[string]*Table // those of script.Node.Named, by the table's name
	Query  *Table            // those of a query as one (see QueryTables)
	Places files.Places      // of the files that the node reads
	placed bool              // its rows are read with their positions: see Table.places
}

// Tables lists all tables that n reads.
func (in Inputs) Tables(n *script.Node) []*Table {
	var out []*Table
	if in.Reader != nil {
		for _, m := range in.Reader.each() {
			out = append(out, m.Table)
		}
	}
	if in.Lookup != nil {
		out = append(out, in.Lookup)
	}
	for _, source := range n.Named() {
		if t := in.Named[source.Table.Name]; t != nil {
			out = append(out, t)
		}
	}
	return out
}

// Foreign lists what has written those of the tables that n reads, also inside
// of ephemeral ones, that are not of a run.
func (in Inputs) Foreign(n *script.Node, run state.RunKey) []state.NodeKey {
	var out []state.NodeKey
	for _, t := range in.Tables(n) {
		switch {
		case t.Inner != nil:
			out = append(out, t.Inner.Foreign(t.Node, run)...)
		case t.Run != run:
			out = append(out, t.Source().NodeKey)
		}
	}
	return out
}

// Planner plans the nodes of one script within one budget.
type Planner struct {
	Script *script.Script
	Budget budget.Budget
	Fuse   bool         // tables that can be ephemeral are
	Dir    string       // that Python code works in; see python.Program
	Places files.Places // that previews look at inputs from
}

// PlanNode decides the layout of n's table and its batches.
func (p *Planner) PlanNode(ctx context.Context, n *script.Node, in Inputs) (NodePlan, []state.BatchSpec, error) {
	plan := NodePlan{Version: formatVersion, Sources: SourcesOf(n, in)}
	in, err := p.measured(ctx, in)
	if err != nil {
		return plan, nil, err
	}
	works, sizes, err := p.works(ctx, n, in, &plan)
	if err != nil {
		return plan, nil, err
	}
	if len(works) > batchesMax {
		return plan, nil, &fault.Error{Kind: fault.Script,
			Message: fmt.Sprintf("the node would have %d batches; the limit is %d", len(works), batchesMax),
			Hint:    "give more with {{set memory}}, which makes batches larger, or read the files in several nodes"}
	}
	if n.Table != nil {
		plan.Table, plan.Layout, plan.Unique = n.Table.Name, p.layout(n, in, sizes), uniqueKeys(n)
	}
	if hasChecks(n) {
		works, sizes = p.checkWork(n, in, works, sizes)
		plan.Sides = map[string]Layout{state.SideFailed: failedLayout(rowLayout(n))}
	}
	works, sizes = plan.countBadRows(n, works, sizes)
	if n.Out != nil && n.Out.Manifest && !n.Out.Dir() {
		works, sizes = append(works, Work{Manifest: true, Phase: lastPhase(works) + 1}), append(sizes, size{})
	}
	specs := make([]state.BatchSpec, len(works))
	for i, w := range works {
		w.name(in)
		rows := sizes[i].rows
		if w.uncounted() {
			w.Counted, rows = rows, -1
		}
		data, err := json.Marshal(w)
		if err != nil {
			return plan, nil, fmt.Errorf("plan %s: %w", n.Name, err)
		}
		specs[i] = state.BatchSpec{Batch: i, Phase: w.Phase, Class: string(n.Type), RowsIn: rows,
			BytesIn: sizes[i].bytes, Work: data}
	}
	return plan, specs, nil
}

// lastPhase is the phase of the batches that come last.
func lastPhase(works []Work) (last int) {
	for _, w := range works {
		last = max(last, w.Phase)
	}
	return last
}

// SourcesOf returns the source of each table that n reads.
func SourcesOf(n *script.Node, in Inputs) map[string]Source {
	out := map[string]Source{}
	for _, t := range in.Tables(n) {
		out[t.Node.Table.Name] = t.Source()
	}
	return out
}

// Source identifies the rows of the table.
func (t *Table) Source() Source {
	return Source{NodeKey: state.NodeKey{RunKey: t.Run, Node: t.Writer}, Identity: t.Identity}
}

// size of a batch's input; rows is -1 where only reading would tell.
type size struct{ rows, bytes int64 }

func (p *Planner) works(ctx context.Context, n *script.Node, in Inputs, plan *NodePlan) ([]Work, []size, error) {
	switch {
	case in.Reader.Ephemeral() || in.Lookup.Ephemeral():
		return p.fusedWorks(ctx, n, in, plan)
	case n.Files != nil:
		return p.fileWorks(ctx, n, in)
	case n.Query != nil:
		return p.queryWorks(ctx, n, in)
	case n.Lookup != nil:
		return p.joinWorks(n, in, plan)
	case n.Out != nil:
		return p.outputWorks(n, in)
	case n.Type == script.Distinct:
		return p.distinctWorks(n, in)
	case n.PyTable != nil:
		return p.pyTableWorks(n, in)
	}
	groups := sliceParts(in.Reader, p.batchCount(in.Reader), rowGroupRowsMin)
	if n.PyCalc != nil {
		groups = p.pythonGroups(in.Reader)
	}
	works, sizes := sliceWorks(in.Reader, groups)
	return works, sizes, nil
}

func (p *Planner) fileWorks(ctx context.Context, n *script.Node, in Inputs) ([]Work, []size, error) {
	groups, err := files.PlanSlicesBy(ctx, n.Files, in.Places, func(total int64) int64 {
		return ceilDiv(total, p.batchesOf(total))
	}, batchesMax)
	if err != nil {
		return nil, nil, err
	}
	works := make([]Work, len(groups))
	sizes := make([]size, len(groups))
	for i, g := range groups {
		works[i].Files, sizes[i] = g, sizeOf(g)
	}
	return works, sizes, nil
}

// sizeOf adds up slices of files.
func sizeOf(read []files.Slice) (s size) {
	for _, one := range read {
		s.bytes += one.Bytes
		if one.Count < 0 {
			s.rows = -1
		} else if s.rows >= 0 {
			s.rows += one.Count
		}
	}
	return s
}

func sliceWorks(t *Table, groups [][]PartSlice) ([]Work, []size) {
	works := make([]Work, len(groups))
	sizes := make([]size, len(groups))
	for i, g := range groups {
		works[i].Parts = g
		sizes[i].rows, sizes[i].bytes = sliceRows(t, g)
	}
	return works, sizes
}

// batchCount returns the number of batches that read a table.
func (p *Planner) batchCount(t *Table) int {
	return int(min(p.batchesOf(t.Bytes()), batchesMax))
}

// pythonGroups cuts a table for Python, where rows weigh little and cost much:
// several batches, so that reading and writing one overlaps with computing
// another, and small ones, so that little is lost with one.
func (p *Planner) pythonGroups(t *Table) [][]PartSlice {
	want := max(p.batchesOf(t.Bytes()), ceilDiv(t.Rows(), pythonRows))
	groups := sliceParts(t, int(min(want, batchesMax)), pythonRows/2)
	if slots := p.Budget.Slots; len(groups) < slots && t.Bytes() > p.Budget.SmallBytes {
		// Few rows that weigh much, as packed ones do: a slot that has nothing to compute costs more than
		// reading their row group once for each slot.
		return sliceParts(t, slots, max(pythonBytes*t.Rows()/t.Bytes(), 1))
	}
	return groups
}

// batchesOf returns the number of batches for so many bytes: none larger than wanted, and enough to keep the
// slots busy to the end.
func (p *Planner) batchesOf(bytes int64) int64 {
	want := ceilDiv(bytes, p.Budget.BatchBytes)
	if bytes > p.Budget.SmallBytes {
		want = max(want, int64(batchesPerSlot*p.Budget.Slots))
	}
	return max(want, 1)
}

// joinWorks decides between cutting the left side, when the right one is
// small enough for each batch to hold it, and meeting bucket by bucket.
func (p *Planner) joinWorks(n *script.Node, in Inputs, plan *NodePlan) ([]Work, []size, error) {
	plan.Join = &JoinPlan{Buckets: p.joinBuckets(n, in)}
	if plan.Join.Buckets == 0 {
		works, sizes := p.leftWorks(in.Reader)
		return works, sizes, nil
	}
	works, sizes := plan.Join.works(n, in)
	works, sizes = p.spreadHot(n, in, works, sizes)
	return works, sizes, nil
}

// works are the batches of a lookup whose sides are both cut by key, as the right one lies.
func (j *JoinPlan) works(n *script.Node, in Inputs) ([]Work, []size) {
	cuts := rightSide(n, in).cuts(j.Buckets)
	j.Buckets = len(cuts)
	works, sizes := cutWorks(cuts, in.Reader)
	for i := range sizes {
		sizes[i].bytes += in.Lookup.Bytes() / int64(j.Buckets)
	}
	return works, sizes
}

// leftWorks cuts the left side of a lookup.
func (p *Planner) leftWorks(t *Table) ([]Work, []size) {
	want := 1
	if t.Bytes() > p.Budget.SmallBytes {
		want = p.batchCount(t)
	}
	return sliceWorks(t, sliceParts(t, want, rowGroupRowsMin))
}

// cutWorks makes a batch of each cut. How many of the table's rows are in each
// is not known: they are shared out evenly.
func cutWorks(cuts []Cut, t *Table) ([]Work, []size) {
	works := make([]Work, len(cuts))
	sizes := make([]size, len(cuts))
	rows, n := t.Rows(), int64(len(cuts))
	for i := range works {
		works[i].Cut = cuts[i]
		sizes[i] = size{rows*int64(i+1)/n - rows*int64(i)/n, t.Bytes() / n}
	}
	return works, sizes
}

// joinBuckets returns the number of buckets that a lookup needs, 0 if every batch can read the whole right
// side. What a bucket holds has to fit. A bucket of the left side, and a right one that is only read, must be
// no larger than a batch.
func (p *Planner) joinBuckets(n *script.Node, in Inputs) int {
	right := in.Lookup.Bytes()
	if right <= p.Budget.BroadcastBytes {
		return 0
	}
	held := right
	if !gathers(n) { // DuckDB makes its hash table of the smaller side, and the other one passes by
		left := in.Reader.Bytes()
		if n.Lookup.Group { // a value of each left row's group
			left += in.Reader.Rows() * (right / max(in.Lookup.Rows(), 1))
		}
		held = min(held, left)
	}
	lean, passing := powerOfTwo(ceilDiv(held*factorOf(n), leanBytes)), powerOfTwo(ceilDiv(right, leanBytes))
	if in.Lookup.Layout.Buckets == 0 { // each bucket reads all of it
		lean, passing = min(lean, scansMax), 1
	}
	needed := max(p.bucketsFor(held, factorOf(n)), lean, passing)
	cuts := rightSide(n, in).cuts(min(max(needed, p.leftBuckets(in.Reader.Bytes(), true)), bucketsMax))
	return min(max(needed, p.leftBuckets(in.Reader.Bytes(), leftSide(n, in).lies(cuts[0]))), bucketsMax)
}

// leftBuckets returns the number of buckets that the left side of a lookup asks for: none larger than a batch. Of a
// table that does not lie by the key each bucket reads all: there are no more than it needs to fit, or few.
func (p *Planner) leftBuckets(bytes int64, lies bool) int {
	want := powerOfTwo(ceilDiv(bytes, p.Budget.BatchBytes))
	if !lies {
		want = min(want, max(scansMax, p.bucketsFor(bytes, joinFactor)))
	}
	return want
}

// fewScans is how many reads of a table are better than to put it into buckets.
// It is a power of two, as numbers of buckets are.
func (p *Planner) fewScans() int { return powerOfTwo(int64(max(scansMax, p.Budget.Slots))) }

// gathers reports whether a lookup puts the right rows of a key in order, and so
// holds them all.
func gathers(n *script.Node) bool {
	return n.Lookup.Group && slices.ContainsFunc(n.Table.Fields, func(f *script.Field) bool {
		return f.Expr.Ordered() || !f.Expr.Aggregate() && refersTo(f.Expr, "l")
	})
}

// factorOf returns the multiple of a lookup's held bytes that has to fit into an instance's memory.
func factorOf(n *script.Node) int64 {
	if gathers(n) {
		return gatherFactor
	}
	return joinFactor
}

// bucketsFor gives the buckets in which a table of so many bytes, which has to
// fit factor times, can be joined or grouped within an instance's memory, and
// with all slots at work.
func (p *Planner) bucketsFor(bytes, factor int64) int {
	return min(powerOfTwo(max(ceilDiv(bytes*factor, p.Budget.SlotEngineBytes), int64(p.Budget.Slots))), bucketsMax)
}

// outputWorks: one batch writes one file. With the batch's number in the
// file's name the script's count of batches is the count of files, each
// with an equal share of the rows in canonical order.
func (p *Planner) outputWorks(n *script.Node, in Inputs) ([]Work, []size, error) {
	rows, bytes := in.Reader.Rows(), in.Reader.Bytes()
	if !n.Out.PerBatch() {
		return []Work{{Parts: wholeTable(in.Reader)}}, []size{{rows, bytes}}, nil
	}
	count := int64(n.Reader.ExpectedBatches)
	works := make([]Work, count)
	sizes := make([]size, count)
	for i := range count {
		works[i] = Work{Ranged: true, FromRow: rows * i / count, ToRow: rows * (i + 1) / count}
		sizes[i] = size{works[i].ToRow - works[i].FromRow, bytes / count}
	}
	return works, sizes, nil
}

func (p *Planner) distinctWorks(n *script.Node, in Inputs) ([]Work, []size, error) {
	buckets := 1
	if bytes := in.Reader.Bytes(); bytes > p.Budget.SmallBytes {
		buckets = p.bucketsFor(bytes, joinFactor)
	}
	k := keyed{table: in.Reader}
	if key := distinctKey(n, in.Reader.Layout); key != nil {
		k.key = key
	}
	works, sizes := cutWorks(k.cuts(buckets), in.Reader)
	return works, sizes, nil
}

// layout decides how n's table will lie, from what will read it.
func (p *Planner) layout(n *script.Node, in Inputs, sizes []size) Layout {
	l := layoutOf(n.Table.Fields)
	l.OrderCols = orderColsOf(n, in)
	if n.Query != nil && len(sizes) > 1 {
		if l.Sort = querySort(n, l); l.Sort != nil {
			l.OrderCols = 2 // the key, and what tells rows apart that are the same
		}
	}
	var leftRows int64
	if in.Reader != nil {
		leftRows = in.Reader.Rows()
	}
	key, factor := p.wantedKey(n)
	bytes := estimateBytes(n, sizes, leftRows)
	buckets, few := p.bucketsFor(bytes, factor), p.fewScans()
	if p.Budget.Far && bytes > p.Budget.BroadcastBytes { // each worker that reads a bucket would fetch all of it
		few = 1
	}
	if buckets <= few {
		return l
	}
	if key != nil {
		l.Buckets, l.Key, l.Hash, l.BucketKey = buckets, key, keyHash, bucketKey(keyHash, key, l.types())
		l.OrderCols = max(l.OrderCols, 1)
	}
	return l
}

// orderColsOf counts the order columns that n's rows carry by themselves.
func orderColsOf(n *script.Node, in Inputs) int {
	if in.Reader == nil {
		return 0
	}
	left := in.Reader.Layout.OrderCols
	switch {
	case n.PyTable != nil && n.PyTable.GroupBy == nil:
		return 0 // in the order in which the function returned them
	case n.PyTable != nil:
		return in.Reader.width() + 1 // a group's first row, and rows of its result
	case n.Lookup != nil && !n.Lookup.Group:
		return in.Reader.width() + in.Lookup.width()
	case n.Lookup != nil, n.Type == script.Distinct:
		return in.Reader.width()
	case n.Tag != nil && left > 0:
		return left + 1 // rows of the same origin: in the order of the tags
	}
	return left
}

// wantedKey is the key by which the first lookup to read n's table would like it:
// as its right side if there is one, else as its left; and how many times what is
// read of it has to fit into an instance's memory.
func (p *Planner) wantedKey(n *script.Node) (key expr.Order, factor int64) {
	for _, reader := range p.Script.Nodes {
		if reader.Lookup == nil || reader.Lookup.Index.Node != n {
			continue
		}
		if factor = max(factor, factorOf(reader)); key == nil {
			key = sideKey(reader, true)
		}
	}
	if key != nil {
		return key, factor
	}
	for _, reader := range p.Script.Nodes {
		if reader.Lookup != nil && reader.Reader.Reads(n) && hasFields(n, sideKey(reader, false)) {
			return sideKey(reader, false), joinFactor
		}
	}
	for _, reader := range p.Script.Nodes {
		if reader.Query != nil && reader.Query.By != nil &&
			slices.ContainsFunc(reader.Query.Inputs, func(i script.QueryInput) bool { return i.Creator == n }) {
			return queryKey(reader), joinFactor
		}
		if reader.PyTable != nil && reader.PyTable.GroupBy != nil && reader.Reader.Reads(n) &&
			hasFields(n, groupOrder(reader)) {
			return groupOrder(reader), joinFactor
		}
	}
	for _, reader := range p.Script.Nodes {
		if reader.Type == script.Distinct && reader.Reader.Reads(n) {
			if key = distinctKey(reader, layoutOf(n.Table.Fields)); key != nil {
				return key, joinFactor
			}
		}
	}
	return nil, joinFactor
}

// hasFields reports whether n's table has all fields of a key: of several tables
// that are read as one, some may be without.
func hasFields(n *script.Node, key expr.Order) bool {
	return !slices.ContainsFunc(key, func(k expr.OrderItem) bool { return n.Table.Field(k.Field) == nil })
}

// sideKey is a lookup's key in terms of the right table's fields or of the left's.
func sideKey(n *script.Node, right bool) expr.Order {
	key := append(expr.Order{}, n.Lookup.Index.Key...)
	if !right {
		for i := range key {
			key[i].Field = n.Lookup.JoinOn[i]
		}
	}
	return key
}

// estimateBytes guesses what n's table will weigh: at least what comes in, or
// typical widths of its columns, because formulas build text.
func estimateBytes(n *script.Node, sizes []size, leftRows int64) int64 {
	const stringBytes = 24
	var width, rows, bytes int64
	for _, f := range n.Table.Fields {
		width += 8
		if f.Type == expr.String {
			width += stringBytes - 8
		}
	}
	for _, s := range sizes {
		rows += max(s.rows, 0)
		bytes += s.bytes
	}
	if n.Lookup != nil && n.Lookup.Group && !joinsText(n) {
		return leftRows * width
	}
	return max(bytes, rows*width)
}

// joinsText reports whether a grouped lookup gathers its right rows' text, so
// that its table weighs what they do.
func joinsText(n *script.Node) bool {
	for _, f := range n.Table.Fields {
		if f.Type == expr.String && f.Expr.Ordered() {
			return true
		}
	}
	return false
}

func ceilDiv(a, b int64) int64 { return (a + b - 1) / max(b, 1) }

func powerOfTwo(n int64) int {
	if n <= 1 {
		return 1
	}
	return 1 << bits.Len64(uint64(n-1))
}
