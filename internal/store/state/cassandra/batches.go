package cassandra

import (
	"context"
	"errors"
	"slices"
	"time"

	"thalweg/internal/store/state"
)

// attemptsOf reads the attempts of these batches into an image.
func (o *operation) attemptsOf(ctx context.Context, m *image, batches []int) error {
	chunks := slices.Collect(slices.Chunk(batches, valuesMax))
	type row struct {
		at   place
		data []byte
	}
	rows := make([][]row, len(chunks))
	err := together(ctx, len(chunks), atOnce/2, func(ctx context.Context, i int) error {
		in := make([]int64, len(chunks[i]))
		for j, b := range chunks[i] {
			in[j] = int64(b)
		}
		return o.query(ctx, state.PageMax, `SELECT n1, n2, data`+rowsOf+`kind = 3 AND n1 IN ?`, m.p.with(in),
			func(scan func(...any) error) error {
				r := row{at: place{kind: kindAttempt}}
				err := scan(&r.at.n1, &r.at.n2, &r.data)
				rows[i] = append(rows[i], r)
				return err
			})
	})
	if err != nil {
		return err
	}
	for _, r := range slices.Concat(rows...) {
		if err := o.imagine(m, r.at, 0, r.data, nil, nil, nil); err != nil {
			return err
		}
	}
	return nil
}

// whole gives these batches as they are, with what is planned of them but
// their work.
func (o *operation) whole(ctx context.Context, m *image, numbers []int) ([]state.Batch, error) {
	tried := slices.DeleteFunc(slices.Clone(numbers), func(b int) bool { return m.entry(b).attempt == 0 })
	if err := o.attemptsOf(ctx, m, tried); err != nil {
		return nil, err
	}
	specs, err := o.specsOf(ctx, m.key, m.node.PlanDigest, numbers)
	if err != nil {
		return nil, err
	}
	batches := make([]state.Batch, len(numbers))
	for i, number := range numbers {
		batches[i] = m.batch(number)
		batches[i].BatchSpec = specs[number]
		batches[i].BatchSpec.Batch = number
	}
	return batches, nil
}

// list gives those batches of a page that are as wanted, whole.
func (o *operation) list(ctx context.Context, key state.NodeKey, page state.Page,
	wanted func(e entry) bool) ([]state.Batch, int64, error) {
	m, err := o.readSegments(ctx, key)
	if err != nil {
		return nil, 0, o.explain(err)
	}
	numbers, next := m.pick(page, wanted)
	batches, err := o.whole(ctx, m, numbers)
	if err != nil {
		return nil, 0, o.explain(err)
	}
	return batches, next, nil
}

// pick gives the numbers of a page's batches that are as wanted, and the next one.
func (m *image) pick(page state.Page, wanted func(e entry) bool) (numbers []int, next int64) {
	limit := pageLimit(page.Limit)
	for b := int(max(page.From, 0)); b < m.batches(); b++ {
		if !wanted(m.entry(b)) {
			continue
		}
		if len(numbers) == limit {
			return numbers, int64(b)
		}
		numbers = append(numbers, b)
	}
	return numbers, 0
}

// Batches implements state.Store.
func (s *Store) Batches(ctx context.Context, key state.NodeKey, page state.Page) ([]state.Batch, int64, error) {
	return s.operation("Batches", "list batches of "+nameNode(key)).list(ctx, key, page,
		func(entry) bool { return true })
}

// Unsettled implements state.Store.
func (s *Store) Unsettled(ctx context.Context, key state.NodeKey, page state.Page) ([]state.Batch, int64, error) {
	return s.operation("Unsettled", "list unsettled batches of "+nameNode(key)).list(ctx, key, page,
		func(e entry) bool {
			return e.status == entryClaimed || e.status == entryFailed || e.status == entryWaiting
		})
}

// Offers implements state.Store.
func (s *Store) Offers(ctx context.Context, key state.NodeKey, now time.Time, page state.Page) (offers []state.Offer,
	next int64,
	err error) {
	o := s.operation("Offers", "look for work in "+nameNode(key))
	m, err := o.readSegments(ctx, key)
	if err != nil || m.node.Status != state.Running || m.batches() == 0 || len(m.head.Open) == 0 {
		return nil, 0, o.explain(err)
	}
	l, err := o.layout(ctx, key, m.node.PlanDigest)
	if errors.Is(err, errPurged) {
		return nil, 0, nil // as of a node that does not run
	}
	if err != nil {
		return nil, 0, o.explain(err)
	}
	phase, limit, at := m.phase(), pageLimit(page.Limit), now.UnixMilli()
	for _, r := range l {
		if r.Phase != phase {
			continue
		}
		for b := max(r.First, int(max(page.From, 0))); b < r.First+r.Count; b++ {
			e := m.entry(b)
			if e.status != entryFree && !(e.status == entryClaimed && e.until < at) &&
				!(e.status == entryWaiting && e.until <= at) {
				continue
			}
			if len(offers) == limit {
				return offers, int64(b), nil
			}
			offers = append(offers, state.Offer{BatchKey: state.BatchKey{NodeKey: key, Batch: b}, Epoch: m.node.Epoch,
				Attempt: e.attempt,
				Class:   r.Class})
		}
	}
	return offers, 0, nil
}

// phase is the first one that is not done.
func (m *image) phase() int {
	first, found := 0, false
	for phase, open := range m.head.Open {
		if open > 0 && (!found || phase < first) {
			first, found = phase, true
		}
	}
	return first
}

// Batch implements state.Store.
func (s *Store) Batch(ctx context.Context, key state.BatchKey) (b state.Batch, attempts []state.Attempt, err error) {
	o := s.operation("Batch", "read "+nameBatch(key))
	for {
		rows, err := o.tried(ctx, key)
		if err != nil {
			return state.Batch{}, nil, o.explain(err)
		}
		m, err := o.read(ctx, key.NodeKey, place{kind: kindSegment, n1: int64(key.Batch / segmentBatches)})
		if err != nil || !m.has(key.Batch) {
			return state.Batch{}, nil, o.explain(errors.Join(err, notFoundIf(err == nil)))
		}
		if latest := m.entry(key.Batch).attempt; latest > 0 &&
			(len(rows) == 0 || rows[len(rows)-1].at.n2 != int64(latest)) {
			continue // it was claimed in between
		}
		if attempts, err = o.tell(ctx, m, rows); err != nil {
			return state.Batch{}, nil, o.explain(err)
		}
		for _, row := range rows {
			m.attempts[row.at] = row.attempt
		}
		b = m.batch(key.Batch)
		b.BatchSpec, err = o.spec(ctx, key, m.node.PlanDigest)
		return b, attempts, o.explain(err)
	}
}

func notFoundIf(not bool) error {
	if not {
		return state.ErrNotFound
	}
	return nil
}

// triedRow is an attempt as it was read, before its node.
type triedRow struct {
	at      place
	attempt *attemptRow
}

// tried reads the latest attempts of a batch, by number.
func (o *operation) tried(ctx context.Context, key state.BatchKey) (rows []triedRow, err error) {
	if !isNode(key.NodeKey) {
		return nil, state.ErrNotFound
	}
	err = o.query(ctx, state.PageMax, `SELECT n1, n2, data`+rowsOf+
		`kind = 3 AND n1 = ? ORDER BY kind DESC, n1 DESC, n2 DESC LIMIT ?`,
		ofNode(key.NodeKey).with(int64(key.Batch), state.PageMax), func(scan func(...any) error) error {
			row, err := o.scanTried(scan)
			rows = append(rows, row)
			return err
		})
	slices.Reverse(rows)
	return rows, err
}

func (o *operation) scanTried(scan func(...any) error) (row triedRow, err error) {
	var data []byte
	row.at.kind, row.attempt = kindAttempt, &attemptRow{}
	if err := scan(&row.at.n1, &row.at.n2, &data); err != nil {
		return row, err
	}
	return row, o.codec.unpack(data, row.attempt)
}

// tell gives attempts as they are told. They were read before the node was.
func (o *operation) tell(ctx context.Context, m *image, rows []triedRow) (attempts []state.Attempt, err error) {
	freed, err := o.freed(ctx, m, rows)
	if err != nil {
		return nil, err
	}
	for _, row := range rows {
		a := row.attempt
		told := state.Attempt{BatchKey: state.BatchKey{NodeKey: m.key, Batch: int(row.at.n1)}, Attempt: int(row.at.n2),
			Epoch:      a.Epoch,
			Generation: a.Generation,
			Owner:      a.Owner, Status: a.Status, Started: a.Started, Finished: a.Finished, Failure: a.Failure}
		if a.Stats != nil {
			told.Stats = *a.Stats
		}
		if a.lost(m.head) {
			told.Status, told.Finished = state.Lost, freed[a.Era+1]
		}
		e := m.entry(told.Batch)
		told.Withdrawn = a.Status == state.Succeeded && !(m.has(told.Batch) && e.attempt == told.Attempt &&
			e.status == entrySucceeded)
		attempts = append(attempts, told)
	}
	return attempts, nil
}

// freed reads again the attempts that were at work when they were read, and
// are not any more, and says when eras began.
func (o *operation) freed(ctx context.Context, m *image, rows []triedRow) (map[int64]time.Time, error) {
	again := &image{p: m.p, attempts: map[place]*attemptRow{}}
	var batches []int
	for _, row := range rows {
		if row.attempt.lost(m.head) && (len(batches) == 0 || batches[len(batches)-1] != int(row.at.n1)) {
			batches = append(batches, int(row.at.n1))
		}
	}
	if len(batches) == 0 {
		return nil, nil
	}
	if err := o.attemptsOf(ctx, again, batches); err != nil {
		return nil, err
	}
	for i, row := range rows {
		if a := again.attempts[row.at]; a != nil && row.attempt.lost(m.head) {
			rows[i].attempt = a
		}
	}
	eras := map[int64]time.Time{}
	err := o.query(ctx, state.PageMax, `SELECT n1, data`+rowsOf+`kind = 4`, m.p.with(),
		func(scan func(...any) error) error {
			var number int64
			var data []byte
			var era eraRow
			if err := scan(&number, &data); err != nil {
				return err
			}
			err := o.codec.unpack(data, &era)
			eras[number] = era.Time
			return err
		})
	return eras, err
}

// Attempts implements state.Store.
func (s *Store) Attempts(ctx context.Context, key state.NodeKey, page state.Page) (attempts []state.Attempt, next int64,
	err error) {
	o := s.operation("Attempts", "list attempts of "+nameNode(key))
	if !isNode(key) {
		return nil, 0, o.explain(state.ErrNotFound)
	}
	var rows []triedRow
	batches, limit := 0, pageLimit(page.Limit)
	err = o.query(ctx, min(2*limit, state.PageMax), `SELECT n1, n2, data`+rowsOf+`kind = 3 AND n1 >= ?`,
		ofNode(key).with(page.From),
		func(scan func(...any) error) error {
			row, err := o.scanTried(scan)
			if err != nil {
				return err
			}
			if len(rows) == 0 || rows[len(rows)-1].at.n1 != row.at.n1 {
				if batches == limit {
					next = row.at.n1
					return errEnough
				}
				batches++
			}
			rows = append(rows, row)
			return nil
		})
	if err != nil {
		return nil, 0, o.explain(err)
	}
	m, err := o.readSegments(ctx, key)
	if err == nil {
		attempts, err = o.tell(ctx, m, rows)
	}
	if err != nil {
		return nil, 0, o.explain(err)
	}
	return attempts, next, nil
}
