package sqlite

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/base/fault"
	"thalweg/internal/store/state"
)

// unpack writes the files of an archive into dir.
func unpack(t *testing.T, archive, dir string) {
	t.Helper()
	f, err := os.Open(archive)
	require.NoError(t, err)
	defer f.Close()
	z, err := gzip.NewReader(f)
	require.NoError(t, err)
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		require.NoError(t, err)
		content, err := io.ReadAll(r)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(dir, filepath.Base(h.Name)), content, 0o600))
	}
}

// A state file that the version before wrote: testdata/version3.tar.gz has two
// runs of a script, of which the second failed, and one of another in another
// workspace. All of it is there, and the failed run goes on.
func TestVersion3(t *testing.T) {
	t.Parallel()
	dir, ctx := t.TempDir(), context.Background()
	unpack(t, "testdata/version3.tar.gz", dir)
	s := openTest(t, filepath.Join(dir, "state.db"))
	names, err := s.Workspaces(ctx)
	require.NoError(t, err)
	require.Equal(t, []string{"main", "other"}, names)
	runs, err := state.All(ctx, s.Runs, "main")
	require.NoError(t, err)
	require.Len(t, runs, 2)
	failed, complete := runs[0], runs[1]
	require.Equal(t, []state.Status{state.Failed, state.Complete}, []state.Status{failed.Status, complete.Status})
	require.Equal(t, fault.UserData, failed.Failure.Kind)
	require.Equal(t, []state.NodeBrief{{Name: "load", Table: "orders", Status: state.Succeeded,
		RowsOut: 3, BytesOut: 672, Spent: state.Spent{Worked: 95 * time.Millisecond}},
		{Name: "write", Status: state.Succeeded, RowsOut: 3, BytesOut: 54,
			Spent: state.Spent{Worked: 58 * time.Millisecond}}}, complete.Nodes)

	load := state.NodeKey{RunKey: complete.RunKey, Node: "load"}
	n, err := s.Node(ctx, load)
	require.NoError(t, err)
	require.Equal(t, []int64{2, 2, 3}, []int64{int64(n.BatchesTotal), int64(n.BatchesDone), n.RowsOut})
	require.Contains(t, string(n.Plan), `"table":"orders"`)
	require.NotEmpty(t, n.PlanDigest)
	specs, err := state.All(ctx, s.Specs, load)
	require.NoError(t, err)
	require.Equal(t, []int{0, 1}, []int{specs[0].Phase, specs[1].Phase},
		"the batch that checks comes behind the one that reads")
	require.Contains(t, string(specs[0].Work), "in.csv")
	inputs, err := state.All(ctx, s.Inputs, load)
	require.NoError(t, err)
	require.Equal(t, []state.Input{{Address: "in.csv", Bytes: 77, Time: time.Date(2026, 11, 22, 16, 4, 7, 242349468,
		time.UTC), Digest: "0e0a66eead73575da40146e57395fb8d", Rows: -1}}, inputs)
	parts, err := state.Manifest(ctx, s, load)
	require.NoError(t, err)
	require.Equal(t, []state.Part{{Key: "main/00001/00-load/b00000-a1-0000.parquet", Bucket: -1, Rows: 3, Bytes: 672,
		RawBytes: 186,
		Schema:   "id:int,status:string,price:decimal2,at:datetime", Checksum: "crc32c:7f98ec4e", Attempt: 1}}, parts)
	checks, err := state.All(ctx, s.Checks, load)
	require.NoError(t, err)
	require.Len(t, checks, 5)
	require.Equal(t, "not empty", checks[0].Name)
	files, err := state.OfNodes(ctx, s, complete.RunKey, s.Files)
	require.NoError(t, err)
	require.Len(t, files, 1)
	require.Equal(t, int64(3), files[0].Rows)
	attempts, err := state.All(ctx, s.Attempts, load)
	require.NoError(t, err)
	require.Len(t, attempts, 2)
	require.False(t, attempts[0].Withdrawn)

	tally := func() (all [3]int64) { // of a node that ended batches before there were any
		t.Helper()
		sum, err := s.Tally(ctx, load)
		require.NoError(t, err)
		return [3]int64{int64(sum.Batches), sum.Stats.RowsIn, sum.Stats.RowsOut}
	}
	require.Equal(t, [3]int64{2, n.RowsIn, n.RowsOut}, tally())

	load.RunKey = failed.RunKey
	require.Equal(t, int64(2), tally()[0])
	sides, err := state.SideParts(ctx, s, load)
	require.NoError(t, err)
	require.Equal(t, int64(4), sides[0].Rows)
	now := time.Now()
	require.NoError(t, state.Direct(ctx, s, failed.RunKey, state.Command{Kind: state.CommandReopen, Token: "t",
		Mark: state.Mark{Time: now}}))
	offers, _, err := s.Offers(ctx, load, now, state.Page{})
	require.NoError(t, err)
	require.Equal(t, []state.Offer{{BatchKey: state.BatchKey{NodeKey: load, Batch: 1}, Epoch: 1, Attempt: 1,
		Class: "file_table"}}, offers)
	c, err := s.Claim(ctx, state.ClaimRequest{Offer: offers[0], Owner: "w", Now: now, Lease: now.Add(time.Hour)})
	require.NoError(t, err)
	require.Equal(t, int64(1), tally()[0])
	require.NoError(t, s.Commit(ctx, c, state.Outcome{}, now))
	require.Equal(t, int64(2), tally()[0])
	sides, err = state.SideParts(ctx, s, load)
	require.NoError(t, err)
	require.Empty(t, sides, "those of the attempt that failed")
}

// A state file of the version before runs were supervised: testdata/version4.tar.gz
// has a run that was stopped and reopened, with a batch in flight and a node that
// waits, one that is stopped, and one with a stop that is half carried out.
func TestVersion4(t *testing.T) {
	t.Parallel()
	dir, ctx, now := t.TempDir(), context.Background(), time.Now()
	unpack(t, "testdata/version4.tar.gz", dir)
	s := openTest(t, filepath.Join(dir, "state.db"))
	open := func() (numbers []int64) {
		t.Helper()
		runs, err := state.OpenRuns(ctx, s, "main", nil)
		require.NoError(t, err)
		for _, r := range runs {
			numbers = append(numbers, r.Run)
			require.NoError(t, state.Carry(ctx, s, r, now))
		}
		return numbers
	}
	require.Equal(t, []int64{1, 3}, open(), "those that were running")
	require.Equal(t, []int64{1}, open(), "the other one's stop is carried out now")

	load, gate := state.NodeKey{RunKey: state.RunKey{Workspace: "main", Run: 1}, Node: "load"},
		state.NodeKey{RunKey: state.RunKey{Workspace: "main", Run: 1}, Node: "gate"}
	n, err := s.Node(ctx, load)
	require.NoError(t, err)
	require.Equal(t, []int64{2, 2}, []int64{n.Epoch, n.Fence})
	waits, err := s.Node(ctx, gate)
	require.NoError(t, err)
	require.Equal(t, []any{state.Waiting, "asked", "", (*state.Decision)(nil), false},
		[]any{waits.Status, string(waits.Gate), waits.GateDigest, waits.Decision, waits.Dropped})
	failed, attempts, err := s.Batch(ctx, state.BatchKey{NodeKey: load, Batch: 1})
	require.NoError(t, err)
	require.Equal(t, []int64{4, 0, 4}, []int64{failed.Stats.RowsIn, attempts[0].Stats.RowsIn, attempts[1].Stats.RowsIn},
		"only the latest attempt's were kept")

	// What is in flight is good over a pause, and the run goes on.
	direct := func(kind state.CommandKind, about ...state.CommandNode) {
		t.Helper()
		require.NoError(t, state.Direct(ctx, s, load.RunKey, state.Command{Kind: kind, Token: string(kind) + "4",
			Mark: state.Mark{Time: now}, Nodes: about}))
	}
	direct(state.CommandPause)
	c := state.Claim{BatchKey: state.BatchKey{NodeKey: load, Batch: 2}, Epoch: 2, Attempt: 1, Owner: "w"}
	require.NoError(t, s.Commit(ctx, c, state.Outcome{Parts: []state.Part{{Key: "p2"}}}, now))
	direct(state.CommandUnpause)
	direct(state.CommandApprove, state.CommandNode{Node: "gate"})
	parts, err := state.Manifest(ctx, s, load)
	require.NoError(t, err)
	require.Len(t, parts, 3)
	waits, err = s.Node(ctx, gate)
	require.NoError(t, err)
	require.True(t, waits.Decision.Approved)
	direct(state.CommandStop)
	direct(state.CommandDrop)
	require.NoError(t, s.Purge(ctx, load))
	n, err = s.Node(ctx, load)
	require.NoError(t, err)
	require.Equal(t, []any{3, "", int64(7)}, []any{n.BatchesDone, n.PlanDigest, n.RowsOut})
	require.Empty(t, open())
}
