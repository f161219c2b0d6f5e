package cassandra

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	gocql "github.com/apache/cassandra-gocql-driver/v2"

	"thalweg/internal/base/fault"
	driver "thalweg/internal/store/cassandra"
	"thalweg/internal/store/state"
)

// Kinds of rows of a plan. The numbers are stored.
const (
	planHeader = 0 // in headerSlice
	planSpec   = 1
	planInput  = 2
)

// Limits of plans.
const (
	sliceRows   = 1_000    // batches, and inputs, of a partition of a plan. The number is stored
	headerSlice = -1       // the partition of what there is once
	batchBytes  = 24 << 10 // of rows that are written together
	batchRows   = 30       // what Amazon Keyspaces takes
	workRows    = 100      // batches of a page with their work, which may be large
	plansMax    = 256      // that are remembered
	recordBytes = 64 << 10 // of a record, up to which it is remembered as well
)

// headerRow is the part of a plan that exists once. The content of a digest never changes.
type headerRow struct {
	Record []byte      `json:"record"`
	Layout []layoutRun `json:"layout"`
}

// layoutRun is batches that follow each other and are alike.
type layoutRun struct {
	First int    `json:"first"`
	Count int    `json:"count"`
	Phase int    `json:"phase"`
	Class string `json:"class,omitempty"`
}

// layout says of which phase and class each batch of a plan is.
type layout []layoutRun

// phases counts the batches of each phase.
func (l layout) phases() map[int]int {
	phases := map[int]int{}
	for _, r := range l {
		phases[r.Phase] += r.Count
	}
	return phases
}

// planKey names a plan of a node.
type planKey struct {
	node   state.NodeKey
	digest string
}

// specRow is a planned batch, in the column data of its row; its work is in one of its own.
type specRow struct {
	Phase   int    `json:"phase,omitempty"`
	Class   string `json:"class,omitempty"`
	RowsIn  int64  `json:"rows_in"`
	BytesIn int64  `json:"bytes_in"`
}

// StagePlan implements state.Store.
func (s *Store) StagePlan(ctx context.Context, key state.NodeKey, digest string, piece state.PlanPiece) error {
	o := s.operation("StagePlan", "store a piece of the plan of "+nameNode(key))
	if _, err := o.read(ctx, key); err != nil {
		return o.explain(err)
	}
	return o.explain(o.stage(ctx, key, digest, piece))
}

// planRow is a row of a plan that is to be written.
type planRow struct {
	slice int
	text  string
	args  []any
	bytes int
}

// stage writes a piece of a plan: the same whoever writes it. It marks its slices, and these as well.
func (o *operation) stage(ctx context.Context, key state.NodeKey, digest string, piece state.PlanPiece,
	also ...int) error {
	var rows []planRow
	for _, b := range piece.Batches {
		data, err := o.codec.pack(specRow{Phase: b.Phase, Class: b.Class, RowsIn: b.RowsIn, BytesIn: b.BytesIn})
		if err != nil {
			return err
		}
		rows = append(rows, planned(key, digest, b.Batch/sliceRows, planSpec, b.Batch, data, b.Work))
	}
	for i, in := range piece.Inputs {
		in.Time = stored(in.Time)
		data, err := o.codec.pack(in)
		if err != nil {
			return err
		}
		rows = append(rows, planned(key, digest, (piece.First+i)/sliceRows, planInput, piece.First+i, data, nil))
	}
	for _, r := range rows {
		also = append(also, r.slice)
	}
	if err := o.markSlices(ctx, key, digest, also); err != nil {
		return err
	}
	return o.writePlan(ctx, rows)
}

func planned(key state.NodeKey, digest string, slice int, kind int8, n int, data, work []byte) planRow {
	text := `INSERT INTO state_plans (workspace, run, node, digest, slice, kind, n, data) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`
	args := ofNode(key).with(digest, slice, kind, int64(n), data)
	if work != nil {
		text, args = `INSERT INTO state_plans (workspace, run, node, digest, slice, kind, n, data, work) VALUES (?, `+
			`?, ?, ?, ?, ?, ?, ?, ?)`, append(args, work)
	}
	return planRow{slice: slice, text: text, args: args, bytes: len(data) + len(work)}
}

// writePlan writes rows, those of a partition together as far as they are small.
func (o *operation) writePlan(ctx context.Context, rows []planRow) error {
	slices.SortStableFunc(rows, func(a, b planRow) int { return cmp.Compare(a.slice, b.slice) })
	var groups [][]planRow
	bytes := 0
	for i, r := range rows {
		last := len(groups) - 1
		if i == 0 || groups[last][0].slice != r.slice || bytes+r.bytes > batchBytes || len(groups[last]) == batchRows {
			groups, bytes = append(groups, nil), 0
			last++
		}
		groups[last], bytes = append(groups[last], r), bytes+r.bytes
	}
	return together(ctx, len(groups), atOnce,
		func(ctx context.Context, i int) error { return o.writeRows(ctx, groups[i]) })
}

// markSlices writes what finds partitions of a plan again. It comes before what is in them.
func (o *operation) markSlices(ctx context.Context, key state.NodeKey, digest string, of []int) error {
	slices.Sort(of)
	for some := range slices.Chunk(slices.Compact(of), batchRows) {
		rows := make([]planRow, len(some))
		for i, slice := range some {
			rows[i] = planRow{text: `INSERT INTO state_plan_slices (workspace, run, node, digest, slice) VALUES (?, ` +
				`?, ?, ?, ?)`, args: ofNode(key).with(digest, slice)}
		}
		if err := o.writeRows(ctx, rows); err != nil {
			return err
		}
	}
	return nil
}

// writeRows writes rows of one partition.
func (o *operation) writeRows(ctx context.Context, rows []planRow) (err error) {
	if len(rows) == 1 {
		return o.write(ctx, rows[0].text, rows[0].args...)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	start := time.Now()
	defer func() { o.told(start, Request{Err: err}) }()
	batch := o.session.Batch(gocql.UnloggedBatch)
	for _, r := range rows {
		batch = batch.Query(r.text, r.args...)
	}
	return driver.Asked(ctx, batch.ExecContext(ctx))
}

// AdoptPlan implements state.Store.
func (s *Store) AdoptPlan(ctx context.Context, key state.NodeKey, f state.Adoption) (standing string, err error) {
	o := s.operation("AdoptPlan", "plan "+nameNode(key))
	var l layout
	var digest string // of the plan that stands
	err = o.updateNode(ctx, key, func(ctx context.Context, n *nodeChange) (bool, error) {
		switch {
		case n.node.Epoch != f.Epoch:
			return false, state.ErrConflict
		case n.node.PlanDigest != "":
			digest = n.node.PlanDigest
			return false, nil
		case n.node.Status != state.Pending:
			return false, state.ErrConflict
		}
		if l == nil {
			var err error
			if l, err = o.prepare(ctx, key, f); err != nil {
				return false, err
			}
		}
		digest = f.Digest
		n.plan(f, l)
		return true, nil
	})
	if err != nil { // who has left may be decided all the same
		return "", err
	}
	return digest, nil
}

// prepare stages the rest of a plan, and its header behind it.
func (o *operation) prepare(ctx context.Context, key state.NodeKey, f state.Adoption) (layout, error) {
	if err := o.stage(ctx, key, f.Digest, f.Rest, headerSlice); err != nil {
		return nil, err
	}
	l, err := o.layOut(ctx, key, f)
	if err != nil {
		return nil, err
	}
	record := f.Record
	if record == nil {
		record = []byte{}
	}
	data, err := o.codec.pack(headerRow{Record: record, Layout: l})
	if err != nil {
		return nil, err
	}
	return l, o.writePlan(ctx, []planRow{planned(key, f.Digest, headerSlice, planHeader, 0, data, nil)})
}

// layOut says of which phase and class all batches of a plan are. What was staged
// before its last piece is read.
func (o *operation) layOut(ctx context.Context, key state.NodeKey, f state.Adoption) (layout, error) {
	if b := f.Rest.Batches; len(b) != f.Batches || len(b) > 0 && b[0].Batch != 0 {
		return o.lay(ctx, key, f.Digest, f.Batches)
	}
	var l layout
	for _, b := range f.Rest.Batches {
		l = l.follow(b)
	}
	return l, nil
}

// lay reads of which phase and class all batches of a staged plan are.
func (o *operation) lay(ctx context.Context, key state.NodeKey, digest string, batches int) (layout, error) {
	parts := make([]layout, (batches+sliceRows-1)/sliceRows+1)
	counts := make([]int, len(parts))
	err := together(ctx, len(parts), atOnce/2, func(ctx context.Context, slice int) error {
		return o.specs(ctx, key, digest, slice, 0, false, func(b state.BatchSpec) error {
			counts[slice]++
			parts[slice] = parts[slice].follow(b)
			return nil
		})
	})
	if err != nil {
		return nil, err
	}
	all, count := layout{}, 0
	for i, part := range parts {
		count += counts[i]
		for _, r := range part {
			all = all.add(r)
		}
	}
	if end := all.end(); count != batches || end != batches {
		return nil, fault.New(fault.Bug, "a plan of %d batches has %d stored", batches, count)
	}
	return all, nil
}

func (l layout) follow(b state.BatchSpec) layout {
	return l.add(layoutRun{First: b.Batch, Count: 1, Phase: b.Phase, Class: b.Class})
}

// add appends batches that come behind.
func (l layout) add(r layoutRun) layout {
	if n := len(l); n > 0 && l[n-1].Phase == r.Phase && l[n-1].Class == r.Class && l[n-1].First+
		l[n-1].Count == r.First {
		l[n-1].Count += r.Count
		return l
	}
	return append(l, r)
}

// phase is that of a batch.
func (l layout) phase(batch int) int {
	for _, r := range l {
		if batch < r.First+r.Count {
			return r.Phase
		}
	}
	return 0
}

func (l layout) end() int {
	if len(l) == 0 {
		return 0
	}
	return l[len(l)-1].First + l[len(l)-1].Count
}

// plan makes a stored plan the node's. A batch that was there in an earlier
// plan goes on counting its attempts: its segment has them.
func (n *nodeChange) plan(f state.Adoption, l layout) {
	node := n.node
	node.Status, node.PlanDigest, node.InputDigest, node.ReusedFrom = state.Running, f.Digest,
		f.InputDigest, f.ReusedFrom
	n.become(node)
	n.head.Total, n.head.Open = f.Batches, l.phases()
	*n.tally() = nodeSums{}
	n.tell(state.NodePlanned, f.Actor, f.Now, state.EventData{Status: state.Running, Batches: f.Batches,
		Digest: f.Digest, ReusedFrom: f.ReusedFrom})
}

// planHeader gives what there is once of a plan, unless it has gone.
func (o *operation) planHeader(ctx context.Context, key state.NodeKey, digest string) (header headerRow, err error) {
	at := planKey{key, digest}
	if known, ok := o.plans.get(at); ok && known.Record != nil {
		known.Record = slices.Clone(known.Record)
		return known, nil
	}
	err = o.query(ctx, 1, `SELECT data`+planOf+`-1 AND kind = 0 AND n = 0`, ofNode(key).with(digest),
		func(scan func(...any) error) error {
			var data []byte
			if err := scan(&data); err != nil {
				return err
			}
			return o.codec.unpack(data, &header)
		})
	if err == nil && header.Record != nil {
		known := headerRow{Layout: header.Layout}
		if len(header.Record) <= recordBytes {
			known.Record = slices.Clone(header.Record)
		}
		o.plans.put(at, known)
		o.latest.put(key, digest)
	}
	return header, err
}

// layout says of which phase and class the batches of a node's plan are.
func (o *operation) layout(ctx context.Context, key state.NodeKey, digest string) (layout, error) {
	if known, ok := o.plans.get(planKey{key, digest}); ok {
		return known.Layout, nil
	}
	header, err := o.planHeader(ctx, key, digest)
	if err == nil && header.Record == nil {
		err = o.planGone(ctx, key, digest, "plan")
	}
	return header.Layout, err
}

// layout is that of the node's plan. If that has gone since the node was read, the change
// will be lost, and decided again.
func (n *nodeChange) layout(ctx context.Context) (layout, error) {
	l, err := n.o.layout(ctx, n.key, n.node.PlanDigest)
	if errors.Is(err, errPurged) {
		n.c.rev, err = -1, nil
	}
	return l, err
}

// errPurged says that a plan has gone since its node was read, and what was asked for with it.
var errPurged = fmt.Errorf("the plan is not there any more: %w", state.ErrNotFound)

// planGone says why what should be there of a node's plan is not: errPurged, unless the
// node still has the plan.
func (o *operation) planGone(ctx context.Context, key state.NodeKey, digest, what string) error {
	again := *o
	again.serial = true
	m, err := again.read(ctx, key)
	switch {
	case err != nil:
		return err
	case m.node.PlanDigest != digest:
		return errPurged
	}
	return lost(fmt.Errorf("the %s of %s is not there, though the node has it", what, nameNode(key)))
}

// specs reads the batches of a slice of a plan from a number on, by number.
func (o *operation) specs(ctx context.Context, key state.NodeKey, digest string, slice, from int, work bool,
	each func(b state.BatchSpec) error) error {
	columns, rows := "n, data", sliceRows
	if work {
		columns, rows = "n, data, work", workRows
	}
	return o.query(ctx, rows, `SELECT `+columns+planOf+`? AND kind = 1 AND n >= ?`,
		ofNode(key).with(digest, slice, int64(from)), func(scan func(...any) error) error {
			b, err := o.scanSpec(scan, work)
			if err != nil {
				return err
			}
			return each(b)
		})
}

func (o *operation) scanSpec(scan func(...any) error, work bool) (b state.BatchSpec, err error) {
	var n int64
	var data []byte
	into := []any{&n, &data}
	if work {
		into = append(into, &b.Work)
	}
	if err := scan(into...); err != nil {
		return b, err
	}
	var row specRow
	err = o.codec.unpack(data, &row)
	b.Batch, b.Phase, b.Class, b.RowsIn, b.BytesIn = int(n), row.Phase, row.Class, row.RowsIn, row.BytesIn
	return b, err
}

// spec reads one batch of a plan.
func (o *operation) spec(ctx context.Context, key state.BatchKey, digest string) (b state.BatchSpec, err error) {
	found := false
	err = o.query(ctx, 1, `SELECT n, data, work`+planOf+`? AND kind = 1 AND n = ?`,
		ofNode(key.NodeKey).with(digest, key.Batch/sliceRows, int64(key.Batch)),
		func(scan func(...any) error) (err error) {
			b, err = o.scanSpec(scan, true)
			found = true
			return err
		})
	if err == nil && !found {
		err = o.planGone(ctx, key.NodeKey, digest, fmt.Sprintf("planned batch %d", key.Batch))
	}
	return b, err
}

// specsOf reads these batches of a plan, without their work.
func (o *operation) specsOf(ctx context.Context, key state.NodeKey, digest string,
	batches []int) (map[int]state.BatchSpec, error) {
	requests := bySlice(batches)
	found := make([][]state.BatchSpec, len(requests))
	err := together(ctx, len(requests), atOnce/2, func(ctx context.Context, i int) error {
		return o.query(ctx, valuesMax, `SELECT n, data`+planOf+`? AND kind = 1 AND n IN ?`,
			ofNode(key).with(digest, int(requests[i][0])/sliceRows, requests[i]), func(scan func(...any) error) error {
				b, err := o.scanSpec(scan, false)
				found[i] = append(found[i], b)
				return err
			})
	})
	specs := make(map[int]state.BatchSpec, len(batches))
	for _, b := range slices.Concat(found...) {
		specs[b.Batch] = b
	}
	return specs, err
}

// bySlice sorts batches into requests: those of one are in the same slice.
func bySlice(batches []int) (requests [][]int64) {
	for i, b := range batches {
		last := len(requests) - 1
		if i == 0 || batches[i-1]/sliceRows != b/sliceRows || len(requests[last]) == valuesMax {
			requests = append(requests, nil)
			last++
		}
		requests[last] = append(requests[last], int64(b))
	}
	return requests
}

// Specs implements state.Store.
func (s *Store) Specs(ctx context.Context, key state.NodeKey, page state.Page) (all []state.BatchSpec, next int64,
	err error) {
	o := s.operation("Specs", "list the planned batches of "+nameNode(key))
	m, err := o.read(ctx, key)
	if err != nil {
		return nil, 0, o.explain(err)
	}
	from := int(max(page.From, 0))
	to := min(from+pageLimit(page.Limit), m.batches())
	for at := from; at < to && err == nil; at = (at/sliceRows + 1) * sliceRows {
		err = o.specs(ctx, key, m.node.PlanDigest, at/sliceRows, at, true, func(b state.BatchSpec) error {
			if b.Batch >= to {
				return errEnough
			}
			all = append(all, b)
			return nil
		})
	}
	if err == nil && to < m.batches() {
		next = int64(to)
	}
	return all, next, o.explain(err)
}

// Inputs implements state.Store.
func (s *Store) Inputs(ctx context.Context, key state.NodeKey, page state.Page) (all []state.Input, next int64,
	err error) {
	o := s.operation("Inputs", "list the input files of "+nameNode(key))
	m, err := o.read(ctx, key)
	if err != nil || m.node.PlanDigest == "" {
		return nil, 0, o.explain(err)
	}
	from, limit := int(max(page.From, 0)), pageLimit(page.Limit)
	for before := -1; len(all) < limit && len(all) > before && err == nil; { // they are numbered without gaps
		before = len(all)
		at := from + len(all)
		err = o.query(ctx, sliceRows, `SELECT data`+planOf+`? AND kind = 2 AND n >= ? LIMIT ?`,
			ofNode(key).with(m.node.PlanDigest, at/sliceRows, int64(at), limit-len(all)),
			func(scan func(...any) error) error {
				var data []byte
				var in state.Input
				if err := scan(&data); err != nil {
					return err
				}
				err := o.codec.unpack(data, &in)
				all = append(all, in)
				return err
			})
	}
	if len(all) == limit {
		next = int64(from + limit)
	}
	return all, next, o.explain(err)
}

// removePlans removes all plans of a node that is purged.
func (o *operation) removePlans(ctx context.Context, key state.NodeKey) error {
	type slice struct {
		digest string
		number int
	}
	var found []slice
	err := o.query(ctx, imageRows,
		`SELECT digest, slice FROM state_plan_slices WHERE workspace = ? AND run = ? AND node = ?`,
		ofNode(key).with(), func(scan func(...any) error) error {
			var one slice
			err := scan(&one.digest, &one.number)
			found = append(found, one)
			return err
		})
	if err != nil || len(found) == 0 {
		return err
	}
	err = together(ctx, len(found), atOnce, func(ctx context.Context, i int) error {
		return o.write(ctx, `DELETE`+planOf+`?`, ofNode(key).with(found[i].digest, found[i].number)...)
	})
	if err != nil {
		return err
	}
	return o.write(ctx, `DELETE FROM state_plan_slices WHERE workspace = ? AND run = ? AND node = ?`,
		ofNode(key).with()...)
}
