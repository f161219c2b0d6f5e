package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"thalweg/internal/base/fault"
)

// Step is an operator of a statement's physical plan, as EXPLAIN shows it.
type Step struct {
	Name     string         `json:"name"`
	Info     map[string]any `json:"extra_info"`
	Children []Step         `json:"children"`
}

// PlanOf asks DuckDB for the plan by which it would execute a statement. It
// fails where executing fails before the first row.
func PlanOf(ctx context.Context, db Querier, statement string) (plan Step, err error) {
	rows, err := db.QueryContext(ctx, "EXPLAIN (FORMAT JSON) "+statement)
	if err != nil {
		return plan, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var key, text string
		if err := rows.Scan(&key, &text); err != nil {
			return plan, err
		}
		if key != "physical_plan" {
			continue
		}
		var roots []Step
		if err := json.Unmarshal([]byte(text), &roots); err != nil || len(roots) != 1 {
			return plan, fmt.Errorf("read a physical plan of %d roots: %w", len(roots), err)
		}
		return roots[0], rows.Err()
	}
	return plan, errors.Join(errors.New("EXPLAIN gave no physical plan"), rows.Err())
}

// What an operator does with the order of rows while preserve_insertion_order
// is on. docs/decisions/0011-order-of-rows.md says how each is known.
type orderEffect uint8

const (
	losesOrder    orderEffect = iota // also whatever is not known here
	keepsOrder                       // its rows are in the order of what it reads, or of its file or table
	numbersRows                      // the same, and its result is about the order: it needs it always
	makesOrder                       // it sorts; what it reads may come in any order
	hasOneRow                        // no order is needed, above or below
	writesInOrder                    // a sink that takes the rows as they come
)

// effectOf is the list of operators that statements may use whose rows have an
// order. What is not in it is refused: a release of DuckDB, or a rule of its
// optimizer, may bring others.
func effectOf(name string) orderEffect {
	switch strings.TrimSpace(name) {
	case "PROJECTION", "FILTER", "UNNEST", "INOUT_FUNCTION", "UNION", "COLUMN_DATA_SCAN", "DUMMY_SCAN", "EMPTY_RESULT",
		"EXPRESSION_SCAN",
		"READ_PARQUET", "READ_CSV", "SEQ_SCAN", "TABLE_SCAN", "RANGE":
		return keepsOrder
	case "STREAMING_WINDOW", "LIMIT", "STREAMING_LIMIT", "POSITIONAL_JOIN", "POSITIONAL_SCAN":
		return numbersRows
	case "ORDER_BY", "TOP_N":
		return makesOrder
	case "UNGROUPED_AGGREGATE":
		return hasOneRow
	case "COPY_TO_FILE", "BATCH_COPY_TO_FILE", "CREATE_TABLE_AS", "BATCH_CREATE_TABLE_AS", "INSERT", "BATCH_INSERT":
		return writesInOrder
	}
	return losesOrder
}

// LosesOrder names the first operator that loses the order of rows on its way
// from where they lie, or are sorted, to where order matters: the result, or
// an operator that numbers rows. "" if there is none. needed says whether the
// order of the result matters.
func (s Step) LosesOrder(needed bool) string { return s.losesOrder(needed, false) }

// free says that an operator above, in the same pipeline, has no order. DuckDB
// (1.5.5) asks the operators of a pipeline from the top whether its branches
// must come one after the other, and the first that answers decides: below the
// probing side of a join a UNION is in no order, whatever numbers its rows.
func (s Step) losesOrder(needed, free bool) string {
	name := strings.TrimSpace(s.Name)
	switch effectOf(name) {
	case losesOrder:
		if needed {
			return name
		}
		free = true
	case numbersRows:
		needed = true
	case makesOrder, hasOneRow:
		needed, free = false, false
	}
	if needed && free && name == "UNION" {
		return name
	}
	for i, child := range s.Children {
		builds := name == "HASH_JOIN" && i == 1 // a pipeline of its own
		if lost := child.losesOrder(needed, free && !builds); lost != "" {
			return lost
		}
	}
	return ""
}

// InOrder refuses a statement whose rows would not come in order, or would be
// numbered in another one each time: better no result than that. It costs
// about a millisecond.
func InOrder(ctx context.Context, db Querier, statement string) error {
	return keepsOrderOf(ctx, db, statement, true)
}

// numberedInOrder refuses a statement that numbers rows in another order each time.
func numberedInOrder(ctx context.Context, db Querier, statement string) error {
	return keepsOrderOf(ctx, db, statement, false)
}

func keepsOrderOf(ctx context.Context, db Querier, statement string, needed bool) error {
	plan, err := PlanOf(ctx, db, statement)
	if err != nil {
		return err
	}
	if name := plan.LosesOrder(needed); name != "" {
		return &fault.Error{Kind: fault.Bug, Message: "DuckDB would not keep the order of rows: operator " + name}
	}
	return nil
}
