package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"time"

	"thalweg/internal/store/state"
)

// Batches implements state.Store.
func (s *Store) Batches(ctx context.Context, key state.NodeKey, page state.Page) ([]state.Batch, int64, error) {
	if page.Brief {
		return s.brief(ctx, key, page)
	}
	return s.batches(ctx, "list batches of ", key, page, "", "")
}

// brief reads a page of a node's batches with little of each, which is five times as fast.
func (s *Store) brief(ctx context.Context, key state.NodeKey, page state.Page) (batches []state.Batch, next int64,
	err error) {
	err = s.view(ctx, "list batches of "+nameNode(key), func(tx *txn) error {
		n, err := findNode(ctx, tx, key)
		if err != nil {
			return err
		}
		limit := pageLimit(page.Limit)
		batches, err = list(ctx, tx, func(row scanner) (state.Batch, error) {
			b := state.Batch{BatchKey: state.BatchKey{NodeKey: key}}
			var started, finished moment
			err := row.Scan(&b.BatchKey.Batch, &b.Status, &b.Attempt, &b.Owner, &started, &finished, &b.Stats.Elapsed,
				&b.Stats.RowsOut)
			b.BatchSpec.Batch, b.Started, b.Finished = b.BatchKey.Batch, started.Time, finished.Time
			return b, err
		}, `SELECT batch, status, attempt, owner, started_ms, finished_ms, coalesce(json_extract(stats, '$.elapsed_ns'), 0),
			coalesce(json_extract(stats, '$.rows_out'), 0) FROM batches WHERE node_id = ? AND batch >= ? ORDER BY batch LIMIT ?`, n.id, page.From, limit)
		if len(batches) == limit {
			next = int64(batches[limit-1].BatchKey.Batch) + 1
		}
		return err
	})
	return batches, next, err
}

// Unsettled implements state.Store. It names its index: SQLite would read the
// batches by number until it has found enough.
func (s *Store) Unsettled(ctx context.Context, key state.NodeKey, page state.Page) ([]state.Batch, int64, error) {
	return s.batches(ctx, "list unsettled batches of ", key, page, "INDEXED BY batches_unsettled",
		"AND (b.status IN ('claimed', 'failed') OR b.not_before_ms IS NOT NULL)")
}

// batches reads a page of a node's batches that are as the query says.
func (s *Store) batches(ctx context.Context, what string, key state.NodeKey, page state.Page, by,
	only string) (batches []state.Batch, next int64, err error) {
	err = s.view(ctx, what+nameNode(key), func(tx *txn) error {
		n, err := findNode(ctx, tx, key)
		if err != nil {
			return err
		}
		limit := pageLimit(page.Limit)
		batches, err = list(ctx, tx, scanBatch(key), `SELECT `+batchColumns+`
			FROM batches b `+by+` JOIN plan_batches s ON s.plan_id = ? AND s.batch = b.batch
			WHERE b.node_id = ? AND b.batch >= ? `+only+` ORDER BY b.batch LIMIT ?`, n.planID, n.id, page.From, limit)
		if len(batches) == limit {
			next = int64(batches[limit-1].BatchKey.Batch) + 1
		}
		return err
	})
	return batches, next, err
}

// batchColumns are those of a batch b as it was planned s, but for its work.
const batchColumns = `b.batch, b.phase, s.class, s.rows_in, s.bytes_in, b.status, b.attempt, b.epoch, b.tries,
	b.not_before_ms, b.owner, b.lease_ms, b.started_ms, b.finished_ms, b.stats, b.failure`

// scanBatch reads batchColumns, and what follows them into more.
func scanBatch(key state.NodeKey, more ...any) func(scanner) (state.Batch, error) {
	return func(row scanner) (state.Batch, error) {
		b := state.Batch{BatchKey: state.BatchKey{NodeKey: key}}
		var notBefore, lease, started, finished moment
		err := row.Scan(append([]any{&b.BatchKey.Batch, &b.Phase, &b.Class, &b.RowsIn, &b.BytesIn,
			&b.Status, &b.Attempt, &b.Epoch, &b.Tries,
			&notBefore, &b.Owner, &lease, &started, &finished, asDocument(&b.Stats),
			asDocument(&b.Failure)}, more...)...)
		b.BatchSpec.Batch = b.BatchKey.Batch
		b.NotBefore, b.Lease, b.Started, b.Finished = notBefore.Time, lease.Time, started.Time, finished.Time
		return b, err
	}
}

// Offers implements state.Store. It reads the index of what is not done: the
// lowest phase in it is the one that is open.
func (s *Store) Offers(ctx context.Context, key state.NodeKey, now time.Time, page state.Page) (offers []state.Offer,
	next int64, err error) {
	err = s.view(ctx, "look for work in "+nameNode(key), func(tx *txn) error {
		n, err := findNode(ctx, tx, key)
		if err != nil || n.status != state.Running {
			return err
		}
		limit := pageLimit(page.Limit)
		offers, err = list(ctx, tx, func(row scanner) (state.Offer, error) {
			o := state.Offer{BatchKey: state.BatchKey{NodeKey: key}, Epoch: n.epoch}
			err := row.Scan(&o.Batch, &o.Attempt, &o.Class)
			return o, err
		},
			`SELECT b.batch, b.attempt, s.class FROM batches b INDEXED BY batches_open
				JOIN plan_batches s ON s.plan_id = ?1 AND s.batch = b.batch
			WHERE b.node_id = ?2 AND b.status <> 'succeeded' AND b.batch >= ?3
			AND b.phase = (SELECT min(phase) FROM batches INDEXED BY batches_open
				WHERE node_id = ?2 AND status <> 'succeeded')
			AND (b.status = 'pending' AND coalesce(b.not_before_ms, 0) <= ?4
				OR b.status = 'claimed' AND b.lease_ms < ?4)
			ORDER BY b.batch LIMIT ?5`, n.planID, n.id, page.From, now.UnixMilli(), limit)
		if len(offers) == limit {
			next = int64(offers[limit-1].Batch) + 1
		}
		return err
	})
	return offers, next, err
}

// Attempts implements state.Store.
func (s *Store) Attempts(ctx context.Context, key state.NodeKey, page state.Page) (attempts []state.Attempt, next int64,
	err error) {
	err = s.view(ctx, "list attempts of "+nameNode(key), func(tx *txn) error {
		n, err := findNode(ctx, tx, key)
		if err != nil {
			return err
		}
		end, err := pageEnd(ctx, tx, "attempts", n.id, page, &next)
		if err != nil {
			return err
		}
		attempts, err = list(ctx, tx, scanAttempt(key),
			`SELECT a.batch, a.attempt, a.epoch, a.generation, a.owner, a.status,
			a.status = 'succeeded' AND (b.batch IS NULL OR b.attempt <> a.attempt OR b.status <> 'succeeded'),
			a.started_ms, a.finished_ms, a.failure, a.stats
			FROM attempts a LEFT JOIN batches b ON b.node_id = a.node_id AND b.batch = a.batch
			WHERE a.node_id = ? AND a.batch BETWEEN ? AND ? ORDER BY a.batch, a.attempt`, n.id, page.From, end)
		return err
	})
	return attempts, next, err
}

// Batch implements state.Store.
func (s *Store) Batch(ctx context.Context, key state.BatchKey) (b state.Batch, attempts []state.Attempt, err error) {
	err = s.view(ctx, "read "+nameBatch(key), func(tx *txn) error {
		n, err := findNode(ctx, tx, key.NodeKey)
		if err != nil {
			return err
		}
		var work []byte
		if b, err = scanBatch(key.NodeKey, &work)(tx.QueryRowContext(ctx, `SELECT `+batchColumns+
			`, s.work FROM batches b JOIN plan_batches s ON s.plan_id = ? AND s.batch = b.batch
			WHERE b.node_id = ? AND b.batch = ?`, n.planID, n.id, key.Batch)); err != nil {
			return orNotFound(err)
		}
		b.Work = work
		attempts, err = list(ctx, tx, scanAttempt(key.NodeKey), `SELECT ?2, attempt, epoch, generation, owner, status,
			status = 'succeeded' AND (attempt <> ?3 OR ?4 <> 'succeeded'), started_ms, finished_ms, failure, stats
			FROM attempts WHERE node_id = ?1 AND batch = ?2 ORDER BY attempt DESC LIMIT ?5`,
			n.id, key.Batch, b.Attempt, b.Status, state.PageMax)
		slices.Reverse(attempts)
		return err
	})
	return b, attempts, err
}

// pageEnd finds the last batch of a page of a table that may have several rows
// for each, and what comes next; -1 if there is nothing more.
func pageEnd(ctx context.Context, tx *txn, table string, nodeID int64, page state.Page, next *int64) (end int64,
	err error) {
	batches, err := list(ctx, tx, func(row scanner) (batch int64, err error) {
		err = row.Scan(&batch)
		return batch, err
	}, `SELECT DISTINCT batch FROM `+table+` WHERE node_id = ? AND batch >= ? ORDER BY batch LIMIT ?`,
		nodeID, page.From, pageLimit(page.Limit))
	if err != nil || len(batches) == 0 {
		return -1, err
	}
	end = batches[len(batches)-1]
	if len(batches) == pageLimit(page.Limit) {
		*next = end + 1
	}
	return end, nil
}

func scanAttempt(key state.NodeKey) func(scanner) (state.Attempt, error) {
	return func(row scanner) (state.Attempt, error) {
		a := state.Attempt{BatchKey: state.BatchKey{NodeKey: key}}
		var started, finished moment
		err := row.Scan(&a.Batch, &a.Attempt, &a.Epoch, &a.Generation, &a.Owner, &a.Status, &a.Withdrawn,
			&started, &finished, asDocument(&a.Failure), asDocument(&a.Stats))
		a.Started, a.Finished = started.Time, finished.Time
		return a, err
	}
}

// batchRow holds the columns that a decision about a batch needs.
type batchRow struct {
	node      nodeRow
	status    state.Status
	attempt   int
	epoch     int64
	tries     int
	phase     int
	open      int // the node's first phase that is not done
	owner     string
	token     string
	lease     moment
	notBefore moment
}

// findBatch reads a batch and its node; ok is false if the node has no such
// batch (any more).
func findBatch(ctx context.Context, tx *txn, key state.BatchKey) (b batchRow, ok bool, err error) {
	var status, owner, token sql.NullString
	var attempt, epoch, tries, phase, open sql.NullInt64
	err = tx.QueryRowContext(ctx, `SELECT n.id, n.run_id, n.status, n.epoch, n.fence, n.generation, n.plan_id,
		b.status, b.attempt, b.epoch, b.tries, b.owner, b.token, b.lease_ms, b.not_before_ms,
		b.phase, (SELECT min(o.phase) FROM batches o INDEXED BY batches_open
			WHERE o.node_id = n.id AND o.status <> 'succeeded')
		FROM runs r JOIN nodes n ON n.run_id = r.id LEFT JOIN batches b ON b.node_id = n.id AND b.batch = ?4
		WHERE r.workspace = ?1 AND r.run = ?2 AND n.node = ?3`,
		key.Workspace, key.Run, key.Node, key.Batch).
		Scan(&b.node.id, &b.node.runID, &b.node.status, &b.node.epoch, &b.node.fence,
			&b.node.generation, &b.node.planID,
			&status, &attempt, &epoch, &tries, &owner, &token, &b.lease, &b.notBefore, &phase, &open)
	b.status, b.owner, b.token = state.Status(status.String), owner.String, token.String
	b.attempt, b.epoch, b.tries = int(attempt.Int64), epoch.Int64, int(tries.Int64)
	b.phase, b.open = int(phase.Int64), int(open.Int64)
	return b, status.Valid, orNotFound(err)
}

// Claim implements state.Store.
func (s *Store) Claim(ctx context.Context, bid state.ClaimRequest) (state.Claim, error) {
	bid.Now, bid.Lease = stored(bid.Now), stored(bid.Lease)
	claim := state.Claim{BatchKey: bid.BatchKey, Epoch: bid.Epoch, Attempt: bid.Attempt + 1, Owner: bid.Owner,
		Lease: bid.Lease}
	err := s.update(ctx, "claim "+nameBatch(bid.BatchKey), func(tx *txn) error {
		b, ok, err := findBatch(ctx, tx, bid.BatchKey)
		if err == nil && !ok && b.node.epoch == bid.Epoch && b.node.status == state.Running {
			err = state.ErrNotFound
		}
		if err != nil {
			return err
		}
		held := state.Batch{Status: b.status, Attempt: b.attempt, Epoch: b.epoch, Tries: b.tries, Owner: b.owner,
			Lease: b.lease.Time, NotBefore: b.notBefore.Time, BatchSpec: state.BatchSpec{Phase: b.phase}}
		answer := bid.On(state.Node{Status: b.node.status, Epoch: b.node.epoch, Fence: b.node.fence}, held,
			b.token, b.open)
		switch answer {
		case state.ClaimRefused:
			return state.ErrNotClaimable
		case state.ClaimHeld:
			claim.Lease = b.lease.Time
		default:
			if err := b.take(ctx, tx, bid, answer == state.ClaimExpired); err != nil {
				return err
			}
		}
		claim.Tries = b.tries
		if answer == state.ClaimExpired {
			claim.Tries++
		}
		claim.Spec.Batch = bid.Batch
		return tx.QueryRowContext(ctx,
			`SELECT phase, class, rows_in, bytes_in, work FROM plan_batches WHERE plan_id = ? AND batch = ?`,
			b.node.planID, bid.Batch).Scan(&claim.Spec.Phase, &claim.Spec.Class, &claim.Spec.RowsIn,
			&claim.Spec.BytesIn, &claim.Spec.Work)
	})
	if err != nil {
		return state.Claim{}, err
	}
	return claim, nil
}

// take begins a new attempt; one whose lease is over is lost.
func (b batchRow) take(ctx context.Context, tx *txn, bid state.ClaimRequest, expired bool) error {
	lost := 0
	if expired {
		lost = 1
		if err := b.endAttempt(ctx, tx, bid.Batch, b.attempt, b.owner, state.Lost, bid.Now, b.lease.Time, nil,
			state.Stats{}); err != nil {
			return err
		}
	}
	_, err := tx.ExecContext(ctx,
		`INSERT INTO attempts (node_id, batch, attempt, epoch, generation, owner, status, started_ms)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
		b.node.id, bid.Batch, bid.Attempt+1, bid.Epoch, b.node.generation, bid.Owner, state.Claimed, moment{bid.Now})
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx,
		`UPDATE batches SET status = ?, attempt = ?, epoch = ?, tries = tries + ?, owner = ?, token = ?, lease_ms = ?,
			started_ms = ?,
		not_before_ms = NULL WHERE node_id = ? AND batch = ?`,
		state.Claimed, bid.Attempt+1, bid.Epoch, lost, bid.Owner, bid.Token, moment{bid.Lease}, moment{bid.Now},
		b.node.id, bid.Batch)
	if err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, `UPDATE nodes SET started_ms = ? WHERE id = ? AND started_ms IS NULL`,
		moment{bid.Now}, b.node.id); err != nil {
		return err
	}
	return record(ctx, tx, b.node.runID, b.node.id, state.BatchClaimed, bid.Owner, bid.Now,
		state.EventData{Status: state.Claimed, Batch: &bid.Batch, Attempt: bid.Attempt + 1})
}

// endAttempt moves an attempt from Claimed to one of its last states, and
// tells of it.
func (b batchRow) endAttempt(ctx context.Context, tx *txn, batch, attempt int, owner string, to state.Status,
	now, spent time.Time, failure *state.Failure, stats state.Stats) error {
	if !state.CanMove("attempt", state.Claimed, to) {
		return state.ErrIllegalMove
	}
	var measured *state.Stats
	if to == state.Succeeded || to == state.Failed {
		measured = &stats
	}
	err := exactlyOne(tx.ExecContext(ctx, `UPDATE attempts SET status = ?, finished_ms = ?, failure = ?, stats = ?
		WHERE node_id = ? AND batch = ? AND attempt = ? AND status = ?`,
		to, moment{now}, asDocument(failure), asDocument(measured), b.node.id, batch, attempt, state.Claimed))
	column := "lost_ms"
	if to == state.Succeeded {
		column = "worked_ms"
	}
	_, spentErr := tx.ExecContext(ctx, `UPDATE nodes SET `+column+` = `+column+` + max(coalesce(?1 - (SELECT started_ms
		FROM attempts WHERE node_id = ?2 AND batch = ?3 AND attempt = ?4), 0), 0) WHERE id = ?2`,
		moment{spent}, b.node.id, batch, attempt)
	return errors.Join(err, spentErr, record(ctx, tx, b.node.runID, b.node.id, state.BatchEnded, owner, now, state.EventData{
		Status: to, Batch: &batch, Attempt: attempt, Failure: failure, RowsIn: stats.RowsIn, RowsOut: stats.RowsOut,
		BytesOut: stats.BytesOut}))
}
