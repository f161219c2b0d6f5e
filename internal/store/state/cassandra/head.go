package cassandra

import (
	"context"
	"slices"
	"time"

	"thalweg/internal/store/state"
)

// nodeHead is the part of a node that every change rewrites, in the head's column data.
type nodeHead struct {
	Events   int64     `json:"events"` // number of the latest
	Started  time.Time `json:"started,omitzero"`
	Total    int       `json:"total,omitempty"`
	Done     int       `json:"done,omitempty"`
	Failed   int       `json:"failed,omitempty"`
	RowsIn   int64     `json:"rows_in,omitempty"`
	RowsOut  int64     `json:"rows_out,omitempty"`
	BytesIn  int64     `json:"bytes_in,omitempty"`
	BytesOut int64     `json:"bytes_out,omitempty"`
	Worked   int64     `json:"worked_ms,omitempty"` // see state.Spent
	Lost     int64     `json:"lost_ms,omitempty"`

	// Eras are numbered by what has freed batches: see segment.live.
	Era     int64 `json:"era,omitempty"`
	AllEra  int64 `json:"all_era,omitempty"`  // the latest that freed also what had succeeded
	PlanEra int64 `json:"plan_era,omitempty"` // the latest that took the plan away

	Open   map[int]int `json:"open,omitempty"` // batches of each phase that have not succeeded
	Pubs   []pubKey    `json:"pubs,omitempty"` // attempts that have announced what they publish
	Purged bool        `json:"purged,omitempty"`
}

// pubKey names an attempt that has announced something.
type pubKey struct {
	Batch   int `json:"b"`
	Attempt int `json:"a"`
}

// nodeSums holds the sums over a node's ended batches, in the head's column sums. Failed ones are apart,
// because only they go back when a node goes on.
type nodeSums struct {
	Good state.Tally `json:"good"`
	Bad  state.Tally `json:"bad"`
}

// all is the sum of both.
func (s nodeSums) all() state.Tally {
	var t state.Tally
	t.Merge(s.Good)
	t.Merge(s.Bad)
	return t
}

// attemptRow is an attempt, in the column data of its row.
type attemptRow struct {
	Epoch      int64          `json:"epoch,omitempty"`
	Generation int            `json:"generation,omitempty"`
	Owner      string         `json:"owner,omitempty"`
	Token      string         `json:"token,omitempty"`
	Status     state.Status   `json:"status"`
	Started    time.Time      `json:"started,omitzero"`
	Finished   time.Time      `json:"finished,omitzero"`
	Failure    *state.Failure `json:"failure,omitempty"`
	Stats      *state.Stats   `json:"stats,omitempty"`
	Era        int64          `json:"era,omitempty"`
	Tries      int            `json:"tries,omitempty"`   // of the batch, before it
	Retried    bool           `json:"retried,omitempty"` // it used up a try, and gave the batch back
	Phase      int            `json:"phase,omitempty"`
}

// lost reports whether the batch was freed while the attempt was at work.
func (a attemptRow) lost(h nodeHead) bool { return a.Status == state.Claimed && a.Era < h.Era }

// image is a node's partition as it was read at one moment.
type image struct {
	p        partition
	key      state.NodeKey
	rev      int64
	head     nodeHead
	node     state.Node // without what is derived
	sums     nodeSums
	segments map[int64]*segment
	attempts map[place]*attemptRow
	pubs     map[place][]state.Publication

	sumsRead []byte
}

// batches returns the number of the node's batches.
func (m *image) batches() int {
	if m.node.PlanDigest == "" {
		return 0
	}
	return m.head.Total
}

func (m *image) has(batch int) bool { return batch >= 0 && batch < m.batches() }

// entry is a batch as it is.
func (m *image) entry(batch int) entry {
	s := m.segments[int64(batch/segmentBatches)]
	if s == nil {
		return entry{}
	}
	return s.at(batch % segmentBatches)
}

// setEntry changes a batch; its segment has been read.
func (m *image) setEntry(batch int, e entry) {
	n := int64(batch / segmentBatches)
	if m.segments[n] == nil {
		m.segments[n] = &segment{era: m.head.Era}
	}
	m.segments[n].set(batch%segmentBatches, e)
}

func segmentPlace(batch int) place {
	return place{kind: kindSegment, n1: int64(batch / segmentBatches)}
}

func attemptPlace(batch, attempt int) place {
	return place{kind: kindAttempt, n1: int64(batch), n2: int64(attempt)}
}

// full is the node with what is derived from its batches.
func (m *image) full() state.Node {
	n, h := m.node, m.head
	n.Revision, n.Started = h.Events, h.Started
	n.BatchesTotal, n.BatchesDone, n.BatchesFailed = h.Total, h.Done, h.Failed
	n.RowsIn, n.RowsOut, n.BytesIn, n.BytesOut = h.RowsIn, h.RowsOut, h.BytesIn, h.BytesOut
	n.Spent = state.Spent{Worked: time.Duration(h.Worked) * time.Millisecond,
		Lost: time.Duration(h.Lost) * time.Millisecond}
	return n
}

// batch is a batch as it is, but for what is planned; its latest attempt, if
// it has one, has been read.
func (m *image) batch(number int) state.Batch {
	e := m.entry(number)
	b := state.Batch{BatchKey: state.BatchKey{NodeKey: m.key, Batch: number}, Status: e.batchStatus(),
		Attempt: e.attempt}
	b.BatchSpec.Batch = number
	a := m.attempts[attemptPlace(number, e.attempt)]
	if a == nil {
		return b
	}
	if a.Era >= m.head.PlanEra {
		b.Epoch = a.Epoch
	}
	if e.status == entryFree || e.status == entryWaiting {
		if a.Era == m.head.Era {
			b.Tries = a.Tries
			if a.Retried {
				b.Tries++
			}
		}
		if e.status == entryWaiting {
			b.NotBefore = e.moment()
		}
		return b
	}
	b.Tries, b.Owner, b.Started = a.Tries, a.Owner, a.Started
	if e.status == entryClaimed {
		b.Lease = e.moment()
		return b
	}
	b.Finished, b.Failure = a.Finished, a.Failure
	if a.Stats != nil {
		b.Stats = *a.Stats
	}
	return b
}

const selectRows = `SELECT kind, n1, n2, rev, data, more, sums, pubs` + rowsOf

// read reads rows of a node, and its head, at one moment. ErrNotFound if there
// is no such node.
func (o *operation) read(ctx context.Context, key state.NodeKey, places ...place) (*image, error) {
	text, args := "(kind, n1, n2) IN ((0, 0, 0)", ofNode(key).with()
	for _, at := range places {
		text += ", (?, ?, ?)"
		args = append(args, at.kind, at.n1, at.n2)
	}
	return o.image(ctx, key, text+")", args)
}

// readSegments reads a node's head and all of its segments, at one moment.
func (o *operation) readSegments(ctx context.Context, key state.NodeKey) (*image, error) {
	return o.image(ctx, key, "kind < 2", ofNode(key).with())
}

// imageRows is the page size of answers, so that one answer has all of an image.
const imageRows = 10_000

func (o *operation) image(ctx context.Context, key state.NodeKey, where string, args []any) (*image, error) {
	if !isNode(key) {
		return nil, state.ErrNotFound
	}
	m := &image{p: ofNode(key), key: key, segments: map[int64]*segment{}, attempts: map[place]*attemptRow{},
		pubs: map[place][]state.Publication{}}
	err := o.query(ctx, imageRows, selectRows+where, args, func(scan func(...any) error) error {
		var at place
		var rev int64
		var data, more, sums, pubs []byte
		if err := scan(&at.kind, &at.n1, &at.n2, &rev, &data, &more, &sums, &pubs); err != nil {
			return err
		}
		return o.imagine(m, at, rev, data, more, sums, pubs)
	})
	if err != nil {
		return nil, err
	}
	if m.rev == 0 {
		return nil, state.ErrNotFound
	}
	for _, s := range m.segments {
		s.live(m.head.Era, m.head.AllEra)
	}
	return m, nil
}

// imagine takes a row into an image.
func (o *operation) imagine(m *image, at place, rev int64, data, more, sums, pubs []byte) (err error) {
	switch at.kind {
	case kindHead:
		m.rev, m.sumsRead = rev, sums
		if err := o.codec.unpack(data, &m.head); err != nil {
			return err
		}
		return o.codec.unpack(more, &m.node)
	case kindSegment:
		s, err := parseSegment(data)
		m.segments[at.n1] = &s
		return err
	case kindAttempt:
		a := &attemptRow{}
		m.attempts[at] = a
		if err := o.codec.unpack(data, a); err != nil {
			return err
		}
		var all []state.Publication
		if err := o.codec.unpack(pubs, &all); err != nil || len(all) == 0 {
			return err
		}
		m.pubs[at] = all
	}
	return nil
}

// nodeChange is a change of a node that is being put together.
type nodeChange struct {
	*image
	o *operation
	c change

	rows  map[place][]column // that are written; a column once
	order []place
	bytes int // of them, about

	newNode, newSums bool
	newSegments      map[int64]bool
	err              error
}

// put writes columns of a row, in place of what was to be written there.
func (n *nodeChange) put(at place, columns ...column) {
	before, there := n.rows[at]
	if !there {
		n.order = append(n.order, at)
	}
	for _, c := range columns {
		if b, ok := c.value.([]byte); ok {
			n.bytes += len(b)
		}
		if i := slices.IndexFunc(before, func(b column) bool { return b.name == c.name }); i >= 0 {
			before[i] = c
			continue
		}
		before = append(before, c)
	}
	n.rows[at] = before
}

func (o *operation) change(m *image) *nodeChange {
	return &nodeChange{image: m, o: o, c: change{rev: m.rev}, rows: map[place][]column{}, newSegments: map[int64]bool{}}
}

func (n *nodeChange) pack(v any) []byte {
	b, err := n.o.codec.pack(v)
	if err != nil && n.err == nil {
		n.err = err
	}
	return b
}

// tally gives the sums to be changed.
func (n *nodeChange) tally() *nodeSums {
	if !n.newSums {
		if err := n.o.codec.unpack(n.sumsRead, &n.sums); err != nil && n.err == nil {
			n.err = err
		}
		n.newSums = true
	}
	return &n.sums
}

func (n *nodeChange) become(node state.Node) {
	node.Finished, node.Plan = stored(node.Finished), nil
	n.node, n.newNode = node, true
}

func (n *nodeChange) setEntry(batch int, e entry) {
	n.image.setEntry(batch, e)
	n.newSegments[int64(batch/segmentBatches)] = true
}

func (n *nodeChange) putAttempt(at place, a *attemptRow, more ...column) {
	n.attempts[at] = a
	n.put(at, append([]column{{"data", n.pack(a)}}, more...)...)
}

// tell writes an event.
func (n *nodeChange) tell(kind state.EventKind, actor string, at time.Time, data state.EventData) {
	n.head.Events++
	n.put(place{kind: kindEvent, n1: n.head.Events},
		column{"data", n.pack(eventRow{Version: state.EventVersion, Time: stored(at),
			Actor: actor, Kind: kind, Data: data})})
}

// done gives the change as it is written.
func (n *nodeChange) done() (*change, error) {
	for number := range n.newSegments {
		n.put(place{kind: kindSegment, n1: number}, column{"data", n.segments[number].append(nil)})
	}
	for _, at := range n.order {
		n.c.put(n.p, at, n.rows[at]...)
	}
	columns := []column{{"data", n.pack(n.head)}}
	if n.newNode {
		columns = append(columns, column{"more", n.pack(n.node)})
	}
	if n.newSums {
		columns = append(columns, column{"sums", n.pack(n.sums)})
	}
	n.c.puts(n.p, columns...)
	return &n.c, n.err
}

// eventRow is an event, in the column data of its row.
type eventRow struct {
	Version int             `json:"version"`
	Time    time.Time       `json:"time,omitzero"`
	Actor   string          `json:"actor,omitempty"`
	Kind    state.EventKind `json:"kind"`
	Data    state.EventData `json:"data"`
}
