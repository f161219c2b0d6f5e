package sheet_test

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"thalweg/internal/run/sheet"
	"thalweg/internal/store/state"
	"thalweg/internal/test/statetest/hostile"
)

var (
	zero = time.Date(2031, 1, 1, 0, 0, 0, 0, time.UTC)
	run  = state.RunKey{Workspace: "main", Run: 7}
	late = state.RunKey{Workspace: "main", Run: 8}
)

// machine is a process with its clock.
type machine struct {
	*sheet.Meter
	t     require.TestingT
	now   time.Time
	ahead time.Duration // of the state's clock
	usage sheet.Usage
	nodes []state.Node
	state state.Store
}

func newMachine(t require.TestingT, slots int) *machine {
	m := &machine{t: t, now: zero}
	m.Meter = sheet.NewMeter(sheet.Config{Worker: "host/1/2", Host: "host", Machine: "c7g.large", Cores: 4, Slots: slots,
		Memory: 8 << 30, Now: func() time.Time { return m.now },
		Stamp: func() time.Time { return m.now.Add(m.ahead) },
		Usage: func() (sheet.Usage, bool) { return m.usage, true }, Budget: func() int64 { return 5 << 30 }})
	m.state = m.Store(nodesOf{nodes: &m.nodes})
	return m
}

// nodesOf is a store that knows the nodes of a run.
type nodesOf struct {
	state.Store
	nodes *[]state.Node
}

func (s nodesOf) Nodes(context.Context, state.RunKey) ([]state.Node, error) { return *s.nodes, nil }

func (m *machine) passes(seconds float64) {
	m.now = m.now.Add(time.Duration(seconds * float64(time.Second)))
}

// sees has the run's coordinator see a node with batches left, or without.
func (m *machine) sees(of state.RunKey, left bool) {
	n := state.Node{NodeSpec: state.NodeSpec{Name: "a"}, Status: state.Running, BatchesTotal: 9}
	if !left {
		n.BatchesDone = 9
	}
	m.nodes = []state.Node{n}
	_, err := m.state.Nodes(context.Background(), of)
	require.NoError(m.t, err)
}

func (m *machine) has(of state.RunKey, want map[sheet.Share]float64) sheet.Sheet {
	s, ok := m.Sheet(of)
	require.True(m.t, ok)
	for share := range sheet.Count {
		require.InDelta(m.t, want[share], s.Shares[share.String()], 1e-6, share.String())
	}
	return s
}

func claim(attempt int) state.Claim {
	return state.Claim{BatchKey: state.BatchKey{NodeKey: state.NodeKey{RunKey: run, Node: "a"}}, Attempt: attempt}
}

// One batch from its first claim to its end, beside a slot that has nothing to do.
func TestABatchOnTwoSlots(t *testing.T) {
	t.Parallel()
	m := newMachine(t, 2)
	p, other := m.Place(), m.Place()
	m.passes(5) // for no run
	m.Open(run)
	m.passes(3)
	m.has(run, map[sheet.Share]float64{sheet.Handover: 6})
	m.sees(run, true)
	m.passes(1)
	p.Claims(run)
	m.passes(0.5)
	p.Claimed(claim(1), nil)
	ctx := p.Context(t.Context())
	m.passes(2) // it fetches
	over := sheet.Waits(ctx)
	m.passes(0.25)
	over()
	over = sheet.Computes(ctx)
	m.passes(10)
	m.has(run, map[sheet.Share]float64{sheet.Handover: 6, sheet.Unoffered: 1, sheet.Claims: 0.5, sheet.Nothing: 13.75,
		sheet.Other: 12.25})
	over()
	m.passes(4) // it stores
	p.Commits()
	m.passes(1)
	over() // too late
	p.Ended(true, sheet.Moved{Read: 100, Written: 10, PeakBytes: 7 << 30})
	m.sees(run, false)
	m.passes(1)
	other.Claims(run)
	m.passes(1)
	other.Claimed(state.Claim{}, state.ErrNotClaimable)
	s := m.has(run, map[sheet.Share]float64{sheet.Handover: 9, sheet.Unoffered: 1, sheet.Claims: 0.5,
		sheet.Nothing: 18.75, sheet.Work: 10, sheet.Parts: 6, sheet.Commits: 1, sheet.Other: 0.25, sheet.Refused: 1})
	require.Equal(t, "host/1/2 host c7g.large 4 2", fmt.Sprint(s.Worker, " ", s.Host, " ", s.Machine, " ", s.Cores, " ",
		s.Slots))
	require.InDelta(t, 23.75, s.Presence, 1e-9)
	require.Equal(t, zero.Add(5*time.Second), s.From)
	require.Equal(t, m.now, s.To)
	require.Zero(t, s.Elsewhere)
	require.Equal(t, []int64{100, 10, 2, 1, 0, 7 << 30, 5 << 30, 8 << 30},
		[]int64{s.PartsRead, s.PartsWritten, s.Calls, s.Batches, s.Lost, s.PeakResident, s.PeakBudget, s.Memory})
	require.Equal(t, 2*23750*time.Millisecond, s.SlotTime())
	_, ok := m.Close(run)
	require.True(t, ok)
	_, ok = m.Sheet(run)
	require.False(t, ok)
}

// More batches in flight than slots: transfers count where nothing is computed in their place.
func TestMoreBatchesThanSlots(t *testing.T) {
	t.Parallel()
	m := newMachine(t, 2)
	m.Open(run)
	var computes []func()
	var places []*sheet.Place
	for range 3 {
		p := m.Place()
		p.Claims(run)
		p.Claimed(claim(1), nil)
		places = append(places, p)
	}
	for _, p := range places[:2] {
		computes = append(computes, sheet.Computes(p.Context(t.Context())))
	}
	m.passes(10)
	computes[0]()
	m.passes(4) // one computes, two move
	for _, p := range places {
		p.Ended(true, sheet.Moved{})
	}
	m.has(run, map[sheet.Share]float64{sheet.Work: 24, sheet.Parts: 4})
}

// An attempt that commits nothing is lost, with all that it did, and so is one that nobody hears of any more.
func TestLostAttempts(t *testing.T) {
	t.Parallel()
	m := newMachine(t, 1)
	m.Open(run)
	p := m.Place()
	p.Claims(run)
	p.Claimed(claim(2), nil)
	ctx := p.Context(t.Context())
	over := sheet.Computes(ctx)
	m.passes(10)
	sheet.Collected(ctx, 2*time.Second)
	require.InDelta(t, 2, m.has(run, map[sheet.Share]float64{sheet.Other: 10}).ChildrenGC, 1e-9)
	p.Commits()
	m.passes(1)
	p.Ended(false, sheet.Moved{Written: 5})
	s := m.has(run, map[sheet.Share]float64{sheet.Other: 11})
	require.Equal(t, int64(1), s.Lost)
	require.Zero(t, s.PartsWritten)
	p.Claims(run)
	p.Claimed(claim(3), nil)
	over() // of the attempt before
	m.passes(1)
	p.Ended(true, sheet.Moved{})
	m.has(run, map[sheet.Share]float64{sheet.Other: 11, sheet.Parts: 1})
	sheet.Collected(ctx, time.Hour) // of the attempt before
	p.Claims(run)
	m.passes(1)
	p.Claimed(state.Claim{}, state.ErrUnknown)
	p.Leave()
	m.passes(1)
	s = m.has(run, map[sheet.Share]float64{sheet.Other: 12, sheet.Parts: 1, sheet.Handover: 1})
	require.InDelta(t, 2, s.ChildrenGC, 1e-9)
}

// Processor time and what nobody does are divided among the runs that are open; memory is all runs'.
func TestTwoRunsAtOnce(t *testing.T) {
	t.Parallel()
	m := newMachine(t, 2)
	m.usage = sheet.Usage{CPU: time.Hour}
	m.Open(run)
	p := m.Place()
	p.Claims(run)
	p.Claimed(claim(1), nil)
	over := sheet.Computes(p.Context(t.Context()))
	m.passes(10)
	m.usage.CPU += 9 * time.Second
	m.Open(late)
	m.passes(10)
	m.usage.CPU, m.usage.Children, m.usage.GC = m.usage.CPU+8*time.Second, 4*time.Second, time.Second
	m.usage.Resident = 3 << 30
	over()
	p.Ended(true, sheet.Moved{})
	one := m.has(run, map[sheet.Share]float64{sheet.Work: 20, sheet.Handover: 15})
	two := m.has(late, map[sheet.Share]float64{sheet.Handover: 5})
	require.InDeltaSlice(t, []float64{9 + 6, 3, 0.75, 5, 20}, []float64{one.CPU, one.ChildrenCPU, one.GC, one.Elsewhere,
		one.Presence}, 1e-6)
	require.InDeltaSlice(t, []float64{2, 1, 0.25, 15, 10}, []float64{two.CPU, two.ChildrenCPU, two.GC, two.Elsewhere,
		two.Presence}, 1e-6)
	require.Equal(t, int64(3<<30), two.PeakResident)
}

// Whatever happens, the shares of a sheet and what other runs had add up to its presence times the slots.
func TestSharesAddUp(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		slots := rapid.IntRange(1, 5).Draw(rt, "slots")
		m := newMachine(rt, slots)
		runs := []state.RunKey{run, late}
		places := make([]*sheet.Place, rapid.IntRange(1, 8).Draw(rt, "places"))
		var overs []func()
		for i := range places {
			places[i] = m.Place()
		}
		at := make([]int, len(places)) // 0: between batches, 1: it claims, 2: it executes, 3: it records
		together := false
		for range rapid.IntRange(1, 60).Draw(rt, "steps") {
			i := rapid.IntRange(0, len(places)-1).Draw(rt, "place")
			p, of := places[i], runs[rapid.IntRange(0, 1).Draw(rt, "run")]
			kind := rapid.IntRange(0, 11).Draw(rt, "step")
			if then, steps := map[int][2]int{2: {0, 1}, 3: {1, 2}, 4: {1, 0}, 8: {2, 3}, 9: {3, 0}}[kind]; steps {
				if at[i] != then[0] {
					continue
				}
				at[i] = then[1]
			}
			switch kind {
			case 0:
				m.Open(of)
				together = together || len(m.Runs()) > 1
			case 1:
				if rapid.IntRange(0, 5).Draw(rt, "close") == 0 {
					m.Close(of)
				}
			case 2:
				p.Claims(of)
			case 3:
				p.Claimed(claim(rapid.IntRange(1, 2).Draw(rt, "attempt")), nil)
			case 4:
				p.Claimed(state.Claim{}, state.ErrNotClaimable)
			case 5:
				overs = append(overs, sheet.Computes(p.Context(context.Background())))
			case 6:
				overs = append(overs, sheet.Waits(p.Context(context.Background())))
			case 7:
				if len(overs) > 0 {
					overs[rapid.IntRange(0, len(overs)-1).Draw(rt, "over")]()
				}
			case 8:
				p.Commits()
			case 9:
				p.Ended(rapid.Bool().Draw(rt, "committed"), sheet.Moved{})
			case 10:
				m.sees(of, rapid.Bool().Draw(rt, "left"))
			case 11:
				p.Leave()
				places[i], at[i] = m.Place(), 0
			}
			step := float64(rapid.IntRange(0, 20_000).Draw(rt, "ms")) / 1000
			m.passes(step)
			m.usage.CPU += time.Duration(step * float64(time.Second))
			for _, of := range m.Runs() {
				s, ok := m.Sheet(of)
				require.True(rt, ok)
				require.InDelta(rt, s.Presence*float64(slots), s.SlotTime().Seconds()+s.Elsewhere, 1e-4)
				if !together { // it has what was done for it, and all the rest
					require.InDelta(rt, s.Presence, s.CPU, 1e-4)
				}
				for name, seconds := range s.Shares {
					require.GreaterOrEqual(rt, seconds, -1e-6, name)
				}
				require.GreaterOrEqual(rt, s.Elsewhere, -1e-4)
				require.LessOrEqual(rt, s.CPU, s.Presence+1e-4)
			}
		}
	})
}

// The sheets of a run outlive their worker, which adds to its own when it comes back, and go with the run.
func TestSheetsAreKept(t *testing.T) {
	t.Parallel()
	store := hostile.New().Open()
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	of := func(key state.RunKey) []sheet.Sheet {
		all, err := sheet.Of(t.Context(), store, key)
		require.NoError(t, err)
		return all
	}
	require.Empty(t, of(run), "a run of an older program")
	require.Nil(t, sheet.TotalOf(nil))
	m := newMachine(t, 2)
	keeper := sheet.NewKeeper(m.Meter, store)
	m.Open(run)
	m.passes(10)
	require.NoError(t, keeper.Renew(t.Context()))
	m.passes(9) // and it is killed: who reads now misses these
	require.InDelta(t, 10, of(run)[0].Presence, 1e-6)
	require.NoError(t, keeper.Close(t.Context(), run))
	m.passes(100)
	require.NoError(t, keeper.Renew(t.Context()))
	m.Open(run)
	m.passes(1)
	again := sheet.NewKeeper(m.Meter, store)
	require.NoError(t, again.Renew(t.Context()))
	m.passes(1)
	require.NoError(t, again.Close(t.Context(), run))
	all := of(run)
	require.Len(t, all, 1)
	require.InDelta(t, 21, all[0].Presence, 1e-6)
	require.Equal(t, 42*time.Second, all[0].Time(sheet.Handover))
	require.Equal(t, []time.Time{zero, m.now}, []time.Time{all[0].From, all[0].To})

	require.NoError(t, store.PutNote(t.Context(), "main", state.Note{Topic: "sheets/" + state.RunName(7), Name: "x",
		Data: []byte("{"), Time: zero}))
	require.Len(t, of(run), 1, "damage is left out")
	require.NoError(t, sheet.Drop(t.Context(), store, run))
	require.Empty(t, of(run))
}

// A clock of the state that is set back, or ahead, changes no time that has passed.
func TestSheetsOfAClockThatIsSet(t *testing.T) {
	t.Parallel()
	store := hostile.New().Open()
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	m := newMachine(t, 2)
	keeper := sheet.NewKeeper(m.Meter, store)
	closed := func() sheet.Sheet {
		require.NoError(t, keeper.Close(t.Context(), run))
		all, err := sheet.Of(t.Context(), store, run)
		require.NoError(t, err)
		require.Len(t, all, 1)
		require.Equal(t, zero, all[0].From)
		require.Equal(t, time.Duration(all[0].Presence*2*float64(time.Second)), all[0].SlotTime())
		return all[0]
	}
	m.Open(run)
	m.passes(10)
	m.ahead = -time.Hour
	s := closed()
	require.InDelta(t, 10, s.Presence, 1e-9)
	require.Equal(t, zero.Add(10*time.Second), s.To)
	m.Open(run)
	m.passes(5)
	s = closed()
	require.InDelta(t, 15, s.Presence, 1e-9)
	require.Equal(t, zero.Add(15*time.Second), s.To)
	m.ahead = time.Hour
	m.Open(run)
	m.passes(5)
	s = closed()
	require.InDelta(t, 20, s.Presence, 1e-9)
	require.Equal(t, m.now.Add(time.Hour), s.To)
}

// A sheet fits into a note, whatever there is to say.
func TestASheetIsSmall(t *testing.T) {
	t.Parallel()
	m := sheet.NewMeter(sheet.Config{Worker: string(make([]byte, 300)), Host: "h", Machine: "m"})
	m.Open(run)
	store := hostile.New().Open()
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	require.NoError(t, sheet.NewKeeper(m, store).Close(t.Context(), run))
}

func TestTotals(t *testing.T) {
	t.Parallel()
	one := sheet.Sheet{Presence: 10, Shares: map[string]float64{"work": 15, "other": 5}, CPU: 3, ChildrenCPU: 4, GC: 1,
		Lost: 2}
	total := sheet.TotalOf([]sheet.Sheet{one, one})
	require.Equal(t, 2, total.Workers)
	require.InDeltaSlice(t, []float64{20, 40, 0.75, 14, 2, 30}, []float64{total.Presence, total.SlotTime, total.Busy,
		total.CPU, total.GC, total.Shares["work"]}, 1e-9)
	require.Equal(t, int64(4), total.Lost)
}

// Processor time is the kernel's.
func TestUsage(t *testing.T) {
	t.Parallel()
	usage := sheet.UsageOf()
	before, ok := usage()
	require.True(t, ok)
	x := 1.0
	for began := time.Now(); time.Since(began) < 30*time.Millisecond; {
		x = math.Sqrt(x + 1)
	}
	after, ok := usage()
	require.True(t, ok)
	require.Greater(t, after.CPU, before.CPU)
	require.Positive(t, after.Resident)
	require.NotZero(t, x)
}

func TestMachine(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	require.Empty(t, sheet.MachineOf(root))
	dir := filepath.Join(root, "sys/devices/virtual/dmi/id")
	require.NoError(t, os.MkdirAll(dir, 0o700))
	write := func(name, text string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text+"\n"), 0o600))
	}
	write("product_name", "c7g.large")
	write("sys_vendor", "Another")
	require.Empty(t, sheet.MachineOf(root))
	write("sys_vendor", "Amazon EC2")
	require.Equal(t, "c7g.large", sheet.MachineOf(root))
}
