package pipeline

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"thalweg/internal/base/budget"
	"thalweg/internal/base/fault"
	"thalweg/internal/run/engine"
	"thalweg/internal/run/plan"
	"thalweg/internal/run/sheet"
	"thalweg/internal/store/state"
)

// Sizes of inputs are known, what formulas and joins make of them is not. A
// batch that runs out of memory is cut into pieces, which are executed one
// after the other in its slot's share and write what the batch would have
// written. From the first piece on that cannot be cut any more, the batch waits
// for all other batches of the directory's processes to end, and has their memory
// as well: so none fails because others work beside it.

// strain records a batch's need beyond its slot's memory so far.
type strain struct {
	share    budget.Share
	alone    int64          // what it had when it had everything
	notes    []state.Repeat // warnings for the user
	measured measured
}

// execute runs a task that does all or a piece of its batch's work.
func (p *Pipeline) execute(ctx context.Context, x *attempt, task engine.Task) (engine.Result, error) {
	share := x.strain.share
	if share == budget.OneSlot && x.only(p.cfg.Room.Budget()) {
		share = budget.AllSlots
	}
	res, grant, err := p.executeWith(ctx, x, task, share)
	if !errors.Is(err, engine.ErrOutOfMemory) {
		x.placeInTable(ctx, err)
		return res, err
	}
	if works := x.pieces(task); len(works) > 1 {
		p.cfg.Logger.Info("a batch needs more memory than it has; it is cut into pieces", "node", x.claim.Node, "batch",
			x.claim.Batch, "pieces", len(works), "memory_bytes", grant.EngineBytes)
		return p.executePieces(ctx, x, works)
	}
	if grant.Most {
		return res, err
	}
	defer x.noteAlone(grant.EngineBytes, x.hotKey(ctx))
	x.strain.share = budget.Everything
	return p.execute(ctx, x, task)
}

// only reports whether the batch is the only one of its node, and so much that
// it would put most of its rows aside in one slot's memory, as a sorted file
// does: it has the cores of all slots, and has their memory as well.
func (x *attempt) only(b budget.Budget) bool {
	return x.state.BatchesTotal == 1 && x.claim.Spec.BytesIn > b.BatchBytes
}

// pieces cuts the work of a task that only writes rows of its table: what looks
// at the rows of a batch together needs them together.
func (x *attempt) pieces(task engine.Task) []plan.Work {
	if task.Output.Part == nil || task.Quarantine != nil || task.Judge != nil || len(task.Sides) > 0 {
		return nil
	}
	return x.p.planner.Pieces(x.node, x.in, x.batch.Work)
}

// executePieces does a batch's work piece by piece.
func (p *Pipeline) executePieces(ctx context.Context, x *attempt, works []plan.Work) (total engine.Result, err error) {
	x.strain.measured.pieces += int64(len(works))
	for _, w := range works {
		piece := *x
		piece.batch.Work, piece.batch.RowsIn = w, w.RowsIn(x.in)
		piece.batch.RowsDone += total.RowsOut
		if piece.batch.Scratch, err = os.MkdirTemp(x.dir, "piece-"); err != nil {
			return total, fmt.Errorf("make a scratch directory: %w", err)
		}
		task, err := p.planner.Task(piece.node, piece.in, piece.plan, piece.own, piece.batch)
		if err != nil {
			return total, err
		}
		res, err := p.execute(ctx, &piece, task)
		total.Add(res)
		if err != nil {
			return total, err
		}
		if err := os.RemoveAll(piece.batch.Scratch); err != nil {
			return total, fmt.Errorf("remove a scratch directory: %w", err)
		}
	}
	return total, nil
}

// noteAlone says that a batch has needed more memory than it had beside others.
func (x *attempt) noteAlone(had int64, hot string) {
	all := x.strain.alone
	if all == 0 {
		return // it was interrupted
	}
	note := fmt.Sprintf("batch %d ran alone with %d MiB: the %d MiB of a slot were not enough", x.claim.Batch,
		all>>20, had>>20)
	if hot != "" {
		note += "; " + hot
	}
	x.p.cfg.Logger.Info("a batch needed more memory than a slot has; it ran alone", "node", x.claim.Node, "batch",
		x.claim.Batch, "memory_bytes", all)
	x.strain.notes = append(x.strain.notes, state.Repeat{Kind: "ran alone", First: note, Count: 1, Of: "batches"})
}

// hotKey names the key that has the most rows of a lookup's batch, "" if there
// is none or it cannot be found.
func (x *attempt) hotKey(ctx context.Context) (found string) {
	const keyBytesMax = 100
	query := plan.HotKeySQL(x.node, x.in, x.batch.Work, x.batch.Paths)
	if query == "" {
		return ""
	}
	task := engine.Task{Name: "the largest key of " + x.claim.Node,
		Output: engine.Output{Inspect: func(ctx context.Context, db engine.Querier) (err error) {
			rows, err := db.QueryContext(ctx, query)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, rows.Close()) }()
			var key string
			var n int64
			for rows.Next() {
				if err := rows.Scan(&key, &n); err != nil {
					return err
				}
				found = fmt.Sprintf("%d rows of table %s have the key %.*q", n, x.in.Lookup.Node.Table.Name,
					keyBytesMax, key)
			}
			return rows.Err()
		}}}
	for _, path := range x.batch.Paths {
		task.Paths = append(task.Paths, filepath.Dir(path))
	}
	if _, _, err := x.p.executeWith(ctx, x, task, budget.OneSlot); err != nil {
		return "" // it is only said to help
	}
	return found
}

// executeWith runs a task in a share of the memory, and says what that was.
func (p *Pipeline) executeWith(ctx context.Context, x *attempt, task engine.Task, share budget.Share) (engine.Result,
	budget.Grant, error) {
	var waited time.Duration
	taken, over := during(&waited), sheet.Waits(ctx)
	grant, release, err := p.cfg.Room.Take(ctx, share)
	taken()
	over()
	if grant.Turn {
		x.strain.measured.turn += waited
	} else {
		x.strain.measured.wait += waited
	}
	if err != nil {
		return engine.Result{}, grant, &fault.Error{Kind: fault.Canceled, Retryable: true, Message: task.Name +
			" was interrupted", Err: err}
	}
	defer release()
	defer sheet.Computes(ctx)()
	if share == budget.Everything {
		x.strain.alone = grant.EngineBytes
	}
	cfg := x.instance()
	cfg.MemoryBytes, cfg.Opened = grant.EngineBytes, x.strain.measured.watch.Spill
	p.busy.enter()
	defer p.busy.leave()
	computed := p.cfg.Meter.Compute()
	defer func() { x.strain.measured.cpu += computed() }()
	res, err := p.cfg.Engine.Execute(ctx, cfg, p.cfg.Pool, task)
	return res, grant, err
}
