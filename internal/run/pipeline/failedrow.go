package pipeline

import (
	"context"
	"errors"
	"fmt"
	"time"

	"thalweg/internal/base/fault"
	"thalweg/internal/io/files"
	"thalweg/internal/run/plan"
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
const originTimeout = 5 * time.Second

// placeInTable gives a failed row its number in the table that the node reads, and the
// record of a file that it comes from. Until here the failure has the row's number in
// the batch.
func (x *attempt) placeInTable(ctx context.Context, err error) {
	var f *fault.Error
	if !errors.As(err, &f) || x.in.Reader == nil || x.node.PyTable != nil {
		return
	}
	placed := f.Place.File == "" || f.Place.Table != "" // the place is the row's, not that of the user's code
	t := x.in.Reader
	if l := x.in.Lookup; l != nil && f.Place.Table == l.Name() {
		t = l
	}
	row := x.findRow(t, &f.Place, placed)
	f.Place.Origin = x.originOf(ctx, f, t, row)
	if placed {
		return
	}
	said := "a row of table " + x.in.Reader.Name()
	switch {
	case f.Place.Table != "":
		said = fmt.Sprintf("row %d of table %s", f.Place.Record, f.Place.Table)
	case f.Place.Origin == nil:
		return
	}
	if f.Place.Origin != nil {
		said += ", from " + f.Place.Origin.String()
	}
	f.Message += " (" + said + ")"
}

// findRow puts the row of a place, which it counts in the batch, into the table t that is
// read, as far as it is known: row selects its order columns, "" if it is not known.
func (x *attempt) findRow(t *plan.Table, p *fault.Place, placed bool) (row string) {
	w := x.batch.Work
	switch {
	case p.Table != "": // it counts a table's rows already
		if p.Table == t.Name() && !t.Scattered() && p.Record > 0 {
			row = plan.RowAt(t, p.Record)
		}
	case len(w.Parts) == 0 && !w.Ranged: // the batch computes the table, and says so
	case t.Scattered(): // its rows have no numbers that would be the same each time
		if n := max(p.Record, p.Sorted); n > 0 {
			row = plan.BatchRowAt(t, w, n, p.Sorted > 0, x.batch.Paths)
		}
		p.Record = 0
		if placed && p.Field != "" {
			p.PutInTable(t.Name(), 0)
		}
	case p.Record > 0:
		p.PutInTable(t.Name(), p.Record+plan.FirstRow(t, w))
		row = plan.RowAt(t, p.Record)
	}
	return row
}

// originOf is the record of a file that a row of table t, if it is known, comes from;
// nil: it is not known. That helps whoever reads of the failure, and decides nothing: it
// takes at most half of the time that the attempt has left.
func (x *attempt) originOf(ctx context.Context, f *fault.Error, t *plan.Table, row string) *fault.Place {
	if x.p.cfg.RecordOf == nil || row == "" || f.Kind != fault.UserData && f.Kind != fault.Script {
		return nil
	}
	within := originTimeout
	if end, ok := ctx.Deadline(); ok {
		within = min(within, time.Until(end)/2)
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	place, err := x.p.cfg.RecordOf(ctx, x.p, ReadRow{Table: t, SQL: row, Paths: x.batch.Paths})
	if err != nil {
		x.p.cfg.Logger.Debug("the record that a failed row comes from was not found", "node", x.claim.Node, "batch",
			x.claim.Batch, "err", err)
		return nil
	}
	if place != nil {
		place.Raw = files.ShownRecord(place.Raw)
	}
	return place
}
