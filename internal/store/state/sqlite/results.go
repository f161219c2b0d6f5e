package sqlite

import (
	"cmp"
	"context"
	"slices"

	"thalweg/internal/store/state"
)

// documents is a list as a column keeps it: NULL for none.
func documents[T any](all []T) document[[]T] {
	if len(all) == 0 {
		return document[[]T]{}
	}
	return asDocument(&all)
}

// Parts implements state.Store.
func (s *Store) Parts(ctx context.Context, key state.NodeKey, page state.Page) ([]state.Part, int64, error) {
	return results(ctx, s, key, page, "parts", func(p *state.Part, batch, attempt int) {
		p.Batch,
			p.Attempt = batch, attempt
	},
		func(parts []state.Part) {
			slices.SortFunc(parts, func(a, b state.Part) int { return cmp.Compare(a.Seq, b.Seq) })
		})
}

// Files implements state.Store.
func (s *Store) Files(ctx context.Context, key state.NodeKey, page state.Page) ([]state.File, int64, error) {
	return results(ctx, s, key, page, "files", func(f *state.File, batch, _ int) { f.NodeKey, f.Batch = key, batch },
		nil)
}

// Checks implements state.Store.
func (s *Store) Checks(ctx context.Context, key state.NodeKey, page state.Page) ([]state.CheckResult, int64, error) {
	return results(ctx, s, key, page, "checks", func(c *state.CheckResult, batch, _ int) {
		c.NodeKey, c.Batch = key,
			batch
	}, nil)
}

// indexed names the indexes of columns that few results have.
var indexed = map[string]string{"checks": "INDEXED BY results_with_checks", "files": "INDEXED BY results_with_files"}

// results reads one column of what the latest attempts of ended batches have
// published. A page has so many batches that have any.
func results[T any](ctx context.Context, s *Store, key state.NodeKey, page state.Page, column string,
	own func(v *T, batch, attempt int), order func([]T)) (all []T, next int64, err error) {
	type result struct {
		batch, attempt int
		values         []T
	}
	err = s.view(ctx, "list "+column+" of "+nameNode(key), func(tx *txn) error {
		n, err := findNode(ctx, tx, key)
		if err != nil {
			return err
		}
		limit := pageLimit(page.Limit)
		page, err := list(ctx, tx, func(row scanner) (r result, err error) {
			err = row.Scan(&r.batch, &r.attempt, asDocument(&r.values))
			return r, err
		}, `SELECT b.batch, b.attempt, r.`+column+` FROM results r `+indexed[column]+
			` JOIN batches b ON b.node_id = r.node_id AND b.batch = r.batch AND b.attempt = r.attempt
			WHERE r.node_id = ? AND r.batch >= ? AND r.`+column+
			` IS NOT NULL AND b.status IN ('succeeded', 'failed') ORDER BY r.batch LIMIT ?`, n.id, page.From, limit)
		if err != nil {
			return err
		}
		for _, r := range page {
			for i := range r.values {
				own(&r.values[i], r.batch, r.attempt)
			}
			if order != nil {
				order(r.values)
			}
			all = append(all, r.values...)
		}
		if len(page) == limit {
			next = int64(page[limit-1].batch) + 1
		}
		return nil
	})
	return all, next, err
}
