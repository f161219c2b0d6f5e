package benches

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/stretchr/testify/require"

	"thalweg/internal/app/sizing"
	"thalweg/internal/ops/load"
	"thalweg/internal/ops/load/agents"
	"thalweg/internal/ops/load/around"
	"thalweg/internal/ops/price"
	"thalweg/internal/store/cassandra"
	"thalweg/internal/test/cassandratest"
	"thalweg/internal/test/effort"
	"thalweg/internal/test/redistest"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// fixed is a load of an open loop of 12 s with a dip in which the server compacts and pauses.
func fixed() load.Result {
	const each = 1000
	r := load.Result{Plan: Plan{Keys: 10_000_000, Of: Uniform, Reads: 0.5, Clients: 50, Depth: 1, Rate: 2 * each, Seed: 1,
		For: 12 * time.Second}, Began: time.Unix(1_700_000_000, 0).UTC(), Took: 12 * time.Second, CPU: 6 * time.Second,
		Cores: 2, Unsent: 7, Errors: map[string]int64{"the server says: busy": 3}}
	new := func() *hdrhistogram.Histogram { return hdrhistogram.New(1, int64(time.Hour), 3) }
	compacted, paused := 0.0, 0.0
	for kind := range r.Of {
		r.Of[kind] = load.Measured{Response: new(), Service: new()}
	}
	r.Of[load.Write].Failed = 3
	for second := range 12 {
		s := load.Second{At: float64(second + 1), P99: 1000, CPU: 0.5, Collector: 0.01}
		n, took := int64(each), time.Millisecond
		if second == 7 {
			n, took, s.P99, s.Collector = each/4, 40*time.Millisecond, 40_000, 0.2
			compacted, paused = 3, 0.8
		}
		s.Servers = []load.Reading{{Node: "10.0.0.1:9042", Counters: map[string]float64{load.PauseSecs: paused,
			load.Operations: float64(second) * 2 * each, load.CPUSeconds: float64(second) * 1.5,
			load.MainThread: float64(second)},
			Gauges: map[string]float64{load.Compactions: compacted, "other": 1, load.Cores: 4}}}
		compacted = 0
		for kind := range r.Of {
			m, block := &r.Of[kind], new()
			long := took * time.Duration(kind+1)
			for _, h := range []*hdrhistogram.Histogram{m.Response, block} {
				_ = h.RecordValues(int64(long), n) // in their range
			}
			_ = m.Service.RecordValues(int64(long/2), n)
			m.Ops, m.Blocks, s.Ops[kind] = m.Ops+n, append(m.Blocks, block), n
		}
		r.Seconds = append(r.Seconds, s)
	}
	return r
}

// fixedReport is a report of everything that a report can have.
func fixedReport() Report {
	perHour, cost := 2*price.Dollar, price.Dollar/10
	s := sender{StoreOptions: StoreOptions{PerHour: perHour, Cores: 16}, copies: 3}
	r := Report{Version: ReportVersion, Kind: kindStore, Target: "cql://10.0.0.1:9042", Kept: "bench_mine", Copies: 3,
		PerHour: &perHour, Took: 2 * time.Minute, BringUp: time.Minute, Cost: &cost,
		Host: around.Settings{Kernel: "6.1.0 #1 SMP", Limits: []around.Limit{{Name: "cpu.max", Value: "50000 100000", Group: "/a"}},
			Servers: []around.JVM{{PID: 7, Flags: []string{"-Xmx2G", "-XX:+UseG1GC"}}},
			Unseen:  []string{"processes of this host: not permitted"}}}
	l := Load{Result: fixed(), Moved: &load.Moved{Payload: 1 << 20, Sent: 3 << 20, Received: 1 << 20},
		Generators: []agents.Generator{{Agent: "10.0.0.9:7800", Ops: 23_500, CPU: 3 * time.Second, Offset: -time.Second,
			Unsure: 40 * time.Microsecond, Late: 250 * time.Microsecond}},
		Counted: []around.Counted{{PID: 7, Program: "java", Counts: map[string]float64{"cycles": 100, "instructions": 36},
			Unsupported: []string{"cache-misses"}}, {PID: 8, Note: "perf is not installed here"}},
		Second: &around.Second{Command: "stress", Ran: 11 * time.Second, Ended: true}}
	r.Loads = []Load{s.named(l, nameOfPlan(l.Plan, false))}
	found := Load{Result: l.Result, Moved: l.Moved}
	r.Peak = &Search{Found: load.Found{Rate: 4000, Clients: 8, Steps: []Step{
		{Clients: 4, Reached: 3500, P99: 900, Kept: true}, {Clients: 8, Reached: 4000, P99: 2000, Kept: true},
		{Clients: 16}}}, Load: s.named(found, "peak"),
		Wrong: []string{"with 16 clients: open client 9 of 16: too many"}}
	r.Sustained = &Search{Found: load.Found{Rate: 3900, Clients: 50, Bound: 10_000, Steps: []Step{
		{Clients: 50, Asked: 4000, Reached: 3990, P99: 20_000},
		{Clients: 50, Asked: 3900, Reached: 3900, P99: 9000, Kept: true}}}, Load: s.named(found, "sustained")}
	r.Served = s.served(r)
	r.Figures = r.figures()
	return r
}

func requireGolden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), got)
}

func TestReportOfAStore(t *testing.T) {
	t.Parallel()
	r := fixedReport()
	var text strings.Builder
	for _, table := range r.Tables() {
		for _, row := range append([][]string{{"# " + table.Title}, table.Header}, table.Rows...) {
			text.WriteString(strings.Join(row, " | ") + "\n")
		}
	}
	for _, note := range r.Notes() {
		text.WriteString("- " + note + "\n")
	}
	requireGolden(t, "store.txt", text.String())
	var svg strings.Builder
	require.NoError(t, r.WriteSVG(&svg))
	requireGolden(t, "store.svg", svg.String())
}

// A report is compared with another one by what its JSON has, with intervals from parts of the window.
func TestReportsOfStoresAreCompared(t *testing.T) {
	t.Parallel()
	slow := fixedReport()
	text := func() []byte {
		out, err := json.Marshal(slow)
		require.NoError(t, err)
		return out
	}
	a, err := sizing.FiguresIn("a.json", text())
	require.NoError(t, err)
	for name, f := range slow.Figures {
		if f.Unit == micros {
			f.Value *= 2
			for i := range f.Repeats {
				f.Repeats[i] *= 2
			}
			slow.Figures[name] = f
		}
	}
	b, err := sizing.FiguresIn("b.json", text())
	require.NoError(t, err)
	c, err := sizing.Compare(a, b)
	require.NoError(t, err)
	found := map[string]float64{}
	for _, r := range c.Ratios {
		found[r.What] = r.Ratio
		_, what, _ := strings.Cut(r.What, ": ")
		if what == "reads" || what == "writes p99" {
			require.Positive(t, r.Low, r.What)
			require.LessOrEqual(t, r.Low, r.Ratio)
		}
	}
	name := slow.Loads[0].Name
	for _, r := range c.Ratios {
		if r.What == name+": writes max" || r.What == name+": writes p99.99" {
			require.InDelta(t, 80_000, r.A, 100, "the standstill of one part is what the report shows")
			require.Zero(t, r.High, "parts say nothing of it: %s", r.What)
		}
	}
	require.InDelta(t, 2, found[name+": writes p99"], 1e-9)
	require.InDelta(t, 1, found[name+": reads"], 1e-9)
	require.InDelta(t, 1, found["sustained: all"], 1e-9)
}

func TestRowsInCassandraAreReported(t *testing.T) {
	effort.Unraced(t)
	node := cassandratest.Node(t)
	plan := Plan{Keys: 100, Of: Uniform, Reads: 0.5, Clients: 4, Depth: 1, For: 1500 * time.Millisecond}
	o := StoreOptions{Target: TargetOptions{At: "cql://" + node, Name: "bench_reported",
		CQL: CQLOptions{Timeout: time.Minute}}, Fill: true, Plans: []Plan{plan}, Search: plan, PerHour: price.Dollar}
	r, err := Store(t.Context(), o)
	require.NoError(t, err)
	require.Equal(t, 1, r.Copies)
	require.Len(t, r.Loads, 2)
	require.EqualValues(t, 100, r.Loads[0].Of[load.Write].Ops)
	l := r.Loads[1]
	require.Len(t, l.Rows, 2)
	require.Zero(t, l.Rows[0].Replicated, "reads are not replicated")
	require.Equal(t, l.Rows[1].Rate, l.Rows[1].Replicated)
	require.Positive(t, *l.Rows[1].PerMillion)
	require.Greater(t, l.Moved.Sent+l.Moved.Received, l.Moved.Payload)
	require.Positive(t, *r.Cost)
	s := cassandratest.Open(t, cassandra.Config{Hosts: []string{node}, Timeout: time.Minute})
	keeps, err := cassandra.Replication(t.Context(), s, "bench_reported")
	require.NoError(t, err)
	require.Empty(t, keeps)
}

// A load that fails does not lose the loads before it, and one of a search ends nothing.
func TestWhatWasMeasuredOutlivesAFailure(t *testing.T) {
	t.Parallel()
	write := Plan{Keys: 3, Of: Uniform, Clients: 1, Depth: 1, Ops: 3}
	read := write
	read.Reads, read.Keys = 1, 1<<60
	o := StoreOptions{Target: TargetOptions{At: "parts", Dir: t.TempDir(), Value: 100}, Plans: []Plan{write, read},
		Search: write, PerHour: price.Dollar}
	r, err := Store(t.Context(), o)
	require.ErrorContains(t, err, "none of 3 operations has succeeded")
	require.Len(t, r.Loads, 1)
	require.Equal(t, err.Error(), r.Failed)
	require.NotEmpty(t, r.Figures)
	require.Positive(t, *r.Cost)
	requireEmpty(t, o.Target.Dir)
}

func TestSearchesOutliveLoadsThatFail(t *testing.T) {
	server := redistest.Start(t, "--maxclients", "6")
	plan := Plan{Keys: 100, Of: Uniform, Clients: 2, Depth: 1, For: 100 * time.Millisecond}
	// The second database is asked for when a client is opened: that is where the server's refusal is seen.
	o := StoreOptions{Target: TargetOptions{At: strings.TrimSuffix(server.URL, "/0") + "/1"}, Search: plan, Peak: true,
		Bound: time.Minute, Told: func(string) {}}
	target := openTest(t, o.Target)
	s := sender{StoreOptions: o, target: target}
	got, err := s.search(t.Context(), "some", func(run load.Runner, told func(Step)) (f load.Found, err error) {
		for _, clients := range []int{2, 3, 50, 1} {
			plan.Clients = clients
			r, err := run(t.Context(), plan)
			if err != nil {
				return f, err
			}
			step := Step{Clients: clients, Reached: r.Rate(), Kept: clients == 3}
			told(step)
			f.Steps = append(f.Steps, step)
		}
		f.Rate = f.Steps[1].Reached
		return f, nil
	})
	require.NoError(t, err)
	require.Len(t, got.Wrong, 1)
	require.Contains(t, got.Wrong[0], "with 50 clients: ")
	require.Zero(t, got.Steps[2].Reached)
	require.Equal(t, "some", got.Load.Name)
	require.Equal(t, 3, got.Load.Plan.Clients, "the load that was found")
	require.NotEmpty(t, got.Load.Rows)
	require.Positive(t, got.Load.Moved.Payload)
	require.NoError(t, target.Close())

	r, err := Store(t.Context(), o)
	require.NoError(t, err)
	require.Equal(t, r.Peak.Clients, r.Peak.Load.Plan.Clients)
	require.Equal(t, "sustained", r.Sustained.Load.Name)

	o.Search.Clients, o.Peak = 50, false
	r, err = Store(t.Context(), o)
	require.ErrorContains(t, err, "max number of clients")
	require.Nil(t, r.Sustained)
	require.False(t, r.Measured())
}
