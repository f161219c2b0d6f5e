package runner_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/app/inspect"
	"thalweg/internal/app/instance"
	"thalweg/internal/app/runner"
	"thalweg/internal/app/runtime"
	"thalweg/internal/base/budget"
	"thalweg/internal/store/state"
	"thalweg/internal/test/effort"
)

// sharedChecksScript has checks that all find something, of tables whose rows lie
// as they came, in buckets, sorted by a key and in an order that only columns say.
const sharedChecksScript = `
nodes:
  read_sorted:
    type: file_table
    r: { urls: [DIR/sorted.csv], columns: { account: int, name: "string?", amount: decimal2, rate: "float?", ` +
	`day: datetime 2006-01-02 } }
    w: sorted
    checks: &checks
      - { unique: account, severity: warn }
      - { unique: "name, amount", severity: warn, max_rows: 7 }
      - { unique: rate, severity: warn, where: w.account % 3 > 0 }
      - { unique: day, severity: warn, max_rows: 0 }
      - { not_null: "name, rate", severity: warn, max_rows: 20 }
      - { range: { field: amount, max: 90 }, severity: warn }
      - { accepted_values: { field: name, values: [n1, n2, n3] }, severity: warn, max_rows: 2 }
      - { expression: w.account % 7 != 0, severity: warn, where: w.amount > decimal2(10) }
      - { rows: { max: 5 }, severity: warn }
      - { freshness: { field: day, max_age: 1d }, severity: warn }
      - { references: { fields: account, table: few, to: id }, severity: warn }
      - { references: { fields: "name, account", table: few, to: "name, id" }, severity: warn, max_rows: 5 }
      - { references: { fields: rate, table: few, to: rate }, severity: warn }
      - { reconcile: { value: sum(w.rate), table: few, equals: sum(r.rate), by: { account: id } }, severity: warn }
      - { reconcile: { value: count(), table: few, equals: count(), by: name }, severity: warn, max_rows: 3 }
      - { reconcile: { value: sum(w.amount), table: few, equals: count() }, severity: warn }
  read_shuffled:
    type: file_table
    r: { urls: [DIR/shuffled_1.csv, DIR/shuffled_2.csv], columns: { account: int, name: "string?", ` +
	`amount: decimal2, rate: "float?", day: datetime 2006-01-02 } }
    w: shuffled
    checks: *checks
  read_few:
    type: file_table
    r: { urls: [DIR/few.csv], columns: { id: int, name: "string?", rate: "float?" } }
    w: few
  pairs:
    type: table_lookup_table
    r: shuffled
    l: { table: sorted, on: account, join_type: left, filter: l.amount > decimal2(70) }
    w: { name: pairs, fields: [r.account, r.name, { amount: "coalesce(l.amount, decimal2(0))" }, l.rate, r.day] }
    checks: *checks
  named:
    type: table_lookup_table
    r: few
    l: { table: shuffled, on: name, join_type: left, group: true }
    w: { name: named, fields: [r.id, { rows: count() }] }
    checks:
      - { reconcile: { value: sum(w.rows), table: pairs, equals: count(), by: { id: account } }, severity: warn }
  broken:
    type: table_table
    r: pairs
    w: { name: broken, fields: [account, name], indexes: { idx_broken: "unique(account, name(ignore_case))" } }
    checks:
      - { references: { fields: account, table: named, to: id }, severity: warn } # waits for the others
  after:
    type: table_lookup_table
    r: few
    l: { index_name: idx_broken, join_on: "r.id, r.name", join_type: left, group: true }
    w: { name: after, fields: [r.id, { rows: count() }] }
`

// Counts, kept rows and words of checks do not depend on how many batches share
// them, or on how the rows lie.
func TestSameFindingsHoweverChecksAreShared(t *testing.T) {
	effort.Unraced(t)
	t.Parallel()
	rows := effort.Of(240, 240, 900)
	inputs := map[string]string{"script.yaml": sharedChecksScript}
	rng := rand.New(rand.NewPCG(5, 6))
	line := func(account int) string {
		return fmt.Sprintf("%d,%s,%d.50,%s,2024-0%d-11\n", account, []string{"", "n1", "N1", "n2", "it's",
			"ä"}[rng.IntN(6)],
			rng.IntN(100),
			[]string{"", "NaN", "0", "-0", "1.5", "1e300", "-2.25", "0.1"}[rng.IntN(8)], 1+rng.IntN(9))
	}
	const header = "account,name,amount,rate,day\n"
	inputs["sorted.csv"], inputs["shuffled_1.csv"], inputs["shuffled_2.csv"], inputs["few.csv"] = header, header,
		header, "id,name,rate\n"
	for i := range rows {
		inputs["sorted.csv"] += line(i / 2)
		inputs[fmt.Sprintf("shuffled_%d.csv", 1+i%2)] += line(rng.IntN(rows / 3))
		if i%3 == 0 {
			inputs["few.csv"] += fmt.Sprintf("%d,n%d,%d.5\n", i/2, i%4, i%3)
		}
	}
	type findings struct {
		checks  []state.CheckResult
		failed  map[string][][]any
		failure string
	}
	var want *findings
	for _, tc := range []struct {
		name    string
		batches int // of read_shuffled at least, with those of its checks
		tune    func(*budget.Budget)
	}{
		{"one batch", 2, func(b *budget.Budget) { b.SmallBytes = 1 << 30 }},
		{"some batches", 6, func(b *budget.Budget) {
			b.Slots, b.Cores, b.BatchBytes, b.SmallBytes, b.SlotEngineBytes = 2, 2, 4<<10, 0, 64<<10
		}},
		{"many batches", 12, func(b *budget.Budget) {
			b.Slots, b.Cores, b.BatchBytes, b.SmallBytes, b.BroadcastBytes, b.SlotEngineBytes = 3, 3,
				8<<10, 0, 0, 16<<10
		}},
	} {
		if few := want != nil && tc.name != "many batches"; effort.Of(few, few, false) {
			continue
		}
		dir := t.TempDir()
		for name, text := range inputs {
			require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(replaceAll(text, "DIR", dir)), 0o644))
		}
		ctx := context.Background()
		home, err := instance.Open(ctx, filepath.Join(dir, "state"), true)
		require.NoError(t, err)
		sum, err := runner.Run(ctx, home, runner.Options{ScriptPath: filepath.Join(dir, "script.yaml"),
			Workspace: "main", Process: runtime.Process{MemoryBytes: 1 << 30, Cores: 2, Tune: tc.tune}})
		require.NoError(t, err, tc.name)
		require.NotNil(t, sum.Failure, tc.name)
		got := &findings{failed: map[string][][]any{}, failure: strings.ReplaceAll(sum.Failure.Place.String()+": "+
			sum.Failure.Message, dir, "")}
		require.Contains(t, got.failure, "index idx_broken of table broken is unique, but ", tc.name)
		got.checks, err = state.OfNodes(ctx, home.State, sum.Key, home.State.Checks)
		require.NoError(t, err)
		for i := range got.checks {
			got.checks[i].Batch = 0
		}
		for _, table := range []string{"sorted", "shuffled", "pairs", "named", "broken"} {
			res, err := inspect.Query(ctx, home, inspect.QueryOptions{Workspace: "main",
				SQL: "FROM " + table + "__failed"})
			require.NoError(t, err, tc.name)
			require.NotEmpty(t, res.Rows, table)
			got.failed[table] = res.Rows
		}
		for _, n := range sum.Nodes {
			if n.Name == "read_shuffled" {
				require.GreaterOrEqual(t, n.BatchesTotal, tc.batches, tc.name)
			}
		}
		require.NoError(t, home.Close())
		if want == nil {
			want = got
			require.Len(t, got.checks, 3*16+3)
			for _, c := range got.checks {
				require.Positive(t, c.Failed, c.Name)
			}
			continue
		}
		require.Equal(t, want.checks, got.checks, tc.name)
		require.Equal(t, want.failure, got.failure, tc.name)
		for table := range want.failed {
			require.Equal(t, fmt.Sprint(want.failed[table]), fmt.Sprint(got.failed[table]), "%s: %s", tc.name, table)
		}
	}
}
