package statetest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"

	"thalweg/internal/base/fault"
	"thalweg/internal/store/state"
)

// Open opens the store that belongs to t. A first call gives an empty one (or
// one without the workspaces that this suite names after t); a second call
// with the same t opens the same data once more, as another process would.
// The suite closes what it opens.
type Open func(t *testing.T) state.Store

// Run holds a store to the promises of package state.
func Run(t *testing.T, open func(t *testing.T) state.Store) {
	tests := []struct {
		name string
		test func(*testing.T, Open)
	}{
		{"RunNumbers", testRunNumbers},
		{"RunNumbersConcurrently", testRunNumbersConcurrently},
		{"RunKeepsWhatItWasGiven", testRunRoundTrip},
		{"WorkspacesAreApart", testWorkspaces},
		{"RunTransitions", testRunTransitions},
		{"NodeTransitions", testNodeTransitions},
		{"TransitionsConcurrently", testTransitionRace},
		{"NotFound", testNotFound},
		{"BriefLists", testBriefLists},
		{"PlanIdempotence", testPlan},
		{"PlanEmpty", testPlanEmpty},
		{"PlanRefused", testPlanRefused},
		{"PlanConcurrently", testPlanRace},
		{"PlanManyBatches", testPlanMany},
		{"ClaimLife", testClaimLife},
		{"ClaimRace", testClaimRace},
		{"ClaimRefused", testClaimRefused},
		{"ClaimOfALaterPhase", testClaimOfALaterPhase},
		{"StrangeBids", testStrangeBids},
		{"ClaimExpiredRace", testExpiredRace},
		{"LeaseExpiry", testLeaseExpiry},
		{"LeaseExtended", testLeaseExtended},
		{"Fencing", testFencing},
		{"FencingByOrder", testFencingByOrder},
		{"FencedAndLost", testFencedAndLost},
		{"FencingOfStrangers", testFencingOfStrangers},
		{"CommitPublishes", testCommit},
		{"CommitRepeated", testEndRepeated},
		{"CommitRace", testCommitRace},
		{"CountersAgree", testCounters},
		{"TimeOfAttempts", testSpent},
		{"Fail", testFail},
		{"Release", testRelease},
		{"Retry", testRetry},
		{"Offers", testOffers},
		{"ClaimRepeated", testClaimRepeated},
		{"OrderHalfCarriedOut", testOrderHalfCarriedOut},
		{"OrdersConcurrently", testOrderRace},
		{"OrdersAndRuns", testOrdersAndRuns},
		{"RedoBatch", testRedoBatch},
		{"RedoReplanned", testRedoReplanned},
		{"Invalidated", testInvalidated},
		{"Pause", testPause},
		{"PausedOrders", testPausedOrders},
		{"PauseHalfCarriedOut", testPauseHalfCarriedOut},
		{"Gate", testGate},
		{"GateRejected", testGateRejected},
		{"GateAndOrders", testGateAndOrders},
		{"GateRedone", testGateRedone},
		{"GateRace", testGateRace},
		{"Dropped", testDropped},
		{"Taken", testTaken},
		{"Limits", testLimits},
		{"Purge", testPurge},
		{"PurgeMany", testPurgeMany},
		{"AttemptStats", testAttemptStats},
		{"Notes", testNotes},
		{"OpenRuns", testOpenRuns},
		{"OpenRunsFoundWrong", testOpenRunsFoundWrong},
		{"OpenRunsRemovedLate", testOpenRunsRemovedLate},
		{"OpenRunsRace", testOpenRunsRace},
		{"Sequence", testSequence},
		{"SequenceRace", testSequenceRace},
		{"Roles", testRoles},
		{"Pins", testPins},
		{"Publications", testPublications},
		{"Events", testEvents},
		{"Pages", testPages},
		{"ReopenFailed", testReopenFailed},
		{"ReopenOrphaned", testReopenOrphaned},
		{"ReopenRefused", testReopenRefused},
		{"ManifestOrder", testManifestOrder},
		{"FilesOrder", testFilesOrder},
		{"SidesOfCommitted", testSidesOfCommitted},
		{"SidesOfFailed", testSidesOfFailed},
		{"ChecksOrder", testChecksOrder},
		{"HostileText", testHostileText},
		{"Durability", testDurability},
		{"TwoHandles", testTwoHandles},
		{"Cancellation", testCancellation},
		{"CloseTwice", testClose},
		{"Promises", testPromises},
		{"ExploredWays", testExplored},
		{"RandomOperations", testRandom},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			test.test(t, open)
		})
	}
}

// patience bounds what a backend may take; only a hang reaches it.
const patience = 10 * time.Minute

// lease is long enough that no test outlives it: tests move their own clock.
const lease = time.Hour

// start is the suite's clock at zero, with a fraction that a store may drop.
var start = time.Date(2031, 5, 6, 7, 8, 9, 123_456_789, time.FixedZone("here", 2*3600))

// bench holds a test's store, context and workspace.
type bench struct {
	state.Store
	t         *testing.T
	ctx       context.Context
	workspace string
}

func newBench(t *testing.T, open Open) *bench {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	store := open(t)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	return &bench{t: t, Store: store, ctx: ctx, workspace: workspaceOf(t)}
}

func workspaceOf(t *testing.T) string {
	return strings.ToLower(strings.NewReplacer("/", "_", "#", "_").Replace(t.Name()))
}

// run creates a run of the given nodes, in order.
func (b *bench) run(nodes ...string) state.RunKey {
	b.t.Helper()
	specs := make([]state.NodeSpec, len(nodes))
	for i, name := range nodes {
		specs[i] = state.NodeSpec{Name: name, Kind: "table", Ordinal: i}
	}
	key, err := b.CreateRun(b.ctx, state.Run{RunKey: state.RunKey{Workspace: b.workspace}, Created: start}, specs)
	require.NoError(b.t, err)
	return key
}

// planned creates a run with one node of so many batches.
func (b *bench) planned(batches int) state.NodeKey {
	b.t.Helper()
	key := state.NodeKey{RunKey: b.run("n"), Node: "n"}
	require.NoError(b.t, b.plan(key, []byte("plan"), specs(batches)))
	return key
}

// errOtherPlan says that another plan stands.
var errOtherPlan = errors.New("another plan stands")

// plan plans a node as it is now.
func (b *bench) plan(key state.NodeKey, record []byte, batches []state.BatchSpec) error {
	b.t.Helper()
	return planAt(b.ctx, b.Store, key, b.theNode(key).Epoch, record, batches)
}

func planAt(ctx context.Context, s state.Store, key state.NodeKey, epoch int64, record []byte,
	batches []state.BatchSpec) error {
	standing, err := state.PlanNode(ctx, s, key, epoch, state.Plan{Record: record, Batches: batches}, "planner", start)
	if err == nil && !standing.Mine {
		return errOtherPlan
	}
	return err
}

// move moves a node as it is now.
func (b *bench) move(key state.NodeKey, from, to state.Status) error {
	b.t.Helper()
	f := failure()
	return b.MoveNode(b.ctx, key, state.Move{Epoch: b.theNode(key).Epoch, From: from, To: to, Failure: &f,
		Gate: []byte("gate"), Actor: "me", Now: start})
}

// order is one of this suite.
func order(kind state.CommandKind, nodes ...state.CommandNode) state.Command {
	o := state.Command{Kind: kind, Token: rand.Text(), Mark: state.Mark{Actor: "boss", Time: start, Reason: "why not"},
		Nodes: nodes}
	if kind == state.CommandFail {
		f := failure()
		o.Cause = &f
	}
	return o
}

// direct gives an order and carries it out.
func (b *bench) direct(key state.RunKey, kind state.CommandKind, nodes ...state.CommandNode) error {
	b.t.Helper()
	return state.Direct(b.ctx, b.Store, key, order(kind, nodes...))
}

// request asks for a batch as it is now.
func (b *bench) request(key state.BatchKey, owner string, at time.Duration) state.ClaimRequest {
	b.t.Helper()
	return state.ClaimRequest{Offer: b.offer(key), Owner: owner, Token: rand.Text(), Now: start.Add(at),
		Lease: start.Add(at + lease)}
}

// offer describes a batch as it is now, whether it can be claimed or not.
func (b *bench) offer(key state.BatchKey) state.Offer {
	b.t.Helper()
	o := state.Offer{BatchKey: key, Epoch: b.theNode(key.NodeKey).Epoch}
	all, err := state.All(b.ctx, b.Batches, key.NodeKey)
	require.NoError(b.t, err)
	if key.Batch >= 0 && key.Batch < len(all) {
		o.Attempt, o.Class = all[key.Batch].Attempt, all[key.Batch].Class
	}
	return o
}

// offers are the batches of a node that can be claimed, by number.
func (b *bench) offers(key state.NodeKey, at time.Duration) []int {
	b.t.Helper()
	numbers := []int{}
	for page := (state.Page{}); ; {
		some, next, err := b.Offers(b.ctx, key, start.Add(at), page)
		require.NoError(b.t, err)
		for _, o := range some {
			numbers = append(numbers, o.Batch)
		}
		if next == 0 {
			return numbers
		}
		page.From = next
	}
}

func specs(n int) []state.BatchSpec {
	all := make([]state.BatchSpec, n)
	for i := range all {
		all[i] = state.BatchSpec{Batch: i, Class: "load", RowsIn: int64(10 * i), BytesIn: int64(1000 * i),
			Work: fmt.Appendf(nil, "slice %d", i)}
	}
	return all
}

func batchOf(key state.NodeKey, batch int) state.BatchKey {
	return state.BatchKey{NodeKey: key, Batch: batch}
}

// claim takes a batch at the suite's zero plus at.
func (b *bench) claim(key state.NodeKey, batch int, owner string, at time.Duration) state.Claim {
	b.t.Helper()
	c, err := b.Claim(b.ctx, b.request(batchOf(key, batch), owner, at))
	require.NoError(b.t, err)
	return c
}

func (b *bench) theBatch(key state.NodeKey, batch int) state.Batch {
	b.t.Helper()
	all, err := state.All(b.ctx, b.Batches, key)
	require.NoError(b.t, err)
	require.Greater(b.t, len(all), batch)
	return all[batch]
}

func (b *bench) theNode(key state.NodeKey) state.Node {
	b.t.Helper()
	n, err := b.Node(b.ctx, key)
	require.NoError(b.t, err)
	return n
}

func (b *bench) attempts(key state.NodeKey) []state.Attempt {
	b.t.Helper()
	all, err := state.All(b.ctx, b.Attempts, key)
	require.NoError(b.t, err)
	return all
}

func (b *bench) manifestKeys(key state.NodeKey) []string {
	b.t.Helper()
	parts, err := state.Manifest(b.ctx, b.Store, key)
	require.NoError(b.t, err)
	keys := []string{}
	for _, p := range parts {
		keys = append(keys, p.Key)
	}
	return keys
}

// outcome is a result of one part with the given key.
func outcome(key string) state.Outcome {
	return state.Outcome{
		Parts: []state.Part{{Key: key, Bucket: -1, Rows: 3, Bytes: 50, RawBytes: 90, Schema: "s1",
			Checksum: "crc32c:00000001"}},
		Stats: state.Stats{RowsIn: 4, RowsOut: 3, BytesIn: 100, BytesOut: 50, Elapsed: 1500 * time.Millisecond},
	}
}

// stats are those of an attempt, with every field set.
func stats() state.Stats {
	return state.Stats{RowsIn: 9, RowsOut: 8, BytesIn: 7, BytesOut: 6, Elapsed: 15 * time.Second,
		Engine: 5 * time.Second, Python: 4 * time.Second,
		Read: 3 * time.Second, Write: 2 * time.Second, Commit: time.Second, Wait: time.Minute, PeakBytes: 1 << 40,
		Counters: map[string]int64{"c": 1}, Warnings: []string{"w"},
		Repeats: []state.Repeat{{Kind: "k", First: "f", Count: 2, Of: "values", Way: "w"}}}
}

// failure is a failure with every field set.
func failure() state.Failure {
	return state.Failure{
		Kind: fault.UserData, Retryable: true, Message: "not a number", Hint: "correct it", Detail: "long\nlog",
		Node: "n", Batch: 1,
		Place: fault.Place{File: "in.csv", Line: 7, Column: 3, Record: 6, Field: "qty", Value: "x'\"", Expr: "r.qty"},
	}
}

// same compares values as the interface does: a time is an instant to the
// millisecond, an empty list is no list.
func same(t require.TestingT, want, got any) {
	if h, ok := t.(interface{ Helper() }); ok {
		h.Helper()
	}
	diff := cmp.Diff(want, got, cmpopts.EquateEmpty(),
		cmp.Comparer(func(a, b time.Time) bool { return a.UnixMilli() == b.UnixMilli() && a.IsZero() == b.IsZero() }))
	if diff != "" {
		t.Errorf("differs (-want +got):\n%s", diff)
		t.FailNow()
	}
}

// together runs fn from n goroutines that start at the same moment and waits
// for all of them. It returns their errors by number.
func together(n int, fn func(i int) error) []error {
	errs := make([]error, n)
	gate := make(chan struct{})
	done := make(chan struct{})
	for i := range n {
		go func() {
			defer func() { done <- struct{}{} }()
			<-gate
			errs[i] = fn(i)
		}()
	}
	close(gate)
	for range n {
		<-done
	}
	return errs
}

// split counts the calls that succeeded and checks that the others failed
// with the expected error.
func split(t *testing.T, errs []error, expected error) (succeeded int) {
	t.Helper()
	for _, err := range errs {
		if err == nil {
			succeeded++
			continue
		}
		require.ErrorIs(t, err, expected)
	}
	return succeeded
}
