package load

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/stretchr/testify/require"

	"thalweg/internal/base/fault"
	"thalweg/internal/test/effort"
)

// delayOf is 1 to 4 ms, by the key.
func delayOf(op Op) time.Duration {
	return time.Millisecond + time.Duration(op.Key*7919%3001)*time.Microsecond
}

// TestChaosKnownTruth: the server's delays and its standstill are what the load finds, which an open loop that waits
// for answers before it sends would not: it would have one operation in the standstill for each client.
func TestChaosKnownTruth(t *testing.T) {
	const rate, keys = 1000, 5_000
	window := effort.Of(2*time.Second, 3*time.Second, 20*time.Second)
	part, more, most := 0.02, 50*time.Microsecond, 0.01
	if !effort.All() { // other tests run beside it
		t.Parallel()
		part, more, most = 0.1, 50*time.Millisecond, 0.1
	}
	plan := Plan{Keys: keys, Of: Uniform, Reads: 0.5, Clients: 128, Depth: 16, Rate: rate, For: window,
		WarmUp: 200 * time.Millisecond, Seed: 1}
	const tries = 3 // what other processes take of the machine only makes it worse
	for try := 1; ; try++ {
		s := &server{delay: delayOf, stall: [2]time.Duration{700 * time.Millisecond, 1700 * time.Millisecond}}
		r, err := Run(t.Context(), s, plan)
		require.NoError(t, err)
		require.Zero(t, s.open)
		n := int64(rate * window.Seconds())
		require.Equal(t, n, r.Of[Read].Ops+r.Of[Write].Ops)
		require.InDelta(t, n/2, r.Of[Read].Ops, 5*math.Sqrt(float64(n)))

		truth, all := truthOf(t, s, r.Began, n, keys), r.Response()
		wrong := off(t, truth.Max(), all.Max(), most, 0)
		for _, q := range []float64{50, 99, 99.9} {
			wrong += off(t, truth.ValueAtQuantile(q), all.ValueAtQuantile(q), part, more)
		}
		service := r.Of[Read].Service
		wrong += off(t, int64(2500*time.Microsecond), service.ValueAtQuantile(50), 0.05, more)
		require.Less(t, service.ValueAtQuantile(90), int64(time.Second)/2, "few are sent into the standstill")
		if wrong == 0 || try == tries {
			require.Zero(t, wrong, "figures that are not those of the server")
			requireWhole(t, r, n)
			return
		}
	}
}

// truthOf returns the responses without a generator: each operation at its time, by a server that is as it is said to
// be.
func truthOf(t *testing.T, s *server, zero time.Time, n int64, keys uint64) *hdrhistogram.Histogram {
	t.Helper()
	began := s.began.Sub(zero)
	truth := hdrhistogram.New(100, int64(time.Minute), 4)
	stall := [2]time.Duration{began + s.stall[0], began + s.stall[1]}
	for i := range n {
		at := time.Duration(i) * time.Millisecond
		response := delayOf(Op{Key: uint64(i) % keys})
		if at >= stall[0] && at < stall[1] {
			response += stall[1] - at
		}
		require.NoError(t, truth.RecordValue(int64(response)))
	}
	return truth
}

// off returns 1 if a figure is too far from what it should be.
func off(t *testing.T, want, got int64, part float64, more time.Duration) int {
	t.Helper()
	t.Logf("%v, measured %v", time.Duration(want), time.Duration(got))
	if math.Abs(float64(want-got)) > float64(want)*part+float64(more) {
		return 1
	}
	return 0
}

// requireWhole requires that all figures of a result are of all operations.
func requireWhole(t *testing.T, r Result, n int64) {
	t.Helper()
	var sum int64
	for i, second := range r.Seconds {
		sum += second.Ops[Read] + second.Ops[Write]
		require.LessOrEqual(t, second.At, float64(i+1))
	}
	require.Equal(t, n, sum)
	require.Greater(t, r.Seconds[1].P99, 0.5e6)
	require.Positive(t, r.CPU)
	for kind := range r.Of {
		var blocks int64
		for _, b := range r.Of[kind].Blocks {
			blocks += b.TotalCount()
		}
		require.Equal(t, r.Of[kind].Ops, blocks)
	}
	requireSameInJSON(t, r)
}

func requireSameInJSON(t *testing.T, r Result) {
	t.Helper()
	text, err := json.Marshal(r)
	require.NoError(t, err)
	var back Result
	require.NoError(t, json.Unmarshal(text, &back))
	for kind := range r.Of {
		require.True(t, r.Of[kind].Response.Equals(back.Of[kind].Response))
		require.True(t, r.Of[kind].Service.Equals(back.Of[kind].Service))
		require.Len(t, back.Of[kind].Blocks, len(r.Of[kind].Blocks))
	}
	again, err := json.Marshal(back)
	require.NoError(t, err)
	require.JSONEq(t, string(text), string(again))
	twice, err := Merge(r, back)
	require.NoError(t, err)
	require.Equal(t, 2*r.Of[Write].Ops, twice.Of[Write].Response.TotalCount())
	require.Equal(t, r.Of[Write].Response.Max(), twice.Of[Write].Response.Max())
	require.Equal(t, 2*r.Seconds[0].Ops[Read], twice.Seconds[0].Ops[Read])
	require.Equal(t, r.Of[Read].Ops, r.Of[Read].Response.TotalCount(), "merging leaves its parts alone")
	require.InDelta(t, 2*r.Rate(), twice.Rate(), 1e-6*r.Rate())
}

func TestEndsWithOperations(t *testing.T) {
	t.Parallel()
	for _, rate := range []float64{0, 5000} {
		r, err := Run(t.Context(), &server{}, Plan{Keys: 10, Of: Zipf, Reads: 1, Clients: 3, Depth: 7, Rate: rate, Ops: 1001,
			WarmUp: 20 * time.Millisecond})
		require.NoError(t, err)
		require.EqualValues(t, 1001, r.Of[Read].Ops, rate)
		require.Nil(t, r.Of[Write].Response)
		require.EqualValues(t, 1001, r.Of[Read].Response.TotalCount())
	}
}

func TestSequentialAsksForEachKeyOnce(t *testing.T) {
	t.Parallel()
	s := &server{asked: map[uint64]int{}}
	r, err := Run(t.Context(), s, Plan{Keys: 1003, Of: Sequential, Clients: 5, Depth: 4})
	require.NoError(t, err)
	require.EqualValues(t, 1003, r.Of[Write].Ops)
	require.Len(t, s.asked, 1003)
	for key, n := range s.asked {
		require.Equal(t, 1, n, key)
	}
}

// TestSequentialGoesRound: neither a warm-up nor a long window uses the keys up.
func TestSequentialGoesRound(t *testing.T) {
	t.Parallel()
	for _, rate := range []float64{0, 2000} {
		s := &server{asked: map[uint64]int{}, delay: func(Op) time.Duration { return time.Millisecond }}
		r, err := Run(t.Context(), s, Plan{Keys: 16, Of: Sequential, Reads: 1, Clients: 5, Depth: 4, Rate: rate,
			WarmUp: 50 * time.Millisecond, For: 100 * time.Millisecond})
		require.NoError(t, err)
		require.Greater(t, r.Of[Read].Ops, int64(16))
		require.Len(t, s.asked, 16)
		times := slices.Collect(maps.Values(s.asked))
		require.LessOrEqual(t, slices.Max(times)-slices.Min(times), 1, s.asked)
	}
}

// TestNobodyTakesWhatAStuckClientIsToSend: operations by number are those by time, too. One client is stuck from 0.1 s
// to behind the end, so a fifth of the operations is late.
func TestNobodyTakesWhatAStuckClientIsToSend(t *testing.T) {
	t.Parallel()
	sent := 0
	s := &server{delay: func(Op) time.Duration {
		if sent++; sent == 100 {
			return time.Second
		}
		return 0
	}}
	r, err := Run(t.Context(), s, Plan{Keys: 10, Of: Uniform, Clients: 4, Depth: 1, Rate: 1000, Ops: 600})
	require.NoError(t, err)
	require.EqualValues(t, 600, r.Of[Write].Response.TotalCount()+r.Unsent)
	require.Greater(t, r.Of[Write].Response.ValueAtQuantile(82), int64(500*time.Millisecond))
}

func TestTurnsAreBound(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		plan     Plan
		from, to int64
		byTime   bool
	}{
		{Plan{Rate: 1000, WarmUp: 200 * time.Millisecond, For: time.Second}, 200, 1200, true},
		{Plan{Rate: 1000, Ops: 600}, 0, 600, false},
		{Plan{Rate: 3, WarmUp: time.Second, Ops: 7}, 3, 10, false},
		{Plan{Rate: 3, WarmUp: time.Second, Ops: 7, For: 2 * time.Second}, 3, 9, true},
		{Plan{Rate: 3, WarmUp: time.Second, Ops: 6, For: time.Minute}, 3, 9, false},
		{Plan{Rate: 0.5, For: time.Second}, 0, 1, true},
		{Plan{Rate: 10, Keys: 33, Of: Sequential}, 0, 33, false},
		{Plan{Rate: RateMax, WarmUp: ForMax, For: ForMax}, 86_400 * RateMax, 2 * 86_400 * RateMax, true},
	} {
		r := run{plan: c.plan}
		r.bound()
		require.Equal(t, []any{c.from, c.to, c.byTime}, []any{r.from, r.to, r.byTime.Load()}, "%+v", c.plan)
	}
}

// closed is a store that lets nobody in.
type closed struct {
	server
	err error
}

func (c *closed) Client(context.Context, int) (Client, error) { return nil, c.err }

func TestAStoreThatLetsNobodyInIsNoFaultOfOurs(t *testing.T) {
	t.Parallel()
	plan := Plan{Keys: 10, Of: Uniform, Clients: 2, Depth: 1, Ops: 1}
	for _, c := range []struct {
		err  error
		kind fault.Kind
	}{{errNotThere, fault.Environment}, {fault.New(fault.Script, "login refused"), fault.Script}} {
		_, err := Run(t.Context(), &closed{err: c.err}, plan)
		require.ErrorIs(t, err, c.err)
		require.ErrorContains(t, err, "open client 1")
		require.Equal(t, c.kind, fault.Of(err).Kind)
	}
}

func TestClientsAreBusyWhileTheyWait(t *testing.T) {
	t.Parallel()
	s := &server{delay: func(Op) time.Duration { return 20 * time.Millisecond }}
	plan := Plan{Keys: 10, Of: Uniform, Clients: 2, Depth: 1, For: 300 * time.Millisecond}
	r, err := Run(t.Context(), s, plan)
	require.NoError(t, err)
	require.InDelta(t, 1, r.Busy, 0.2)
	plan.Rate = 10
	few, err := Run(t.Context(), s, plan)
	require.NoError(t, err)
	require.InDelta(t, 0.1, few.Busy, 0.09)
	few.Took, few.Plan.Clients = r.Took, r.Plan.Clients
	both, err := Merge(r, few)
	require.NoError(t, err)
	require.InDelta(t, (r.Busy+few.Busy)/2, both.Busy, 1e-9)
}

func TestFailuresAreCountedAndShown(t *testing.T) {
	t.Parallel()
	s := &server{fails: func(op Op) error {
		if op.Key == 3 {
			return errNotThere
		}
		return nil
	}}
	r, err := Run(t.Context(), s, Plan{Keys: 10, Of: Sequential, Reads: 1, Clients: 1, Depth: 2})
	require.NoError(t, err)
	require.EqualValues(t, 9, r.Of[Read].Ops)
	require.EqualValues(t, 1, r.Failed())
	require.Equal(t, map[string]int64{"not there": 1}, r.Errors)
	require.EqualValues(t, 9, r.Of[Read].Response.TotalCount())

	s.fails = func(Op) error { return errNotThere }
	_, err = Run(t.Context(), s, Plan{Keys: 10, Of: Sequential, Reads: 1, Clients: 1, Depth: 2})
	require.ErrorContains(t, err, "none of 10 operations has succeeded: not there")
}

// TestFailuresOfConnectionsAreAlike: the port of this side says nothing, and is another one each time.
func TestFailuresOfConnectionsAreAlike(t *testing.T) {
	t.Parallel()
	s := &server{fails: func(op Op) error {
		if op.Key == 0 {
			return nil
		}
		return fmt.Errorf("send: %w", &net.OpError{Op: "write", Net: "tcp", Err: errNotThere,
			Source: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 40_000 + int(op.Key)},
			Addr:   &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 6379}})
	}}
	r, err := Run(t.Context(), s, Plan{Keys: 10, Of: Sequential, Clients: 1, Depth: 10})
	require.NoError(t, err)
	require.Equal(t, map[string]int64{"send: write tcp here->127.0.0.1:6379: not there": 9}, r.Errors)
}

func TestRunIsInterrupted(t *testing.T) {
	t.Parallel()
	for _, rate := range []float64{0, 10} {
		ctx, cancel := context.WithCancel(t.Context())
		s := &server{delay: func(Op) time.Duration { cancel(); return time.Hour }}
		_, err := Run(ctx, s, Plan{Keys: 10, Of: Uniform, Reads: 1, Clients: 4, Depth: 1, Rate: rate, For: time.Hour})
		require.ErrorIs(t, err, context.Canceled)
		require.Zero(t, s.open)
	}
}

func TestStartTogether(t *testing.T) {
	t.Parallel()
	start := time.Now().Add(300 * time.Millisecond)
	s := &server{}
	r, err := Run(t.Context(), s, Plan{Keys: 10, Of: Uniform, Reads: 1, Clients: 4, Depth: 1, Ops: 10, Start: start.Round(0),
		WarmUp: 10 * time.Millisecond})
	require.NoError(t, err)
	require.WithinDuration(t, start.Add(10*time.Millisecond), r.Began, time.Millisecond)
	require.False(t, s.began.Before(start))

	_, err = Run(t.Context(), s, Plan{Keys: 10, Of: Uniform, Reads: 1, Clients: 1, Depth: 1, Ops: 10, Start: start})
	require.ErrorContains(t, err, "after the load was to start")
}

func TestChaosWhatCannotBeSentIsCounted(t *testing.T) {
	if !effort.All() {
		t.Skip("takes as long as a load is drained")
	}
	r, err := Run(t.Context(), &server{delay: func(Op) time.Duration { return 100 * time.Millisecond }},
		Plan{Keys: 10, Of: Uniform, Reads: 1, Clients: 1, Depth: 1, Rate: 100, For: 2 * time.Second})
	require.NoError(t, err)
	require.InDelta(t, 130, r.Unsent, 5)
	require.EqualValues(t, 200, r.Of[Read].Ops+r.Unsent)
}

// observed is a server that says what it does: it compacts in a second.
type observed struct {
	server
	at int
}

func (o *observed) Observe(context.Context) ([]Reading, error) {
	o.at++
	if o.at == 2 {
		return nil, errNotThere
	}
	return []Reading{{Node: "a", Counters: map[string]float64{"compactions": float64(o.at)}}}, nil
}

func TestServersAreRead(t *testing.T) {
	t.Parallel()
	o := &observed{server: server{rate: 500}}
	r, err := Run(t.Context(), o, Plan{Keys: 10, Of: Uniform, Reads: 1, Clients: 2, Depth: 1, For: 2200 * time.Millisecond})
	require.NoError(t, err)
	require.EqualValues(t, 1, r.Before[0].Counters["compactions"])
	require.Nil(t, r.Seconds[0].Servers)
	require.EqualValues(t, 3, r.Seconds[1].Servers[0].Counters["compactions"])
	require.Equal(t, []string{"1 looks at the servers failed: not there"}, r.Notes)
}

func TestPlansThatCannotBe(t *testing.T) {
	t.Parallel()
	good := Plan{Keys: 1, Of: Uniform, Clients: 1, Depth: 1, Ops: 1}
	require.NoError(t, good.Check())
	for _, change := range []func(*Plan){
		func(p *Plan) { p.Keys = 0 }, func(p *Plan) { p.Of = "odd" }, func(p *Plan) { p.Reads = math.NaN() },
		func(p *Plan) { p.Clients = 0 }, func(p *Plan) { p.Depth = DepthMax + 1 }, func(p *Plan) { p.Rate = math.Inf(1) },
		func(p *Plan) { p.Ops = 0 }, func(p *Plan) { p.For = 2 * ForMax },
	} {
		bad := good
		change(&bad)
		require.Error(t, bad.Check(), "%+v", bad)
	}
}

// TestZipf: keys come as often as Zipf's law says, and are spread.
func TestZipf(t *testing.T) {
	t.Parallel()
	const keys, draws = 1000, 200_000
	m := newKeyMaker(Plan{Keys: keys, Of: Zipf, Reads: 1, Seed: 3}, 0, nil)
	op, counts := make([]Op, 1), make([]int, keys)
	for range draws {
		m.fill(op)
		counts[op[0].Key]++
	}
	var sum, wrong float64
	for rank := 1; rank <= keys; rank++ {
		sum += math.Pow(float64(rank), -zipfExponent)
	}
	for rank := uint64(1); rank <= keys; rank++ {
		want := draws * math.Pow(float64(rank), -zipfExponent) / sum
		off := float64(counts[m.mix.of(rank-1)]) - want
		wrong += off * off / want
	}
	require.Less(t, wrong, 1000+5*math.Sqrt(2*1000), "chi² of 999 degrees of freedom")
	slices.Sort(counts)
	require.Positive(t, counts[0])
}

func TestScramblePermutes(t *testing.T) {
	t.Parallel()
	for _, n := range []uint64{1, 2, 3, 10, 1000, 4096, 4097} {
		s, seen := newScramble(n), map[uint64]bool{}
		for k := range n {
			at := s.of(k)
			require.Less(t, at, n)
			seen[at] = true
		}
		require.Len(t, seen, int(n))
	}
}

func TestBlocksAreFew(t *testing.T) {
	t.Parallel()
	var line timeline
	for i := range 500 {
		s := &inSecond{}
		h := newSmallHistogram()
		record(h, time.Duration(i)*time.Millisecond, 1)
		s.ops[Read], s.of[Read] = 1, h
		line.add(i, s)
	}
	seconds := line.end()
	require.Len(t, seconds, 500)
	require.InDelta(t, 400e3, seconds[400].P99, 4e3)
	require.LessOrEqual(t, len(line.blocks[Read]), blocksMost)
	var sum int64
	for _, b := range line.blocks[Read] {
		sum += b.TotalCount()
	}
	require.EqualValues(t, 500, sum)
	require.Equal(t, 16, line.width)
}
