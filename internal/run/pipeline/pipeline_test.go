package pipeline_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"thalweg/internal/base/budget"
	"thalweg/internal/base/fault"
	"thalweg/internal/io/remote"
	"thalweg/internal/lang/script"
	"thalweg/internal/run/job"
	"thalweg/internal/run/pipeline"
	"thalweg/internal/run/plan"
	"thalweg/internal/store/parts"
	partslocal "thalweg/internal/store/parts/local"
	"thalweg/internal/store/state"
	"thalweg/internal/store/state/sqlite"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const pipelineScript = `
nodes:
  load:
    type: file_table
    r:
      urls: [DIR/in.csv]
      csv: {hdr_line_idx: 0, first_data_line_idx: 1}
      columns: {id: {col_type: int, csv: {col_hdr: id}}}
    w: {name: items, fields: {id: {expression: r.id, type: int}}}
  write:
    type: table_file
    r: items
    w: {url_template: DIR/out/items.csv, columns: [id]}
  again: {type: file_table, r: {urls: [DIR/in.csv], columns: {id: int}}, w: again}
  listed: {type: table_file, r: items, w: {url_template: DIR/listed/items.csv, manifest: true, columns: [id]}}
`

// bench is a run of pipelineScript whose batches a test claims and commits by
// hand, with real stores.
type bench struct {
	t     *testing.T
	dir   string
	job   *pipeline.Pipeline
	cfg   pipeline.Config
	state *sqlite.Store
	parts *partslocal.Store
	run   state.RunKey
}

func newBench(t *testing.T, input string) *bench {
	t.Helper()
	ctx, dir := t.Context(), t.TempDir()
	for _, name := range []string{"parts", "work", "remote"} {
		require.NoError(t, os.Mkdir(filepath.Join(dir, name), 0o700))
	}
	path := filepath.Join(dir, "script.yaml")
	require.NoError(t, os.WriteFile(path, []byte(strings.ReplaceAll(pipelineScript, "DIR", dir)), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "in.csv"), []byte(input), 0o600))
	s, problems := script.Load(ctx, script.Sources{Path: path})
	require.NotNil(t, s, "%v", problems)
	shares, err := budget.Split(512<<20, 2, 0)
	require.NoError(t, err)
	b := &bench{t: t, dir: dir}
	b.state, err = sqlite.Open(ctx, filepath.Join(dir, "state.db"))
	require.NoError(t, err)
	b.parts, err = partslocal.Open(filepath.Join(dir, "parts"))
	require.NoError(t, err)
	client := remote.New(remote.Config{})
	b.run, err = b.state.CreateRun(ctx, state.Run{RunKey: state.RunKey{Workspace: "w"}, Created: time.Now()},
		[]state.NodeSpec{{Name: "load"}, {Name: "write", Ordinal: 1, Inputs: []string{"load"}},
			{Name: "again", Ordinal: 2},
			{Name: "listed", Ordinal: 3, Inputs: []string{"load"}}})
	require.NoError(t, err)
	b.cfg = pipeline.Config{Script: s, Run: b.run, Store: b.state, Parts: b.parts, Budget: shares, StateDir: "/state",
		WorkDir: filepath.Join(dir, "work"), Remote: client, CopiesDir: filepath.Join(dir, "remote", "in")}
	b.job = pipeline.New(b.cfg)
	t.Cleanup(func() {
		b.job.Close()
		require.NoError(t, errors.Join(client.Close(), b.parts.Close(), b.state.Close()))
	})
	return b
}

// plan plans a node and stores its batches.
func (b *bench) plan(name string) {
	b.t.Helper()
	b.planned(name, 1)
}

func (b *bench) planned(name string, batches int) {
	b.t.Helper()
	node, err := b.state.Node(b.t.Context(), b.key(name))
	require.NoError(b.t, err)
	plan, err := b.job.Plan(b.t.Context(), node)
	require.NoError(b.t, err)
	require.Len(b.t, plan.Batches, batches)
	_, err = state.PlanNode(b.t.Context(), b.state, b.key(name), node.Epoch, plan, b.t.Name(), time.Now())
	require.NoError(b.t, err)
}

func (b *bench) key(name string) state.NodeKey { return state.NodeKey{RunKey: b.run, Node: name} }

func (b *bench) claim(name string) state.Claim {
	b.t.Helper()
	offers, _, err := b.state.Offers(b.t.Context(), b.key(name), time.Now(), state.Page{})
	require.NoError(b.t, err)
	require.Len(b.t, offers, 1)
	c, err := b.state.Claim(b.t.Context(), state.ClaimRequest{Offer: offers[0], Owner: b.t.Name(), Now: time.Now(),
		Lease: time.Now().Add(time.Hour)})
	require.NoError(b.t, err)
	return c
}

// do plans and executes a node and commits what came of it.
func (b *bench) do(name string) {
	b.t.Helper()
	b.plan(name)
	c := b.claim(name)
	res, err := b.job.Execute(b.t.Context(), c)
	require.NoError(b.t, err)
	if res.Publish != nil {
		require.NoError(b.t, res.Publish(b.t.Context()))
	}
	require.NoError(b.t, b.state.Commit(b.t.Context(), c, res.Outcome, time.Now()))
	require.NoError(b.t, b.state.MoveNode(b.t.Context(), b.key(name), state.Move{From: state.Running,
		To: state.Succeeded, Now: time.Now()}))
}

// stored lists the keys of all parts.
func (b *bench) stored() (keys []string) {
	b.t.Helper()
	for info, err := range b.parts.List(b.t.Context(), "", "") {
		require.NoError(b.t, err)
		keys = append(keys, info.Key)
	}
	return keys
}

// left lists files below a folder of the bench, relative to it.
func (b *bench) left(folder string) (names []string) {
	b.t.Helper()
	root := filepath.Join(b.dir, folder)
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil && !d.IsDir() {
			names = append(names, strings.TrimPrefix(path, root+"/"))
		}
		return err
	})
	require.NoError(b.t, err)
	return names
}

func TestRowsExistOnlyAfterTheCommit(t *testing.T) {
	t.Parallel()
	b := newBench(t, "id\n1\n2\n")
	b.plan("load")
	c := b.claim("load")
	res, err := b.job.Execute(t.Context(), c)
	require.NoError(t, err)
	require.Len(t, res.Outcome.Parts, 1)
	require.EqualValues(t, 2, res.Outcome.Stats.RowsOut)
	require.Equal(t, []string{res.Outcome.Parts[0].Key}, b.stored())
	manifest, err := state.Manifest(t.Context(), b.state, b.key("load"))
	require.NoError(t, err)
	require.Empty(t, manifest)

	require.NoError(t, b.state.Commit(t.Context(), c, res.Outcome, time.Now()))
	table, err := pipeline.ReadTable(t.Context(), b.state, b.key("load"))
	require.NoError(t, err)
	require.Len(t, table.Parts, 1)
	paths, release, err := pipeline.FetchTables(t.Context(), b.parts, []*plan.Table{table})
	require.NoError(t, err)
	require.Len(t, paths, 1)
	release()
	require.Empty(t, b.left("work"), "an attempt's private files are removed")
}

func TestADroppedAttemptLeavesNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t, "id\n1\n2\n")
	b.plan("load")
	res, err := b.job.Execute(t.Context(), b.claim("load"))
	require.NoError(t, err)
	require.NotEmpty(t, b.stored())
	res.Discard()
	require.Empty(t, b.stored())
}

func TestAnotherAttemptHasPartsOfItsOwn(t *testing.T) {
	t.Parallel()
	b := newBench(t, "id\n1\n2\n")
	b.plan("load")
	first := b.claim("load")
	one, err := b.job.Execute(t.Context(), first)
	require.NoError(t, err)
	require.NoError(t, b.state.Release(t.Context(), first, time.Now()))
	two, err := b.job.Execute(t.Context(), b.claim("load"))
	require.NoError(t, err)
	require.NotEqual(t, one.Outcome.Parts[0].Key, two.Outcome.Parts[0].Key)
	require.Equal(t, one.Outcome.Parts[0].Checksum, two.Outcome.Parts[0].Checksum, "the same rows are the same bytes")
}

func TestAFailureNamesItsPlaceAndLeavesNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t, "id\n1\nx\n")
	b.plan("load")
	res, err := b.job.Execute(t.Context(), b.claim("load"))
	f := fault.Of(err)
	require.Equal(t, fault.UserData, f.Kind)
	require.EqualValues(t, 3, f.Place.Line)
	require.Contains(t, f.Place.File, "in.csv")
	require.Empty(t, res.Outcome.Parts)
	require.Empty(t, b.stored())
	require.Empty(t, b.left("work"))
}

// A run of an earlier version that was killed goes on: its temporary file was
// not announced. The name is as that version made it.
func TestTheNextAttemptRemovesWhatAnEarlierVersionLeft(t *testing.T) {
	t.Parallel()
	b := newBench(t, "id\n1\n2\n")
	b.do("load")
	b.plan("write")
	owner := sha256.Sum256([]byte("/state\nw\n1\nwrite\n0"))
	out := filepath.Join(b.dir, "out")
	require.NoError(t, os.MkdirAll(out, 0o755))
	left := filepath.Join(out, fmt.Sprintf(".items.csv.thalweg-%x-a1.tmp", owner[:8]))
	others := filepath.Join(out, ".items.csv.thalweg-0011223344556677-a1.tmp")
	for _, path := range []string{left, others} {
		require.NoError(t, os.WriteFile(path, []byte("half a fi"), 0o644))
	}
	require.NoError(t, b.state.Release(t.Context(), b.claim("write"), time.Now()))
	_, err := b.job.Execute(t.Context(), b.claim("write"))
	require.NoError(t, err)
	require.NoFileExists(t, left)
	require.FileExists(t, others, "another state directory's")
}

func TestAFileAppearsWhenItIsPublished(t *testing.T) {
	t.Parallel()
	b := newBench(t, "id\n1\n2\n")
	b.do("load")
	b.plan("write")
	c := b.claim("write")
	res, err := b.job.Execute(t.Context(), c)
	require.NoError(t, err)
	out := filepath.Join(b.dir, "out", "items.csv")
	require.NoFileExists(t, out)
	require.Len(t, b.left("out"), 1, "one temporary file")
	require.NoError(t, res.Publish(t.Context()))
	require.Equal(t, []string{"items.csv"}, b.left("out"))
	require.Len(t, res.Outcome.Files, 1)
	require.EqualValues(t, 2, res.Outcome.Files[0].Rows)

	res.Discard()
	require.FileExists(t, out, "what is published stays")

	// A crash may fall between publishing and the commit: the next attempt
	// publishes the same bytes again.
	require.NoError(t, b.state.Release(t.Context(), c, time.Now()))
	again, err := b.job.Execute(t.Context(), b.claim("write"))
	require.NoError(t, err)
	require.NoError(t, again.Publish(t.Context()))
	require.Equal(t, []string{"items.csv"}, b.left("out"))
	require.Equal(t, res.Outcome.Files[0].Checksum, again.Outcome.Files[0].Checksum)
}

func TestADroppedFileLeavesNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t, "id\n1\n2\n")
	b.do("load")
	b.plan("write")
	res, err := b.job.Execute(t.Context(), b.claim("write"))
	require.NoError(t, err)
	res.Discard()
	require.Empty(t, b.left("out"))
}

func TestAnInterruptedExecutionSaysSo(t *testing.T) {
	t.Parallel()
	b := newBench(t, "id\n1\n")
	b.plan("load")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := b.job.Execute(ctx, b.claim("load"))
	require.Error(t, err)
	require.True(t, errors.Is(err, context.Canceled) || fault.Of(err).Kind == fault.Canceled, "%v", err)
	require.Empty(t, b.stored())
	require.Empty(t, b.left("work"))
}

func TestAPartThatIsGoneIsNamed(t *testing.T) {
	t.Parallel()
	b := newBench(t, "id\n1\n")
	b.do("load")
	key := b.stored()[0]
	require.NoError(t, b.parts.Delete(t.Context(), key))
	b.plan("write")
	_, err := b.job.Execute(t.Context(), b.claim("write"))
	require.ErrorIs(t, err, parts.ErrNotFound)
	require.Contains(t, err.Error(), "node load")
	require.Contains(t, err.Error(), key)
	require.Empty(t, b.left("out"))
}

func TestANodeThatTheScriptHasNoMoreIsRefused(t *testing.T) {
	t.Parallel()
	b := newBench(t, "id\n1\n")
	_, err := b.job.Plan(t.Context(), state.Node{NodeKey: b.key("gone"), NodeSpec: state.NodeSpec{Name: "gone"}})
	require.Equal(t, fault.Script, fault.Of(err).Kind)
	require.Contains(t, err.Error(), "gone")
}

func TestIdleIsTheTimeOutsideOfBatches(t *testing.T) {
	t.Parallel()
	b := newBench(t, "id\n1\n")
	start := time.Now()
	before := b.job.Idle(start)
	b.do("load")
	require.GreaterOrEqual(t, b.job.Idle(start), before)
	require.Less(t, b.job.Idle(start), time.Since(start), "the time in the engine is not idle")
}

var _ job.Job = (*pipeline.Pipeline)(nil)

// What an attempt makes is announced before it is there, and removed by whoever
// looks once the attempt cannot commit any more, not before.
func TestLeavingsOfOverAttemptsAreRemoved(t *testing.T) {
	t.Parallel()
	b := newBench(t, "id\n1\n2\n")
	b.do("load")
	b.plan("write")
	first := b.claim("write")
	_, err := b.job.Execute(t.Context(), first) // and its process dies
	require.NoError(t, err)
	announced := func() []state.Publication {
		all, err := state.All(t.Context(), b.state.Publications, b.key("write"))
		require.NoError(t, err)
		return all
	}
	require.Len(t, announced(), 1)
	require.Equal(t, filepath.Join(b.dir, "out", "items.csv"), announced()[0].Address)
	require.Equal(t, []string{announced()[0].Temp}, b.left("out"))
	left := pipeline.Leavings{Store: b.state}
	require.NoError(t, left.Clear(t.Context(), b.key("write")))
	require.Len(t, b.left("out"), 1, "it may still commit")

	require.NoError(t, b.state.Release(t.Context(), first, time.Now()))
	require.Len(t, announced(), 1, "it may have left something")
	second := b.claim("write")
	res, err := b.job.Execute(t.Context(), second)
	require.NoError(t, err)
	require.Len(t, announced(), 1)
	require.Equal(t, []string{announced()[0].Temp}, b.left("out"), "the next attempt removed it")
	require.NoError(t, left.Clear(t.Context(), b.key("write")))
	require.Equal(t, []string{announced()[0].Temp}, b.left("out"))
	require.Equal(t, announced()[0].Temp, res.Publications[0].Temp)

	require.NoError(t, b.state.Release(t.Context(), second, time.Now()))
	for range 2 {
		require.NoError(t, left.Clear(t.Context(), b.key("write")))
		require.Empty(t, b.left("out"))
		require.Empty(t, announced())
	}
}

// The process that planned the first node need not be that which plans the next.
func TestAFileThatChangedBetweenTwoProcessesIsRefused(t *testing.T) {
	t.Parallel()
	b := newBench(t, "id\n1\n")
	b.do("load")
	require.NoError(t, os.WriteFile(filepath.Join(b.dir, "in.csv"), []byte("id\n1\n2\n"), 0o600))
	other := pipeline.New(b.cfg)
	defer other.Close()
	node, err := b.state.Node(t.Context(), b.key("again"))
	require.NoError(t, err)
	_, err = other.Plan(t.Context(), node)
	require.ErrorContains(t, err, "the input file changed after the run planned it")
}
