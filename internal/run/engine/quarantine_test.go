package engine

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/base/fault"
)

// quarantined is a task that fails for i = 3 and 7 of ten rows, and goes on without them.
func (f *fixture) quarantined(judge error) Task {
	t := f.task("SELECT CASE WHEN i % 4 = 3 THEN error('bad') ELSE i END AS i FROM range(10) t(i)", PartOutput{})
	t.Quarantine = &Quarantine{
		Retry: func(ctx context.Context, db *Instance, bad *Bad) (Task, int64, error) {
			for _, i := range []int64{7, 3} {
				r := fault.BadRow{Place: fault.Place{File: "a.csv", Record: i + 1}, Reason: "bad", Raw: "x"}
				if err := bad.Add(0, i, r, ActionQuarantined); err != nil {
					return Task{}, 0, err
				}
			}
			bad.Omit(1)
			rest := f.task("SELECT i FROM range(10) t(i) WHERE i % 4 <> 3", PartOutput{})
			return rest, 10, nil
		},
		Sides: []SideOutput{{Side: "bad", Query: "SELECT record, line FROM " + BadTable + " ORDER BY at_row",
			Stage: f.stage}},
		Judge: func(context.Context, Querier, Result) error { return judge },
	}
	return t
}

func TestQuarantine(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	res, err := Execute(context.Background(), f.cfg, nil, f.quarantined(nil))
	require.NoError(t, err)
	require.EqualValues(t, 8, res.RowsOut)
	require.EqualValues(t, 3, res.BadRows)
	require.EqualValues(t, 10, res.CSVRows)
	require.Len(t, res.Sides, 1)
	require.EqualValues(t, 2, res.Sides[0].Rows)
	require.Len(t, f.files(t), 2)
}

func TestQuarantineJudge(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	tooMany := fault.New(fault.UserData, "too many")
	res, err := Execute(context.Background(), f.cfg, nil, f.quarantined(tooMany))
	require.ErrorIs(t, err, tooMany)
	require.Empty(t, res.Written)
	require.Len(t, res.Sides, 1, "the bad rows can be looked at")
	require.EqualValues(t, 3, res.BadRows)
	require.Len(t, f.files(t), 1)
}

// TestQuarantineIsForBadRows: what succeeds is not done twice, and what fails
// for other reasons than its rows is not tried again.
func TestQuarantineIsForBadRows(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for name, tc := range map[string]struct {
		change func(*Task)
		tried  bool
	}{
		"success": {func(t *Task) { t.Query = "SELECT 1 AS i" }, false},
		"no memory": {func(t *Task) { t.Prepare = fails(&fault.Error{Kind: fault.Environment, Message: "disk"}) },
			false},
		"a script's fault": {func(t *Task) { t.Prepare = fails(&fault.Error{Kind: fault.Script, Message: "url"}) },
			false},
		"a bug":             {func(t *Task) { t.Query = "SELECT nothing FROM nowhere" }, false},
		"a value":           {func(*Task) {}, true},
		"bad while reading": {func(t *Task) { t.Prepare = fails(fault.New(fault.UserData, "ragged")) }, true},
	} {
		tried := false
		task := f.quarantined(nil)
		tc.change(&task)
		retry := task.Quarantine.Retry
		task.Quarantine.Retry = func(ctx context.Context, db *Instance, bad *Bad) (Task, int64, error) {
			tried = true
			return retry(ctx, db, bad)
		}
		res, err := Execute(context.Background(), f.cfg, nil, task)
		require.Equal(t, tc.tried, tried, name)
		if tried {
			require.NoError(t, err, name)
			require.EqualValues(t, 3, res.BadRows, name)
		} else {
			require.Zero(t, res.BadRows, name)
		}
	}
	task := f.quarantined(nil)
	task.Quarantine.Retry = func(context.Context, *Instance, *Bad) (Task, int64, error) {
		return Task{}, 0, errors.New("cannot tell them apart")
	}
	_, err := Execute(context.Background(), f.cfg, nil, task)
	require.ErrorContains(t, err, "cannot tell them apart")
}

func fails(err error) func(context.Context) error {
	return func(context.Context) error { return err }
}

// TestTolerantly: failures in TRY are NULL inside, errors with their own words
// outside, where the configuration is as before.
func TestTolerantly(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	cfg := f.cfg
	cfg.Unlocked = true
	ctx := context.Background()
	in, err := OpenInstance(ctx, cfg)
	require.NoError(t, err)
	defer func() { require.NoError(t, in.Close()) }()
	require.NoError(t, in.Exec(ctx,
		"CREATE TEMP TABLE s AS SELECT i, CASE WHEN i % 10 = 3 THEN 'x' ELSE CAST(i AS VARCHAR) END AS t FROM "+
			"range(5000) r(i)"))
	count := func(query string) (n int64) {
		rows, err := in.Query(ctx, query)
		require.NoError(t, err, query)
		defer rows.Close()
		require.True(t, rows.Next())
		require.NoError(t, rows.Scan(&n))
		return n
	}
	require.NoError(t, in.Tolerantly(ctx, func() error {
		for query, want := range map[string]int64{
			"SELECT count(*) FROM s WHERE TRY([CASE WHEN i % 5 = 1 THEN error('constant') ELSE i END]) IS NULL": 1000,
			"SELECT count(*) FROM s WHERE TRY([CASE WHEN i % 5 = 1 THEN error('no ' || t) ELSE t END]) IS NULL": 1000,
			"SELECT count(*) FROM s WHERE TRY([NULL]) IS NULL":                                                  0,
			"SELECT count(*) FROM s WHERE CASE WHEN i % 2 = 0 THEN false WHEN TRY([CAST(t AS INTEGER)]) IS NULL THEN " +
				"true ELSE TRY([CAST(t AS INTEGER) + CAST(t AS INTEGER)]) IS NULL END": 500,
		} {
			require.Equal(t, want, count(query), query)
		}
		return nil
	}))
	_, err = in.Query(ctx, "SELECT error('as ever')")
	require.ErrorContains(t, err, "as ever")
	require.EqualValues(t, 1,
		count("SELECT count(*) FROM duckdb_settings() WHERE name = 'disabled_optimizers' AND value = ''"))

	locked, err := OpenInstance(ctx, f.cfg)
	require.NoError(t, err)
	defer func() { require.NoError(t, locked.Close()) }()
	require.Error(t, locked.Tolerantly(ctx, func() error { return nil }))
}
