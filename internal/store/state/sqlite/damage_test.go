package sqlite

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/base/fault"
	"thalweg/internal/store/state"
	"thalweg/internal/test/effort"
)

// fill makes a state with some of everything, one commit after the other, and
// gives what Dump said after each.
func fill(t *testing.T, s *Store, runs, batches int) (dumps []string) {
	t.Helper()
	ctx, now := context.Background(), time.UnixMilli(1_700_000_000_000)
	step := func(err error) {
		require.NoError(t, err)
		text, err := dump(ctx, s)
		require.NoError(t, err)
		dumps = append(dumps, text)
	}
	for range runs {
		key, err := s.CreateRun(ctx, state.Run{RunKey: state.RunKey{Workspace: "w"}, Script: "name x",
			Description: strings.Repeat("d", 5_000), Created: now},
			[]state.NodeSpec{{Name: "a", Ordinal: 1}, {Name: "b", Ordinal: 2, Inputs: []string{"a"}}})
		step(err)
		for _, name := range []string{"a", "b"} {
			node := state.NodeKey{RunKey: key, Node: name}
			specs := make([]state.BatchSpec, batches)
			for i := range specs {
				specs[i] = state.BatchSpec{Batch: i, RowsIn: int64(i),
					Work: fmt.Appendf(nil, `{"parts":[{"part":%d}]}`, i)}
			}
			step(planBatches(ctx, s, node, []byte(`{"version":1}`), specs))
			for i := range batches {
				c, err := s.Claim(ctx, state.ClaimRequest{Offer: state.Offer{BatchKey: state.BatchKey{NodeKey: node, Batch: i}},
					Owner: "me", Now: now, Lease: now.Add(time.Minute)})
				step(err)
				out := state.Outcome{Stats: state.Stats{RowsOut: int64(100 * i)},
					Files:  []state.File{{URL: fmt.Sprint(i)}},
					Checks: []state.CheckResult{{Name: "c", Checked: int64(i)}}}
				for p := range 3 {
					out.Parts = append(out.Parts, state.Part{Key: fmt.Sprintf("w/%d/%s/%d-%d", key.Run, name, i, p),
						Seq: p, Rows: int64(i*p + 7), Checksum: fmt.Sprintf("crc32c:%08x", i)})
				}
				step(s.Commit(ctx, c, out, now))
			}
			step(s.MoveNode(ctx, node, state.Move{From: state.Running, To: state.Succeeded, Now: now}))
		}
		step(s.CompleteRun(ctx, key, 0, "me", now))
	}
	return dumps
}

// dump is all that the store says.
func dump(ctx context.Context, s *Store) (string, error) {
	var all []any
	var errs []error
	keep := func(v any, err error) { all, errs = append(all, v), append(errs, err) }
	names, err := s.Workspaces(ctx)
	keep(names, err)
	runs, err := state.All(ctx, s.Runs, "w")
	keep(runs, err)
	for _, r := range runs {
		nodes, err := s.Nodes(ctx, r.RunKey)
		keep(nodes, err)
		for _, n := range nodes {
			batches, err := state.All(ctx, s.Batches, n.NodeKey)
			keep(batches, err)
			attempts, err := state.All(ctx, s.Attempts, n.NodeKey)
			keep(attempts, err)
			specs, err := state.All(ctx, s.Specs, n.NodeKey)
			keep(specs, err)
			parts, err := state.All(ctx, s.Parts, n.NodeKey)
			keep(parts, err)
			checks, err := state.All(ctx, s.Checks, n.NodeKey)
			keep(checks, err)
			files, err := state.All(ctx, s.Files, n.NodeKey)
			keep(files, err)
			events, err := s.Events(ctx, n.NodeKey, 0, 0)
			keep(events, err)
			full, err := s.Node(ctx, n.NodeKey)
			keep(full, err)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return "", err
	}
	text, err := json.Marshal(all)
	return string(text), err
}

// dumpOf opens a state file and reads all of it.
func dumpOf(path string) (text string, err error) {
	s, err := Open(context.Background(), path)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	return dump(context.Background(), s)
}

// putFiles makes dir hold these files and no others.
func putFiles(t *testing.T, dir string, files map[string][]byte) {
	t.Helper()
	require.NoError(t, os.RemoveAll(dir))
	require.NoError(t, os.Mkdir(dir, 0o755))
	for name, data := range files {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), data, 0o644))
	}
}

func getFiles(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		require.NoError(t, err)
		files[e.Name()] = data
	}
	return files
}

// damaged is data with a bit flipped, zeros in it, or its end cut off.
func damaged(data []byte, rng *rand.Rand) (bad []byte, what string) {
	at := rng.IntN(len(data))
	bad = slices.Clone(data)
	switch rng.IntN(10) {
	case 0:
		return bad[:at], fmt.Sprintf("cut at %d of %d", at, len(data))
	case 1:
		clear(bad[at:min(at+512, len(bad))])
		return bad, fmt.Sprintf("zeros from %d of %d", at, len(data))
	}
	bit := rng.IntN(8)
	bad[at] ^= 1 << bit
	return bad, fmt.Sprintf("bit %d of byte %d of %d flipped", bit, at, len(data))
}

// A damaged state file says so, or what it said before: never something else.
func TestChaosDamagedState(t *testing.T) {
	effort.Unraced(t)
	t.Parallel()
	root := t.TempDir()
	s := openTest(t, filepath.Join(root, "first", "state.db"))
	dumps := fill(t, s, 3, 12)
	want := dumps[len(dumps)-1]
	require.NoError(t, s.Close())
	files := getFiles(t, filepath.Join(root, "first"))
	require.Len(t, files, 2, "the file and its checksums")
	rng := rand.New(rand.NewPCG(1, 9))
	for _, state := range []map[string][]byte{{"state.db": {}, "state.db-sums": files["state.db-sums"]},
		{"state.db-sums": files["state.db-sums"]}} {
		putFiles(t, filepath.Join(root, "gone"), state)
		_, err := dumpOf(filepath.Join(root, "gone", "state.db"))
		require.ErrorContains(t, err, "empty or gone")
	}
	refused := 0
	for n := range effort.Of(75, 150, 3_000) {
		name := "state.db"
		if n%10 == 0 {
			name = "state.db-sums"
		}
		bad, what := damaged(files[name], rng)
		changed := map[string][]byte{"state.db": files["state.db"], "state.db-sums": files["state.db-sums"], name: bad}
		dir := filepath.Join(root, "damaged")
		putFiles(t, dir, changed)
		got, err := dumpOf(filepath.Join(dir, "state.db"))
		if err != nil {
			refused++
			require.Equal(t, fault.Environment, fault.Of(err).Kind, "%s: %s: %v", name, what, err)
			require.NotEmpty(t, fault.Of(err).Hint)
			continue
		}
		require.Equal(t, want, got, "%s: %s", name, what)
	}
	require.Positive(t, refused)
}

// The log of a process that died is whole, without its last commit, or said to
// be damaged. One that was cut short is that of a process that died earlier.
func TestChaosDamagedLog(t *testing.T) {
	effort.Unraced(t)
	t.Parallel()
	root := t.TempDir()
	s := openTest(t, filepath.Join(root, "first", "state.db"))
	dumps := fill(t, s, 1, 12)
	files := getFiles(t, filepath.Join(root, "first")) // as if the process died here
	require.Contains(t, files, "state.db-wal")
	rng := rand.New(rand.NewPCG(2, 9))
	refused, whole := 0, 0
	for range effort.Of(75, 150, 2_000) {
		bad, what := damaged(files["state.db-wal"], rng)
		dir := filepath.Join(root, "damaged")
		putFiles(t, dir, map[string][]byte{"state.db": files["state.db"], "state.db-sums": files["state.db-sums"],
			"state.db-wal": bad})
		got, err := dumpOf(filepath.Join(dir, "state.db"))
		switch {
		case err != nil:
			refused++
			require.Equal(t, fault.Environment, fault.Of(err).Kind, "%s: %v", what, err)
			require.NotEmpty(t, fault.Of(err).Hint)
		case len(bad) < len(files["state.db-wal"]):
			require.True(t, slices.Contains(dumps, got) || got == `[null,null]`,
				"%s: it never said that: %s", what, got)
		default:
			whole++
			require.Contains(t, dumps[len(dumps)-2:], got, what)
		}
	}
	require.Positive(t, refused)
	t.Logf("%d refused, %d whole or without the last commit", refused, whole)
}

// Commits of one frame each: whatever is wrong with a frame, no more is
// forgotten than the last commit.
func TestDamagedFrames(t *testing.T) {
	t.Parallel()
	ctx, now := context.Background(), time.UnixMilli(1_700_000_000_000)
	root := t.TempDir()
	s := openTest(t, filepath.Join(root, "first", "state.db"))
	node := state.NodeKey{Node: "a"}
	var err error
	node.RunKey, err = s.CreateRun(ctx, state.Run{RunKey: state.RunKey{Workspace: "w"}, Created: now},
		[]state.NodeSpec{{Name: "a"}})
	require.NoError(t, err)
	require.NoError(t, planBatches(ctx, s, node, []byte(`{"version":1}`), []state.BatchSpec{{}}))
	claim, err := s.Claim(ctx, state.ClaimRequest{Offer: state.Offer{BatchKey: state.BatchKey{NodeKey: node}}, Owner: "me",
		Now: now, Lease: now.Add(time.Minute)})
	require.NoError(t, err)
	var dumps []string
	for i := range 8 {
		require.NoError(t, s.Extend(ctx, claim, now.Add(time.Duration(i+2)*time.Minute)))
		text, err := dump(ctx, s)
		require.NoError(t, err)
		dumps = append(dumps, text)
	}
	files := getFiles(t, filepath.Join(root, "first")) // as if the process died here
	wal, dir := files["state.db-wal"], filepath.Join(root, "damaged")
	const headerBytes, frameBytes = 32, 24 + 4096
	for frame := headerBytes; frame < len(wal); frame += frameBytes {
		for at := 0; at <= 24; at += effort.Of(8, 1, 1) { // page, size, salt, checksum; content
			bad := slices.Clone(wal)
			bad[frame+at] ^= 1
			putFiles(t, dir, map[string][]byte{"state.db": files["state.db"], "state.db-sums": files["state.db-sums"],
				"state.db-wal": bad})
			got, err := dumpOf(filepath.Join(dir, "state.db"))
			if err != nil {
				require.ErrorContains(t, err, "log is damaged", "byte %d of frame %d", at, frame/frameBytes)
				continue
			}
			require.Contains(t, dumps[len(dumps)-2:], got, "byte %d of frame %d", at, frame/frameBytes)
		}
	}
}

// A state file of a version without checksums can be read, and has them then.
func TestOpenWithoutChecksums(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "state.db")
	s := openTest(t, path)
	dumps := fill(t, s, 1, 3)
	require.NoError(t, s.Close())
	require.NoError(t, os.Remove(path+"-sums"))
	got, err := dumpOf(path)
	require.NoError(t, err)
	require.Equal(t, dumps[len(dumps)-1], got)
	sums, err := os.ReadFile(path + "-sums")
	require.NoError(t, err)
	db, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Len(t, sums, len(db)/4096*8)
	for at := 0; at < len(sums); at += 8 {
		require.NotZero(t, [8]byte(sums[at:at+8]), "page %d", at/8)
	}
}
