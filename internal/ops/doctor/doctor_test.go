package doctor

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/base/fault"
	"thalweg/internal/store/cassandra"
	"thalweg/internal/store/parts"
	"thalweg/internal/test/effort"
	"thalweg/internal/test/partstest"
)

func says(v Verdict, text string) func(context.Context) Result {
	return func(context.Context) Result { return Result{Verdict: v, Seen: text} }
}

func TestOrderIsThatOfTheChecks(t *testing.T) {
	t.Parallel()
	closed := 0
	found, err := Examine(t.Context(), []Service{
		{Name: "one", Close: func() { closed++ }, Checks: []Check{{Name: "a", Look: says(Good, "x")},
			{Name: "b", Gate: true, Look: says(Bad,
				"y")}, {Name: "c", Look: says(Good, "z")}}},
		{Name: "two", Checks: []Check{{Name: "d", Gate: true, Look: says(Warning, "v")}, {Name: "e",
			Look: says(Ours, "w")}}},
	}, 0)
	require.NoError(t, err)
	var got []string
	for _, f := range found {
		got = append(got, f.Service+" "+f.Check+" "+string(f.Verdict)+" "+f.Seen)
	}
	require.Equal(t, []string{"one a good x", "one b bad y", "one c skipped not looked at: see one, b",
		"two d warning v", "two e ours w"},
		got)
	require.Equal(t, 1, closed)
	require.Equal(t, Bad, Worst(found))
	require.Equal(t, Ours, Worst(found[3:]))
	require.Equal(t, Warning, Worst(found[2:4]))
	require.Equal(t, Good, Worst(found[:1]))
}

// What hangs costs its limit and no more, and whoever does not even come back is left alone.
func TestWhatHangsDoesNotHangTheOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		begun, free := time.Now(), make(chan struct{})
		var used atomic.Bool
		found, err := Examine(t.Context(), []Service{
			{Name: "patient", Checks: []Check{{Name: "a",
				Look: func(ctx context.Context) Result { <-ctx.Done(); return Failed(ctx.Err()) }},
				{Name: "b", Look: says(Good, "")}}},
			{Name: "stuck", Close: func() { used.Store(true) }, Checks: []Check{{Name: "c", Limit: 5 * time.Second,
				Look: func(context.Context) Result { <-free; return good("") }},
				{Name: "d", Look: func(context.Context) Result { used.Store(true); return good("") }}}},
		}, 0)
		require.NoError(t, err)
		require.Equal(t, limitDefault, time.Since(begun))
		require.Equal(t, "no answer within 10s", found[0].Seen)
		require.Equal(t, Bad, found[0].Verdict)
		require.Equal(t, Good, found[1].Verdict)
		require.Equal(t, "no answer within 5s", found[2].Seen)
		require.Equal(t, Skipped, found[3].Verdict)
		require.False(t, used.Load())
		close(free)
	})
}

func TestInterrupted(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	_, err := Examine(ctx, []Service{{Name: "a",
		Checks: []Check{{Look: func(ctx context.Context) Result {
			cancel()
			<-ctx.Done()
			return Failed(ctx.Err())
		}}}}}, 0)
	require.ErrorIs(t, err, context.Canceled)
}

func TestFailed(t *testing.T) {
	t.Parallel()
	r := Failed(&fault.Error{Kind: fault.Environment, Message: "no", Err: errors.New("such"), Hint: "do"})
	require.Equal(t, []string{string(Bad), "no: such", "do"}, []string{string(r.Verdict), r.Seen, r.Mend})
	require.Equal(t, Ours, Failed(errors.New("nobody knows")).Verdict)
	require.Equal(t, Bad, Failed(context.DeadlineExceeded).Verdict)
}

// One cause is one thing to mend; where it is none elsewhere, it is told where it was met.
func TestOneCauseOnce(t *testing.T) {
	t.Parallel()
	gone := fault.New(fault.Environment, "gone")
	reach := func(context.Context) Result { return FailedAs("state", gone) }
	above := Service{Name: "parts", Checks: []Check{{Name: "reach", Gate: true, Look: reach}, {Name: "write"}}}
	for verdict, want := range map[Verdict]Verdict{Bad: Skipped, Good: Bad} {
		state := Check{Look: func(context.Context) Result { return Result{Verdict: verdict} }}
		found, err := Examine(t.Context(), []Service{{Name: "state", Checks: []Check{state}}, above}, 0)
		require.NoError(t, err)
		require.Equal(t, []Verdict{verdict, want, Skipped}, []Verdict{found[0].Verdict, found[1].Verdict,
			found[2].Verdict},
			"%+v", found)
	}
	require.ErrorIs(t, Must(t.Context(), above), gone)
}

// Of workers that are not there nothing is good.
func TestNoWorkers(t *testing.T) {
	t.Parallel()
	for _, w := range []*Workers{{}, {found: []Worker{{Name: "a", Gone: true}}}} {
		require.Equal(t, nobody(), w.versions())
	}
	require.Equal(t, nobody(), (&Workers{}).clocks(t.Context()))
}

func TestReplication(t *testing.T) {
	t.Parallel()
	type m = map[string]int
	for _, tc := range []struct {
		copies, asked m
		datacenter    string
		all, up       m
		verdict       Verdict
		seen          string
	}{
		{m{"": 3}, m{"": 3}, "", m{"a": 3}, m{"a": 3}, Good, "3 copies, of which each request needs 2"},
		{m{"": 3}, m{"eu": 3}, "", m{"a": 3}, m{"a": 3}, Good, "3 copies"},
		{m{"a": 3, "b": 3}, m{"a": 3, "b": 3}, "a", m{"a": 3, "b": 3}, m{"a": 3}, Good, "3 copies in a, 3 copies in b"},
		{m{"": 3}, m{"": 3}, "", m{"a": 1}, m{"a": 1}, Bad, "2 nodes are needed for each request, and there are 1"},
		{m{"": 3}, m{"": 3}, "", m{"a": 3}, m{"a": 1}, Bad,
			"2 nodes are needed for each request, and 1 can be reached"},
		{m{"": 3}, m{"": 3}, "", m{"a": 2}, m{"a": 2}, Warning, "3 copies on 2 nodes"},
		{m{"": 1}, m{"": 1}, "", m{"a": 3}, m{"a": 3}, Warning, "a node that is away stops all work"},
		{m{"": 2}, m{"": 2}, "", m{"a": 3}, m{"a": 3}, Warning, "a node that is away stops all work"},
		{m{"": 3}, m{"": 5}, "", m{"a": 3}, m{"a": 3}, Warning, "the configuration asks for 5 copies"},
		{m{"b": 3}, m{"a": 3}, "a", m{"a": 3, "b": 3}, m{"a": 3, "b": 3}, Bad, "no copies are kept in datacenter a"},
		{m{"a": 3, "b": 3}, nil, "", m{"a": 3, "b": 3}, m{"a": 3}, Bad, "4 nodes are needed"},
		{m{"a": 3, "b": 3}, m{"": 3}, "", m{"a": 3, "b": 3}, m{"a": 3, "b": 3}, Good, "3 copies in a, 3 copies in b"},
		{m{"a": 3, "b": 3}, m{"a": 3}, "a", m{"a": 3, "b": 3}, m{"a": 3, "b": 3}, Warning,
			"the configuration asks for 3 copies in a"},
		{m{"a": 1}, m{"": 3}, "", m{"a": 3}, m{"a": 3}, Warning, "the configuration asks for 3 copies in a"},
	} {
		r := JudgeReplication(tc.copies, tc.asked, tc.datacenter, tc.all, tc.up)
		require.Equal(t, tc.verdict, r.Verdict, "%v %s", tc, r.Seen)
		require.Contains(t, r.Seen, tc.seen)
		require.Equal(t, tc.verdict != Good, r.Mend != "")
		adds := tc.datacenter != "" && tc.copies[tc.datacenter] == 0 || strings.Contains(r.Seen, "asks for") &&
			KeepsFewer(tc.copies, tc.asked)
		require.Equal(t, adds, strings.Contains(r.Mend, "stop all workers until the repair has ended"),
			"%v %s", tc, r.Mend)
		require.Equal(t, adds, strings.Contains(r.Mend, "repair --full"), "%v %s", tc, r.Mend)
	}
}

func TestClocks(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		ahead, doubt time.Duration
		verdict      Verdict
		seen         string
	}{
		{3 * time.Millisecond, time.Millisecond, Good, "within 3 ms of this machine's"},
		{2 * time.Second, 3 * time.Second, Good, "within 3.0 s"},
		{-2 * time.Second, 0, Warning, "that of x is 2.0 s behind this machine's"},
		{time.Minute, time.Second, Bad, "that of x is 1 min ahead of this machine's"},
	} {
		r := JudgeClock("x", tc.ahead, tc.doubt)
		require.Equal(t, tc.verdict, r.Verdict)
		require.Contains(t, r.Seen, tc.seen)
	}
}

func TestNodesAndBrokers(t *testing.T) {
	t.Parallel()
	node := func(version string, took time.Duration) Verdict {
		return JudgeNode(cassandra.Node{Version: version, Took: took}).Verdict
	}
	require.Equal(t, Good, node("5.0.8", time.Millisecond))
	require.Equal(t, Warning, node("3.11.4", time.Millisecond))
	require.Equal(t, Bad, node("2.2", time.Millisecond))
	require.Equal(t, Warning, node("5.0.8", time.Second))
	broker := func(product, version, secured, host string) Verdict {
		return JudgeBroker(product, version, secured, host).Verdict
	}
	require.Equal(t, Good, broker("RabbitMQ", "3.10.8", "", "127.0.0.1:5672"))
	require.Equal(t, Good, broker("RabbitMQ", "4.0.1", "TLS 1.3", "mq:5671"))
	require.Equal(t, Warning, broker("RabbitMQ", "3.8.0", "", "mq:5672"))
	require.Equal(t, Bad, broker("RabbitMQ", "3.7.28", "", "127.0.0.1:5672"))
	require.Equal(t, Bad, broker("LavinMQ", "4.1", "", "127.0.0.1:5672"))
}

// A worker's clock is known from when its note was renewed.
func TestClocksOfWorkers(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		off     time.Duration
		gone    bool
		verdict Verdict
	}{"right": {0, false, Good}, "ahead": {time.Minute, false, Bad}, "behind, so it seems to be gone": {-time.Minute,
		true, Bad},
		"a little": {-2 * time.Second, false, Warning}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				begun := time.Now()
				w := &Workers{Now: time.Now, Open: func(context.Context) error { return nil },
					List: func(context.Context) ([]Worker, error) {
						renewed := time.Since(begun).Truncate(2 * time.Second)
						return []Worker{{Name: "h (process 1)", Gone: tc.gone, Seen: begun.Add(renewed + tc.off)},
							{Name: "dead", Gone: true,
								Seen: begun.Add(-time.Hour)}}, nil
					}}
				w.list(t.Context())
				r := w.clocks(t.Context())
				require.Equal(t, tc.verdict, r.Verdict, r.Seen)
				effort.Promised(t, begun, 3*time.Second)
			})
		})
	}
}

func TestVersionsOfWorkers(t *testing.T) {
	t.Parallel()
	w := Workers{Engine: "duckdb-2", Hash: "h", found: []Worker{{Name: "a", Engine: "duckdb-2", Hash: "h", Python: "3"},
		{Name: "b",
			Engine: "duckdb-1", Hash: "h", Gone: true}}}
	require.Equal(t, Good, w.versions().Verdict)
	w.found[1].Gone = false
	require.Contains(t, w.versions().Seen, "b has DuckDB duckdb-1")
	w.found[1] = Worker{Name: "b", Engine: "duckdb-2", Hash: "h", Python: "4"}
	require.Contains(t, w.versions().Seen, "different Pythons: 3, 4")
}

// backend is one that fails in one way.
type backend struct {
	parts.Backend
	deny string
}

func (b backend) Put(ctx context.Context, key, path string) (parts.Info, error) {
	if b.deny == "write" {
		return parts.Info{}, &fault.Error{Kind: fault.Environment, Message: "denied", Hint: "allow it"}
	}
	return b.Backend.Put(ctx, key, path)
}

func (b backend) Delete(ctx context.Context, key string) error {
	if b.deny == "remove" {
		return nil
	}
	return b.Backend.Delete(ctx, key)
}

func TestParts(t *testing.T) {
	t.Parallel()
	for deny, want := range map[string][]Verdict{
		"": {Good, Good, Good, Good, Good}, "write": {Good, Bad, Skipped, Skipped, Skipped},
		"remove": {Good, Good, Good, Good, Bad},
	} {
		memory := &partstest.Memory{}
		found, err := Examine(t.Context(),
			[]Service{Parts("", func(context.Context) (parts.Backend, string, func(), error) {
				return backend{memory, deny}, t.TempDir(), nil, nil
			})}, 0)
		require.NoError(t, err)
		for i, f := range found {
			require.Equal(t, want[i], f.Verdict, "%s: %+v", deny, f)
		}
		for range memory.List(t.Context(), partRoot, "") {
			require.Equal(t, "remove", deny, "something is left")
		}
	}
}

func TestLimits(t *testing.T) {
	t.Parallel()
	require.Equal(t, Good, judgeLimit(8192, filesWarn, filesBad, "ulimit -n").Verdict)
	require.Equal(t, Result{Verdict: Warning, Seen: "1024 at most", Mend: "allow 4096 or more: ulimit -n"},
		judgeLimit(1024, filesWarn, filesBad, "ulimit -n"))
	require.Equal(t, Bad, judgeLimit(64, filesWarn, filesBad, "").Verdict)
	require.Equal(t, Bad, Machine{Memory: 1 << 60}.memory(t.Context()).Verdict)
	require.Equal(t, Bad, Machine{Memory: 1 << 20}.memory(t.Context()).Verdict)
	require.Equal(t, Warning, Machine{Cores: 1 << 20}.cores(t.Context()).Verdict)
}

func TestDirectory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r := Directory(filepath.Join(dir, "not", "there", "yet"), 0, true)
	require.NotEqual(t, Bad, r.Verdict, r.Seen)
	require.Equal(t, Warning, Directory(dir, 1<<60, false).Verdict)
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left)
	file := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	require.Equal(t, Bad, Directory(filepath.Join(file, "below"), 0, false).Verdict)
}

func TestDeclared(t *testing.T) {
	t.Parallel()
	table, columns := cassandra.Declared(
		"CREATE TABLE IF NOT EXISTS t (a text,\n\t b blob, c int, PRIMARY KEY ((a), b)) WITH x = 1")
	require.Equal(t, "t", table)
	require.Equal(t, "a b c", strings.Join(columns, " "))
	table, columns = cassandra.Declared("CREATE TABLE IF NOT EXISTS s (one tinyint PRIMARY KEY, version " +
		"int) WITH y = 2")
	require.Equal(t, "s one version", table+" "+strings.Join(columns, " "))
}
