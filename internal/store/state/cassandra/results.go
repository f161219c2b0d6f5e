package cassandra

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"thalweg/internal/base/fault"
	"thalweg/internal/store/state"
)

// results reads one column of what the latest attempts of ended batches have
// published. A page has so many batches that have any. One that is said to have some and
// has not fails: who is given less than all would take the rest for withdrawn.
func results[T any](ctx context.Context, o *operation, key state.NodeKey, page state.Page, name string, has uint8,
	own func(v *T, batch, attempt int)) (all []T, next int64, err error) {
	m, err := o.readSegments(ctx, key)
	if err != nil {
		return nil, 0, o.explain(err)
	}
	numbers, next := m.pick(page, func(e entry) bool { return e.ended() && e.has&has != 0 })
	found := make([][]T, len(numbers))
	requests := slices.Collect(slices.Chunk(numbers, valuesMax))
	err = together(ctx, len(requests), atOnce/2, func(ctx context.Context, i int) error {
		some := found[i*valuesMax:][:len(requests[i])]
		missing, err := o.published(ctx, m, requests[i], name, func(at, attempt int, data []byte) error {
			some[at] = nil // it may be read again
			if err := o.codec.unpack(data, &some[at]); err != nil {
				return err
			}
			for j := range some[at] {
				own(&some[at][j], requests[i][at], attempt)
			}
			return nil
		})
		if err == nil && missing > 0 {
			err = &missingError{name: name, batches: missing}
		}
		return err
	})
	var missing *missingError
	if errors.As(err, &missing) {
		return nil, 0, o.explain(o.unlessPurged(ctx, key, missing))
	}
	if err != nil {
		return nil, 0, o.explain(err)
	}
	return slices.Concat(found...), next, nil
}

// published reads a column of the latest attempts of these batches, of which the node says that
// they have it, and gives how many have not. If any has not it is read again as it was decided.
func (o *operation) published(ctx context.Context, m *image, batches []int, name string,
	each func(at, attempt int, data []byte) error) (missing int, err error) {
	in, args := "", m.p.with()
	for i, b := range batches {
		if in += "(?, ?)"; i < len(batches)-1 {
			in += ", "
		}
		args = append(args, int64(b), int64(m.entry(b).attempt))
	}
	missing = len(batches)
	text := `SELECT n1, n2, ` + name + rowsOf + `kind = 3 AND (n1, n2) IN (` + in + `)`
	err = o.query(ctx, valuesMax, text, args, func(scan func(...any) error) error {
		var n1, n2 int64
		var data []byte
		if err := scan(&n1, &n2, &data); err != nil || len(data) == 0 {
			return err
		}
		missing--
		at, _ := slices.BinarySearch(batches, int(n1))
		return each(at, int(n2), data)
	})
	if err != nil || missing == 0 || o.serial {
		return missing, err
	}
	again := *o
	again.serial = true
	return again.published(ctx, m, batches, name, each)
}

// missingError says that a node's record and its rows do not fit.
type missingError struct {
	name    string // of the column
	batches int
}

func (e *missingError) Error() string {
	return fmt.Sprintf("the %s of %d batches are not there, though their node says that it has them", e.name, e.batches)
}

// unlessPurged is the error, unless the node has been purged since it was read: then it has nothing any more.
func (o *operation) unlessPurged(ctx context.Context, key state.NodeKey, missing *missingError) error {
	again := *o
	again.serial = true
	m, err := again.read(ctx, key)
	if err != nil || m.head.Purged {
		return err
	}
	return lost(missing)
}

// lost returns the error for rows that are missing although others refer to them.
func lost(err error) error {
	return &fault.Error{Kind: fault.Environment, Retryable: true, Message: "read the state in Cassandra", Err: err,
		Hint: "look whether Cassandra has lost writes: see its nodes' logs, and repair the keyspace (nodetool repair)"}
}

// Parts implements state.Store.
func (s *Store) Parts(ctx context.Context, key state.NodeKey, page state.Page) ([]state.Part, int64, error) {
	o := s.operation("Parts", "list parts of "+nameNode(key))
	parts, next, err := results(ctx, o, key, page, "parts", hasParts, func(p *state.Part, batch, attempt int) {
		p.Batch, p.Attempt = batch,
			attempt
	})
	slices.SortStableFunc(parts,
		func(a, b state.Part) int { return cmp.Or(cmp.Compare(a.Batch, b.Batch), cmp.Compare(a.Seq, b.Seq)) })
	return parts, next, err
}

// Files implements state.Store.
func (s *Store) Files(ctx context.Context, key state.NodeKey, page state.Page) ([]state.File, int64, error) {
	o := s.operation("Files", "list files of "+nameNode(key))
	return results(ctx, o, key, page, "files", hasFiles, func(f *state.File, batch, _ int) {
		f.NodeKey,
			f.Batch = key, batch
	})
}

// Checks implements state.Store.
func (s *Store) Checks(ctx context.Context, key state.NodeKey, page state.Page) ([]state.CheckResult, int64, error) {
	o := s.operation("Checks", "list checks of "+nameNode(key))
	return results(ctx, o, key, page, "checks", hasChecks, func(c *state.CheckResult, batch, _ int) {
		c.NodeKey,
			c.Batch = key, batch
	})
}

// Tally implements state.Store.
func (s *Store) Tally(ctx context.Context, key state.NodeKey) (state.Tally, error) {
	o := s.operation("Tally", "sum up "+nameNode(key))
	m, err := o.read(ctx, key)
	if err == nil {
		err = o.codec.unpack(m.sumsRead, &m.sums)
	}
	if err != nil {
		return state.Tally{}, o.explain(err)
	}
	return m.sums.all(), nil
}

// Publications implements state.Store.
func (s *Store) Publications(ctx context.Context, key state.NodeKey, page state.Page) (all []state.Publication,
	next int64, err error) {
	o := s.operation("Publications", "list what is being published of "+nameNode(key))
	m, err := o.read(ctx, key)
	if err != nil {
		return nil, 0, o.explain(err)
	}
	keys := slices.DeleteFunc(slices.Clone(m.head.Pubs), func(k pubKey) bool { return int64(k.Batch) < page.From })
	slices.SortFunc(keys, func(a, b pubKey) int {
		return cmp.Or(cmp.Compare(a.Batch, b.Batch),
			cmp.Compare(a.Attempt, b.Attempt))
	})
	batches := 0
	for i, k := range keys {
		if i > 0 && keys[i-1].Batch == k.Batch {
			continue
		}
		if batches == pageLimit(page.Limit) {
			keys, next = keys[:i], int64(k.Batch)
			break
		}
		batches++
	}
	found := make([][]state.Publication, len(keys))
	err = together(ctx, len(keys), atOnce, func(ctx context.Context, i int) error {
		at := attemptPlace(keys[i].Batch, keys[i].Attempt)
		one, err := o.read(ctx, key, at)
		if err == nil {
			found[i] = one.pubs[at]
		}
		return err
	})
	if err != nil {
		return nil, 0, o.explain(err)
	}
	return slices.Concat(found...), next, nil
}
