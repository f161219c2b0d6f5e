package history

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"thalweg/internal/base/fault"
	"thalweg/internal/base/format"
	"thalweg/internal/ops/bill"
	"thalweg/internal/ops/price"
	"thalweg/internal/run/gate"
	"thalweg/internal/run/limit"
	"thalweg/internal/run/plan"
	"thalweg/internal/run/sheet"
	"thalweg/internal/store/state"
)

// RunDetail is a run with its nodes, without batches.
type RunDetail struct {
	Run
	Order *state.Command `json:"order,omitempty"` // the latest that was given
	Limit *Limit         `json:"limit,omitempty" doc:"What it may take before it is paused; none: any."`
	Nodes []Node         `json:"nodes"`
	// Workers sums up the time sheets of its workers; nil: there are none, as of runs of older programs.
	Workers *sheet.Total `json:"workers,omitempty" doc:"Sums of the time sheets of its workers; none: there are none."`
	Bill    *bill.Bill   `json:"bill,omitempty" doc:"What it cost so far, by what was paid for; none: there are no time sheets."`
}

// Node is a node of a run.
type Node struct {
	Node        string          `json:"node"`
	Type        string          `json:"type"`
	Table       string          `json:"table,omitempty"`
	Status      state.Status    `json:"status"`
	Batches     int             `json:"batches"`
	Done        int             `json:"done"`
	Failed      int             `json:"failed"`
	RowsIn      int64           `json:"rows_in"`
	RowsOut     int64           `json:"rows_out"`
	BytesIn     int64           `json:"bytes_in"`
	BytesOut    int64           `json:"bytes_out"`
	Started     *time.Time      `json:"started,omitempty"`
	Finished    *time.Time      `json:"finished,omitempty"`
	Elapsed     int64           `json:"elapsed_ms"` // see state.Worked
	Cost        Cost            `json:"cost"`
	Stages      Stages          `json:"stages"`
	PeakBytes   int64           `json:"peak_bytes,omitempty"`
	Median      int64           `json:"median_ms,omitempty"` // of a batch, off by an eighth at most
	Longest     *Longest        `json:"longest,omitempty"`
	Generation  int             `json:"generation,omitempty"` // how often it was done again
	ReusedFrom  *state.NodeKey  `json:"reused_from,omitempty"`
	Gate        *gate.Record    `json:"gate,omitempty"`        // the question of a gate; nil: it has not asked
	Decision    *state.Decision `json:"decision,omitempty"`    // about the gate
	ComputedIn  string          `json:"computed_in,omitempty"` // of an ephemeral table: the node that computes it
	Warnings    int             `json:"warnings,omitempty"`
	Failure     *state.Failure  `json:"failure,omitempty"`
	counters    map[string]int64
	medianExact time.Duration
}

// Limit is what a run may take before it is paused.
type Limit struct {
	Elapsed  int64       `json:"max_elapsed_ms,omitempty"`
	Cost     price.Money `json:"max_cost_usd,omitempty"`
	Foreseen bool        `json:"foreseen,omitempty" doc:"It was expected to reach it."`
	// What the run has taken of it.
	UsedElapsed int64       `json:"used_elapsed_ms" doc:"What it has taken, without the times in which it stood still."`
	UsedCost    price.Money `json:"used_usd" doc:"What it has cost, as its limit counts; 0: no cost is limited."`
}

// Text says so for people.
func (l Limit) Text() string {
	var parts []string
	if l.Elapsed > 0 {
		parts = append(parts, format.Span(time.Duration(l.Elapsed)*time.Millisecond))
	}
	if l.Cost > 0 {
		parts = append(parts, limit.Dollars(state.Money(l.Cost)))
	}
	text := strings.Join(parts, ", ") + "; taken: " + format.Span(time.Duration(l.UsedElapsed)*time.Millisecond)
	if l.Cost > 0 {
		text += ", " + limit.Dollars(state.Money(l.UsedCost))
	}
	if l.Foreseen {
		text += "; it is expected to reach it"
	}
	return text
}

// Longest is the batch of a node that took the most time.
type Longest struct {
	Batch   int   `json:"batch"`
	Elapsed int64 `json:"elapsed_ms"`
}

// ShowRun reads a run, its nodes and their tallies, and none of its batches.
func ShowRun(ctx context.Context, store state.Store, key state.RunKey, o ListOptions) (RunDetail, error) {
	run, nodes, err := read(ctx, store, key)
	if err != nil {
		return RunDetail{}, err
	}
	out := RunDetail{Run: o.of(run), Order: run.Command, Nodes: []Node{}}
	if out.Limit, err = limitOf(ctx, store, run, nodes, o.Now); err != nil {
		return out, err
	}
	for _, n := range nodes {
		one, err := nodeWithSums(ctx, store, run, n, o.Now)
		if err != nil {
			return out, err
		}
		out.Nodes = append(out.Nodes, one)
	}
	sheets, err := sheet.Of(ctx, store, key)
	out.Workers = sheet.TotalOf(sheets)
	out.Bill = bill.Of(sheets, bill.NodesOf(nodes), o.Basis)
	out.Cost.Price(out.Bill)
	for i, n := range nodes {
		out.Nodes[i].Cost.PriceNode(out.Bill, n.Name)
	}
	return out, err
}

// limitOf says what a run may take, and has taken; nil: it has no limit.
func limitOf(ctx context.Context, store state.Store, run state.Run, nodes []state.Node, now time.Time) (*Limit, error) {
	l := run.Limit
	if l.None() {
		return nil, nil
	}
	if now.IsZero() {
		now = time.Now()
	}
	elapsed, err := limit.Elapsed(ctx, store, run, now)
	if err != nil {
		return nil, err
	}
	used := limit.Of(*l, elapsed, nodes)
	return &Limit{Elapsed: l.Elapsed.Milliseconds(), Cost: price.Money(l.Cost), Foreseen: l.Foreseen,
		UsedElapsed: used.Elapsed.Milliseconds(), UsedCost: price.Money(used.Cost)}, nil
}

// read reads a run and its nodes, and fills run.Nodes.
func read(ctx context.Context, store state.Store, key state.RunKey) (run state.Run, nodes []state.Node, err error) {
	if run, err = store.Run(ctx, key); err != nil {
		return run, nil, fmt.Errorf("read run %d: %w", key.Run, err)
	}
	return withNodes(ctx, store, run)
}

// withNodes reads the nodes of a run, and fills run.Nodes.
func withNodes(ctx context.Context, store state.Store, run state.Run) (_ state.Run, nodes []state.Node, err error) {
	if nodes, err = store.Nodes(ctx, run.RunKey); err != nil {
		return run, nil, fmt.Errorf("read the nodes of run %d: %w", run.Run, err)
	}
	for _, n := range nodes {
		run.Nodes = append(run.Nodes, state.NodeBrief{Name: n.Name, Table: n.Table, Status: n.Status,
			RowsOut: n.RowsOut, BytesOut: n.BytesOut, Spent: n.Spent})
	}
	return run, nodes, nil
}

func nodeWithSums(ctx context.Context, store state.Store, run state.Run, n state.Node, now time.Time) (Node, error) {
	tally, err := store.Tally(ctx, n.NodeKey)
	if err != nil {
		return Node{}, fmt.Errorf("sum up node %s: %w", n.Name, err)
	}
	out := nodeOf(run, n, tally)
	if out.Elapsed, err = worked(ctx, store, run, n, now); err != nil {
		return Node{}, err
	}
	out.Gate, err = askedAt(n)
	return out, err
}

// worked returns the time for which a node has been worked on, in milliseconds.
func worked(ctx context.Context, store state.Store, run state.Run, n state.Node, now time.Time) (int64, error) {
	took, err := state.Worked(ctx, store, run, n, now)
	return took.Milliseconds(), err
}

// askedAt returns the question of a gate; nil: the node is no gate, or has not asked.
func askedAt(n state.Node) (*gate.Record, error) {
	if len(n.Gate) == 0 {
		return nil, nil
	}
	r, err := gate.Decode(n.Gate)
	if err != nil {
		return nil, fmt.Errorf("read gate %s: %w", gate.NameOf(n.Name), err)
	}
	return &r, nil
}

func nodeOf(run state.Run, n state.Node, t state.Tally) Node {
	_, warnings := t.Told()
	out := Node{Node: n.Name, Type: n.Kind, Table: n.Table, Status: n.Status, Batches: n.BatchesTotal,
		Done: n.BatchesDone, Failed: n.BatchesFailed,
		RowsIn: n.RowsIn, RowsOut: n.RowsOut, BytesIn: n.BytesIn, BytesOut: n.BytesOut, Cost: CostOf(n.Spent),
		Stages:     StagesOf(t.Stats),
		PeakBytes:  t.Stats.PeakBytes,
		Generation: n.Generation, ReusedFrom: n.ReusedFrom, Decision: n.Decision, Warnings: warnings,
		Failure: n.Failure, counters: t.Stats.Counters, medianExact: t.Median()}
	out.Median = out.medianExact.Milliseconds()
	switch {
	case n.Dropped:
		out.Status = Dropped
	case run.Status != state.Running && n.Status == state.Running: // its run ended under it
		out.Status, n.Finished = state.Stopped, run.Finished
	}
	if !n.Started.IsZero() {
		out.Started = &n.Started
		if !n.Finished.IsZero() {
			out.Finished = &n.Finished
		}
	}
	if len(t.Longest) > 0 {
		out.Longest = &Longest{Batch: t.Longest[0].Batch, Elapsed: t.Longest[0].Stats.Elapsed.Milliseconds()}
	}
	return out
}

// NodeDetail is a node with the batches that stand out.
type NodeDetail struct {
	Node
	Inputs  []string   `json:"inputs,omitempty"` // nodes whose tables it reads
	Times   []TimeSpan `json:"times,omitempty"`  // how long its batches took
	Slowest []Batch    `json:"slowest,omitempty"`
	// Unsettled lists the first batches that are claimed, failed, or wait to be tried again.
	Unsettled []Batch         `json:"unsettled,omitempty"`
	More      bool            `json:"more_unsettled,omitempty"`
	Told      []state.Warning `json:"first_warnings,omitempty"`
}

// TimeSpan counts the batches that took at least From and less than To.
type TimeSpan struct {
	From    int64 `json:"from_us"`
	To      int64 `json:"to_us"`
	Batches int   `json:"batches"`
}

// Batch is a batch of a node.
type Batch struct {
	Batch     int            `json:"batch"`
	Status    state.Status   `json:"status"`
	Attempt   int            `json:"attempt,omitempty"`
	Owner     string         `json:"owner,omitempty"`
	Lease     *time.Time     `json:"lease,omitempty"`
	NotBefore *time.Time     `json:"not_before,omitempty"`
	RowsIn    int64          `json:"rows_in"`
	RowsOut   int64          `json:"rows_out"`
	BytesIn   int64          `json:"bytes_in"`
	BytesOut  int64          `json:"bytes_out"`
	Elapsed   int64          `json:"elapsed_ms"`
	Stages    Stages         `json:"stages"`
	PeakBytes int64          `json:"peak_bytes,omitempty"`
	Failure   *state.Failure `json:"failure,omitempty"`
}

// unsettledMax limits the batches of a node that are shown one by one.
const unsettledMax = 20

// ShowNode reads a node, its tally, and the batches that stand out.
func ShowNode(ctx context.Context, store state.Store, key state.NodeKey, now time.Time) (NodeDetail, error) {
	run, err := store.Run(ctx, key.RunKey)
	if err != nil {
		return NodeDetail{}, fmt.Errorf("read run %d: %w", key.Run, err)
	}
	n, err := node(ctx, store, key)
	if err != nil {
		return NodeDetail{}, err
	}
	tally, err := store.Tally(ctx, key)
	if err != nil {
		return NodeDetail{}, fmt.Errorf("sum up node %s: %w", key.Node, err)
	}
	unsettled, next, err := store.Unsettled(ctx, key, state.Page{Limit: unsettledMax})
	if err != nil {
		return NodeDetail{}, fmt.Errorf("read the batches of %s: %w", key.Node, err)
	}
	told, _ := tally.Told()
	out := NodeDetail{Node: nodeOf(run, n, tally), Inputs: n.Inputs, More: next > 0, Told: told}
	if out.Elapsed, err = worked(ctx, store, run, n, now); err != nil {
		return out, err
	}
	if out.Gate, err = askedAt(n); err != nil {
		return out, err
	}
	for _, span := range tally.Spans() {
		from, to := state.SpanBounds(span)
		out.Times = append(out.Times, TimeSpan{From: from.Microseconds(), To: to.Microseconds(),
			Batches: tally.Took[span]})
	}
	for _, t := range tally.Longest {
		out.Slowest = append(out.Slowest,
			batchOf(state.Batch{BatchKey: state.BatchKey{NodeKey: key, Batch: t.Batch}, Status: state.Succeeded,
				Stats: t.Stats},
				now))
	}
	for _, b := range unsettled {
		out.Unsettled = append(out.Unsettled, batchOf(b, now))
	}
	return out, nil
}

// node reads a node. If it is not there, the error lists the nodes of the run.
func node(ctx context.Context, store state.Store, key state.NodeKey) (state.Node, error) {
	n, err := store.Node(ctx, key)
	if !errors.Is(err, state.ErrNotFound) {
		return n, err
	}
	nodes, err := store.Nodes(ctx, key.RunKey)
	if err != nil {
		return n, fmt.Errorf("read the nodes of run %d: %w", key.Run, err)
	}
	names := make([]string, len(nodes))
	for i, n := range nodes {
		names[i] = n.Name
	}
	return n, &fault.Error{Kind: fault.Script, Code: fault.NotFound,
		Message: fmt.Sprintf("run %d has no node %s", key.Run, key.Node),
		Hint:    "its nodes are " + strings.Join(names, ", ")}
}

func batchOf(b state.Batch, now time.Time) Batch {
	out := Batch{Batch: b.BatchKey.Batch, Status: b.Status, Attempt: b.Attempt, Owner: b.Owner, RowsIn: b.Stats.RowsIn,
		RowsOut: b.Stats.RowsOut,
		BytesIn: b.Stats.BytesIn, BytesOut: b.Stats.BytesOut, Elapsed: b.Stats.Elapsed.Milliseconds(),
		Stages: StagesOf(b.Stats), PeakBytes: b.Stats.PeakBytes, Failure: b.Failure}
	if b.Status == state.Claimed {
		out.Elapsed = max(now.Sub(b.Started), 0).Milliseconds()
	}
	out.Lease, out.NotBefore = moment(b.Lease), moment(b.NotBefore)
	return out
}

func moment(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// BatchDetail is a batch with its attempts.
type BatchDetail struct {
	Batch
	Node     string    `json:"node"`
	Phase    int       `json:"phase"`
	Class    string    `json:"class,omitempty"`
	Covers   string    `json:"covers,omitempty"` // its slice: rows, files, parts or a bucket of keys
	Attempts []Attempt `json:"attempts"`
}

// Attempt is one try at a batch.
type Attempt struct {
	Attempt   int            `json:"attempt"`
	Status    state.Status   `json:"status"`
	Withdrawn bool           `json:"withdrawn,omitempty"` // what it wrote does not count any more
	Owner     string         `json:"owner"`
	Slot      int            `json:"slot,omitempty"` // of the owner's, from 1 on; 0: it was not recorded
	Started   time.Time      `json:"started"`
	Finished  *time.Time     `json:"finished,omitempty"`
	Elapsed   int64          `json:"elapsed_ms"`
	Stages    Stages         `json:"stages"`
	RowsIn    int64          `json:"rows_in"`
	RowsOut   int64          `json:"rows_out"`
	BytesIn   int64          `json:"bytes_in"`
	BytesOut  int64          `json:"bytes_out"`
	PeakBytes int64          `json:"peak_bytes,omitempty"`
	Warnings  []string       `json:"warnings,omitempty"`
	Failure   *state.Failure `json:"failure,omitempty"`
}

// ShowBatch reads a batch and the tries at it.
func ShowBatch(ctx context.Context, store state.Store, key state.BatchKey, now time.Time) (BatchDetail, error) {
	n, err := node(ctx, store, key.NodeKey)
	if err != nil {
		return BatchDetail{}, err
	}
	b, attempts, err := store.Batch(ctx, key)
	if errors.Is(err, state.ErrNotFound) {
		return BatchDetail{}, &fault.Error{Kind: fault.Script, Code: fault.NotFound,
			Message: fmt.Sprintf("node %s of run %d has no batch %d",
				key.Node, key.Run, key.Batch), Hint: numbers(n)}
	}
	if err != nil {
		return BatchDetail{}, fmt.Errorf("read batch %d of %s: %w", key.Batch, key.Node, err)
	}
	out := BatchDetail{Batch: batchOf(b, now), Node: key.Node, Phase: b.Phase, Class: b.Class,
		Covers: plan.CoversOf(b.BatchSpec), Attempts: []Attempt{}}
	for _, a := range attempts {
		out.Attempts = append(out.Attempts, attemptOf(a, now))
	}
	return out, nil
}

// ListedAttempt is a try at a batch of a node.
type ListedAttempt struct {
	Batch int `json:"batch"`
	Attempt
}

// ListAttempts lists the tries at a node's batches, by batch, and returns the From of the next page; 0: there is none.
func ListAttempts(ctx context.Context, store state.Store, key state.NodeKey, page state.Page, now time.Time) (
	[]ListedAttempt, int64, error) {
	if _, err := node(ctx, store, key); err != nil {
		return nil, 0, err
	}
	found, next, err := store.Attempts(ctx, key, page)
	if err != nil {
		return nil, 0, fmt.Errorf("read the tries at %s: %w", key.Node, err)
	}
	out := []ListedAttempt{}
	for _, a := range found {
		out = append(out, ListedAttempt{a.BatchKey.Batch, attemptOf(a, now)})
	}
	return out, next, nil
}

// numbers says which batches a node has.
func numbers(n state.Node) string {
	if n.BatchesTotal == 0 {
		return "it has none"
	}
	return fmt.Sprintf("its batches are 0 to %d", n.BatchesTotal-1)
}

func attemptOf(a state.Attempt, now time.Time) Attempt {
	end := now
	if !a.Finished.IsZero() {
		end = a.Finished
	}
	s := a.Stats
	return Attempt{Attempt: a.Attempt, Status: a.Status, Withdrawn: a.Withdrawn, Owner: a.Owner, Slot: a.Stats.Slot,
		Started:  a.Started,
		Finished: moment(a.Finished),
		Elapsed:  max(end.Sub(a.Started), 0).Milliseconds(), Stages: StagesOf(s), RowsIn: s.RowsIn, RowsOut: s.RowsOut,
		BytesIn: s.BytesIn, BytesOut: s.BytesOut,
		PeakBytes: s.PeakBytes, Warnings: s.Told(), Failure: a.Failure}
}
