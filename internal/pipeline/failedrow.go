package pipeline

import (
	"context"
	"errors"
	"fmt"
	"time"

	"thalweg/internal/fault"
	"thalweg/internal/plan"
)

// ReadRow is a row that a batch has read of a table: SQL gives its order columns, as
// plan.RowAt does, and reads Paths.
type ReadRow struct {
	Table *plan.Table
	SQL   string
	Paths plan.Paths
}

// originTimeout bounds how long a failure waits for the record that its row comes from:
// batches behind it are executed once more for that.
const originTimeout = 10 * time.Second

// placeInTable gives a failed row its number in the table that the node reads, and the
// record of a file that it comes from. Until here the failure has the row's number in
// the batch.
func (x *attempt) placeInTable(ctx context.Context, err error) {
	var f *fault.Error
	t, w := x.in.Reader, x.batch.Work
	if !errors.As(err, &f) || t == nil || x.node.PyTable != nil {
		return
	}
	p := &f.Place
	inFile, said, row := p.File != "" && p.Table == "", "", ""
	switch {
	case p.Table != "": // it counts a table's rows already
		if p.Table == t.Name() && !t.Scattered() && p.Record > 0 {
			row = plan.RowAt(t, p.Record)
		}
	case len(w.Parts) == 0: // the batch computes the table, and says so
		return
	case t.Scattered(): // its rows have no numbers that would be the same each time
		if said = "a row of table " + t.Name(); p.Record > 0 || p.Sorted > 0 {
			row = plan.BatchRowAt(t, w, max(p.Record, p.Sorted), p.Sorted > 0, x.batch.Paths)
		}
		if p.Record = 0; !inFile && p.Field != "" {
			p.PutInTable(t.Name(), 0)
		}
	case p.Record > 0:
		p.PutInTable(t.Name(), p.Record+plan.FirstRow(t, w))
		row, said = plan.RowAt(t, p.Record), fmt.Sprintf("row %d of table %s", p.Record, t.Name())
	}
	if p.Origin = x.originOf(ctx, f, row); p.Origin != nil {
		said += ", from " + p.Origin.String()
	}
	if inFile && (p.Record > 0 || p.Origin != nil) {
		f.Message += " (" + said + ")"
	}
}

// originOf is the record of a file that a row of a batch, if it is known, comes from;
// nil: it is not known. That helps whoever reads of the failure, and decides nothing.
func (x *attempt) originOf(ctx context.Context, f *fault.Error, row string) *fault.Place {
	if x.p.cfg.RecordOf == nil || row == "" || f.Kind != fault.UserData && f.Kind != fault.Script {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, originTimeout)
	defer cancel()
	place, err := x.p.cfg.RecordOf(ctx, x.p, ReadRow{Table: x.in.Reader, SQL: row, Paths: x.batch.Paths})
	if err != nil {
		x.p.cfg.Logger.Debug("the record that a failed row comes from was not found", "node", x.claim.Node, "batch", x.claim.Batch, "err", err)
		return nil
	}
	return place
}
