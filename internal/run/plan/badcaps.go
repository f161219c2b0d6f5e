package plan

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"thalweg/internal/base/action"

	"thalweg/internal/base/fault"
	"thalweg/internal/lang/script"
	"thalweg/internal/run/engine"
	"thalweg/internal/store/state"
)

// CounterBadRows counts a batch's bad rows in state.Stats.Counters.
const CounterBadRows = "bad_rows"

// BadTotals holds the row counts that a node's caps are compared with.
type BadTotals struct {
	Rows, Bad int64 // read; of them bad
	Complete  bool  // all batches are in it: then the share counts too
}

// over says which cap is passed, "" for none.
func (t BadTotals) over(b *script.BadRows) string {
	switch {
	case t.Bad > b.MaxRows:
		return fmt.Sprintf("max_rows: %d", b.MaxRows)
	case t.Complete && float64(t.Bad)*100 > b.MaxPercent*float64(t.Rows):
		return "max_percent: " + strconv.FormatFloat(b.MaxPercent, 'g', -1, 64)
	}
	return ""
}

// wayOut returns a hint about so many bad rows, without the place of the caps. If all rows are known, it
// names the smallest caps that allow them.
func (t BadTotals) wayOut(b *script.BadRows) string {
	raise := "raise the cap"
	if t.Complete {
		var caps []string
		if t.Bad > b.MaxRows {
			caps = append(caps, fmt.Sprintf("max_rows: %d", t.Bad))
		}
		if percent := t.percent(); percent > b.MaxPercent {
			caps = append(caps, "max_percent: "+strconv.FormatFloat(percent, 'g', -1, 64))
		}
		raise += " to " + strings.Join(caps, ", ")
	}
	if t.Bad*100 > t.Rows*script.BadPercentDefault && t.Rows >= manyRows {
		return "correct the script: so many bad rows mean that a type, a format or the separator is another one; or " +
			raise
	}
	return "correct the input, or " + raise
}

// manyRows are so many that a share of them says something about the format.
const manyRows = 10

// percent is the smallest max_percent that the bad rows are within, in whole percents above one.
func (t BadTotals) percent() float64 {
	unit := 1.0
	if t.Bad*100 < t.Rows {
		unit = 1000
	}
	return math.Ceil(float64(t.Bad)*100*unit/float64(max(t.Rows, 1))) / unit
}

// judgeBadRows fails a node that has more bad rows of a table, or of files where reader
// is nil, than its caps allow.
// badRows is a SELECT of them.
func judgeBadRows(ctx context.Context, db engine.Querier, n *script.Node, reader *Table, b Batch, badRows string,
	t BadTotals) error {
	passed := t.over(n.BadRows)
	if passed == "" {
		return nil
	}
	whose := "rows are bad"
	if !t.Complete {
		whose = "rows of one batch are bad"
	}
	f := &fault.Error{Kind: fault.UserData, Message: fmt.Sprintf("%d of %d %s, more than %s of bad_rows allows", t.Bad,
		t.Rows, whose, passed),
		Hint: fmt.Sprintf("look at them with %s, then %s at %s:%d:%d",
			b.Run.Beside("sql", "query", fmt.Sprintf("FROM run%d.%s", b.Run.Run,
				plainIdent(SideTable(n, state.SideBad)))),
			t.wayOut(n.BadRows), n.BadRows.Pos.File, n.BadRows.Pos.Line, n.BadRows.Pos.Col)}
	if err := badExamplesOf(ctx, db, badRows, f); err != nil {
		return fmt.Errorf("read the bad rows of %s: %w", n.Name, err)
	}
	if reader != nil && f.Place.Line == 0 { // the side table counts the rows of the table
		f.Place.Table = reader.Name()
	}
	return f
}

// ShowBadRows makes the action that shows the bad rows beside a table, or
// beside a node that writes files, in a run.
func ShowBadRows(name string, run state.RunKey) action.Action {
	return run.Beside("sql", "query", fmt.Sprintf("FROM run%d.%s", run.Run, plainIdent(name+SideMark+state.SideBad)))
}

// badExamplesOf puts the first bad rows into a failure: the place of the first,
// and all as detail.
func badExamplesOf(ctx context.Context, db engine.Querier, badRows string, f *fault.Error) (err error) {
	rows, err := db.QueryContext(ctx,
		fmt.Sprintf("SELECT file, coalesce(line, 0), coalesce(col, 0), coalesce(record, 0), coalesce(field, ''), "+
			"coalesce(value, ''), coalesce(expression, ''), reason FROM (%s) LIMIT %d", badRows, badExamples))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	var examples []string
	for rows.Next() {
		var p fault.Place
		var reason string
		if err := rows.Scan(&p.File, &p.Line, &p.Column, &p.Record, &p.Field, &p.Value, &p.Expr, &reason); err != nil {
			return err
		}
		if len(examples) == 0 {
			f.Place = p
			f.Message += "; the first: " + reason
		}
		examples = append(examples, p.String()+": "+reason)
	}
	f.Detail = strings.Join(examples, "\n")
	return rows.Err()
}

// badCapsTask is the batch that compares a node's caps with all its batches.
func (p *Planner) badCapsTask(t engine.Task, n *script.Node, in Inputs, own *Table, b Batch) engine.Task {
	t.Judge = func(ctx context.Context, db engine.Querier, _ engine.Result) error {
		return judgeBadRows(ctx, db, n, in.Reader, b, own.SelectAll(b.Paths), b.Bad)
	}
	return t
}

// countBadRows says in the plan of a node that puts bad rows aside where they
// go, and adds the batch that compares them with the caps if there are several.
func (p *NodePlan) countBadRows(n *script.Node, works []Work, sizes []size) ([]Work, []size) {
	if n.BadRows == nil {
		return works, sizes
	}
	if p.Sides == nil {
		p.Sides = map[string]Layout{}
	}
	p.Sides[state.SideBad] = badLayout()
	reading := 0
	for i := range works {
		if !works[i].Check {
			reading++
			works[i].Only = true
		}
	}
	if reading <= 1 {
		return works, sizes
	}
	for i := range works {
		works[i].Only = false
	}
	return append(works, Work{BadCaps: true, Phase: phaseSecond}), append(sizes, size{})
}
