package lineage

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"thalweg/internal/run/pipeline"
	"thalweg/internal/run/plan"
	"thalweg/internal/store/state"
)

// materialize writes the rows of the ephemeral tables that a node reads, as far
// as the batches have computed them that have made the node's rows.
func (t *tracer) materialize(ctx context.Context, n *traced, keys string) error {
	if n.inner || !n.In.Reader.Ephemeral() && !n.In.Lookup.Ephemeral() {
		return nil
	}
	specs, err := t.specs(ctx, n)
	if err != nil {
		return err
	}
	batches, err := t.batchesOf(ctx, n, keys)
	if err != nil {
		return err
	}
	m := maker{t: t, reader: n, made: map[string]string{}}
	for _, b := range batches {
		var w plan.Work
		if err := w.Decode(specs[b]); err != nil {
			return err
		}
		m.specs, m.works = append(m.specs, specs[b]), append(m.works, &w)
	}
	n.In, err = m.inputs(ctx, n.In, m.works, nil)
	return err
}

// batchesOf are the batches that have made the rows that are followed.
func (t *tracer) batchesOf(ctx context.Context, n *traced, keys string) (out []int, err error) {
	found := map[int]bool{}
	for _, p := range n.at {
		found[p.batch] = true
	}
	if len(found) > 0 {
		return slices.Sorted(maps.Keys(found)), nil
	}
	on := make([]string, n.table.Width())
	for i := range on {
		on[i] = fmt.Sprintf("k.__o%d IS NOT DISTINCT FROM s.%s", i, plan.OrderName(i))
	}
	rows, err := t.in.Query(ctx, fmt.Sprintf("SELECT DISTINCT s.%s FROM %s AS k JOIN (%s) AS s ON %s", plan.PartColumn,
		keys, n.table.Select(t.paths, nil, true), strings.Join(on, " AND ")))
	if err != nil {
		return nil, fmt.Errorf("find the batches of %s: %w", n.key.Node, err)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var part int
		if err := rows.Scan(&part); err != nil {
			return nil, err
		}
		found[n.table.Parts[part].Batch] = true
	}
	return slices.Sorted(maps.Keys(found)), rows.Err()
}

// maker writes the ephemeral tables inside some batches of a node.
type maker struct {
	t      *tracer
	reader *traced
	specs  []state.BatchSpec
	works  []*plan.Work
	made   map[string]string // path of rows by what was to be computed
}

// inputs is in with stored tables in the places of ephemeral ones, to which
// the names lead. works are what the batches do there.
func (m *maker) inputs(ctx context.Context, in plan.Inputs, works []*plan.Work, names []string) (plan.Inputs, error) {
	for _, at := range []**plan.Table{&in.Reader, &in.Lookup} {
		if !(*at).Ephemeral() {
			continue
		}
		table, err := m.table(ctx, *at, works, names)
		if err != nil {
			return in, err
		}
		*at = table
	}
	return in, nil
}

func (m *maker) table(ctx context.Context, table *plan.Table, works []*plan.Work, names []string) (*plan.Table, error) {
	name := table.Node.Table.Name
	names = append(slices.Clone(names), name)
	inner := make([]*plan.Work, len(works))
	var parts []string
	for i, w := range works {
		if inner[i] = w.Inner[name]; inner[i] == nil {
			return nil, fmt.Errorf("batch %d of %s does not say what it computes of table %s", m.specs[i].Batch,
				m.reader.key.Node, name)
		}
		what, err := json.Marshal(inner[i])
		if err != nil {
			return nil, err
		}
		key := name + " " + string(what) // the same side of a lookup in each batch
		if _, have := m.made[key]; have {
			continue
		}
		again, err := m.reader.job.TraceBatch(ctx, m.reader.key, m.specs[i], pipeline.Again{Inside: names,
			Dir: m.t.cfg.Dir, Beside: m.t.cfg.Beside})
		if err != nil {
			return nil, err
		}
		if m.made[key] = again.Path; again.Path != "" {
			parts = append(parts, again.Path)
		}
		of, err := m.t.of(table)
		if err != nil {
			return nil, err
		}
		of.files = append(of.files, again.Files...)
	}
	stored, paths := table.Traceable(parts...)
	maps.Copy(m.t.paths, paths)
	of, err := m.t.of(table)
	if err != nil {
		return nil, err
	}
	of.table, of.own = stored, true
	of.In, err = m.inputs(ctx, of.In, inner, names)
	return stored, err
}
