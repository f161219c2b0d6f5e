package fleet

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/app/caller"
	"thalweg/internal/app/instance"
	"thalweg/internal/app/runs"
	"thalweg/internal/app/scheduler"
	"thalweg/internal/app/view"
	"thalweg/internal/base/fault"
	"thalweg/internal/ops/schedule"
	"thalweg/internal/run/gate"
	"thalweg/internal/store/state"
)

// place is an instance whose runs are made up.
type place struct {
	t testing.TB
	*Service
	now time.Time
}

func newPlace(t testing.TB) *place {
	t.Helper()
	home, err := instance.Open(context.Background(), t.TempDir(), true)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, home.Close()) })
	return &place{t, &Service{Home: home, Runs: &runs.Service{Home: home}}, time.Now()}
}

// begin begins a run of a script with parameters, so long ago.
func (p *place) begin(script, params string, ago time.Duration, change func(*state.Run)) state.RunKey {
	p.t.Helper()
	blob := state.NewBlob([]byte(params))
	run := state.Run{RunKey: state.RunKey{Workspace: "main"}, Script: "path " + script, ScriptPath: script, Actor: "ann",
		Fingerprint: script + params, Created: p.now.Add(-ago),
		Pins: []state.Pin{{Kind: state.PinParams, Name: "p", Digest: blob.Digest}}}
	if change != nil {
		change(&run)
	}
	key, err := p.Home.State.CreateRun(p.t.Context(), run, []state.NodeSpec{{Name: "load", Kind: "file_table"}}, blob)
	require.NoError(p.t, err)
	return key
}

// ends lets a run end by an order, or be complete, so long ago.
func (p *place) ends(key state.RunKey, kind state.CommandKind, ago time.Duration) {
	p.t.Helper()
	at := p.now.Add(-ago)
	if kind == "" {
		require.NoError(p.t, state.Finish(p.t.Context(), p.Home.State, key, 0, "w", at))
		return
	}
	require.NoError(p.t, state.Direct(p.t.Context(), p.Home.State, key, state.Command{Kind: kind,
		Token: fmt.Sprint(kind, key.Run), Mark: state.Mark{Actor: "ben", Time: at, Reason: "mine"},
		Cause: &state.Failure{Kind: fault.UserData, Message: `"12,5" is no decimal, see {{do why run=7}}`, Node: "load",
			Place: fault.Place{File: "in.csv", Line: 4, Value: "12,5"}}}))
}

func (p *place) needs(change func(*Asker)) view.Needs {
	p.t.Helper()
	by := Asker{Caller: caller.Caller{Actor: "eve", Roles: []string{"sales"}, Verified: true}, Decides: true, Reads: true,
		Runs: p.Runs}
	if change != nil {
		change(&by)
	}
	out, err := p.Needs(p.t.Context(), by, "main")
	require.NoError(p.t, err)
	return out
}

// A failure needs people until it was made good, dropped, or is declared invalid; one that somebody has taken is last.
func TestFailuresThatNeedPeople(t *testing.T) {
	t.Parallel()
	const hour = time.Hour
	// later gives a later run of a script that ends by an order, or is complete.
	later := func(script, params string, kind state.CommandKind, change func(*state.Run)) func(*place, state.RunKey) {
		return func(p *place, _ state.RunKey) { p.ends(p.begin(script, params, hour, change), kind, 0) }
	}
	ordered := func(kind state.CommandKind) func(*place, state.RunKey) {
		return func(p *place, failed state.RunKey) { p.ends(failed, kind, 0) }
	}
	for name, tc := range map[string]struct {
		then func(p *place, failed state.RunKey)
		want []int64
	}{
		"nothing since": {func(*place, state.RunKey) {}, []int64{1}},
		"dropped":       {ordered(state.CommandDrop), nil},
		"invalidated":   {ordered(state.CommandInvalidate), nil},
		"goes on":       {ordered(state.CommandReopen), nil},
		"failed again": {func(p *place, failed state.RunKey) {
			p.ends(failed, state.CommandReopen, hour)
			p.ends(failed, state.CommandFail, 0)
		}, []int64{1}},
		"a later one is complete": {later("a.yaml", "x", "", nil), nil},
		"a later one of a mended script": {later("a.yaml", "x", "",
			func(r *state.Run) { r.Fingerprint = "mended" }), nil},
		"a later one with other parameters": {later("a.yaml", "y", "", nil), []int64{1}},
		"a later one of another script":     {later("b.yaml", "x", "", nil), []int64{1}},
		"a later one of other nodes": {later("a.yaml", "x", "",
			func(r *state.Run) { r.StartNodes = []string{"n"} }), []int64{1}},
		"a later one has failed, too": {later("a.yaml", "x", state.CommandFail, nil), []int64{2, 1}},
		"a later one that is under way": {func(p *place, _ state.RunKey) { p.begin("a.yaml", "x", hour, nil) },
			[]int64{1}},
		"a later one that is invalid": {func(p *place, _ state.RunKey) {
			key := p.begin("a.yaml", "x", hour, nil)
			p.ends(key, "", 0)
			p.ends(key, state.CommandInvalidate, 0)
		}, []int64{1}},
		"taken: behind a failure that nobody has": {func(p *place, failed state.RunKey) {
			p.ends(failed, state.CommandTake, 0)
			p.ends(p.begin("b.yaml", "x", 3*hour, nil), state.CommandFail, 3*hour)
		}, []int64{2, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			failed := p.begin("a.yaml", "x", 2*hour, nil)
			p.ends(failed, state.CommandFail, 2*hour)
			tc.then(p, failed)
			for range 2 { // the second time with what is kept of parameters
				var got []int64
				for _, n := range p.needs(nil).Needs {
					got = append(got, n.Run)
					require.Equal(t, view.NeedFailure, n.Kind)
					require.Contains(t, n.Text, `in.csv:4: node load: "12,5" is no decimal, see why`)
					require.Equal(t, "12,5", n.Failure.Place.Value)
				}
				require.Equal(t, tc.want, got)
			}
		})
	}
}

// Failures of long ago, and those before many others, are not looked at, and it says so.
func TestNeedsAreBounded(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.ends(p.begin("old.yaml", "x", NeedsLookBack+time.Hour, nil), state.CommandFail, time.Hour)
	require.Empty(t, p.needs(nil).Needs)
	for range NeedsMax + 1 {
		p.ends(p.begin("a.yaml", "x", time.Hour, nil), state.CommandFail, time.Hour)
	}
	got := p.needs(nil)
	require.Len(t, got.Needs, NeedsMax)
	require.True(t, got.More)
}

// Parameters of a few runs are read at once: what is not known to be made good is listed, and known later.
func TestParametersAreReadByAndBy(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	failed := p.begin("a.yaml", "x", 2*time.Hour, nil)
	p.ends(failed, state.CommandFail, time.Hour)
	p.ends(p.begin("a.yaml", "x", time.Hour, func(r *state.Run) { r.Fingerprint = "mended" }), "", 0)
	for i := range needsInputs {
		p.ends(p.begin("a.yaml", fmt.Sprint(i), time.Hour, nil), "", 0)
	}
	first := p.needs(nil)
	require.Len(t, first.Needs, 1)
	require.True(t, first.More)
	second := p.needs(nil)
	require.Empty(t, second.Needs)
	require.False(t, second.More)
}

// Who may not read sees no values, and whose decision does not count is told so.
func TestNeedsForWhoSeesLess(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.ends(p.begin("a.yaml", "x", time.Hour, nil), state.CommandFail, time.Hour)
	key := state.NodeKey{RunKey: p.begin("b.yaml", "x", time.Hour, nil), Node: "load"}
	text, err := gate.Record{Version: 1, Gate: "prices", By: []string{"sales"}, FourEyes: true, Since: p.now,
		Until: p.now.Add(time.Hour), Failed: []gate.Check{{Name: "c", Message: "12,5 is much"}}}.Encode()
	require.NoError(t, err)
	require.NoError(t, gate.Note(t.Context(), p.Home.State, key, p.now))
	require.NoError(t, p.Home.State.MoveNode(t.Context(), key, state.Move{From: state.Pending, To: state.Waiting,
		Gate: text, GateDigest: "d", Now: p.now}))
	got := p.needs(nil)
	require.Len(t, got.Needs, 2)
	require.Equal(t, view.NeedGate, got.Needs[0].Kind, "it is too late in an hour")
	require.Equal(t, "run 2 waits for a decision about prices by sales", got.Needs[0].Text)
	require.True(t, got.Needs[0].May)
	require.NotEmpty(t, got.Needs[0].Gate.Failed[0].Message)
	for name, change := range map[string]func(*Asker){
		"another role":       func(by *Asker) { by.Roles = []string{"finance"} },
		"who began the run":  func(by *Asker) { by.Actor = "ann" },
		"no permission":      func(by *Asker) { by.Decides = false },
		"neither of the two": func(by *Asker) { by.Decides, by.Roles = false, nil },
	} {
		require.False(t, p.needs(change).Needs[0].May, name)
	}
	out, err := view.JSON(p.needs(func(by *Asker) { by.Reads, by.Runs = false, p.Runs.WithoutValues() }))
	require.NoError(t, err)
	require.NotContains(t, string(out), "12,5")
	require.Contains(t, string(out), "in.csv")
}

// A run that is behind its deadline is late, one without a deadline is not; what ends soonest is first.
func TestLateRuns(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	deadline := func(in time.Duration) func(*state.Run) { return func(r *state.Run) { r.Deadline = p.now.Add(in) } }
	p.begin("a.yaml", "x", time.Hour, deadline(-time.Minute))
	p.begin("b.yaml", "x", time.Hour, nil)
	p.begin("c.yaml", "x", time.Hour, deadline(time.Hour))
	p.begin("d.yaml", "x", time.Hour, deadline(48*time.Hour))
	p.ends(p.begin("e.yaml", "x", time.Hour, deadline(-time.Hour)), state.CommandFail, time.Hour)
	got := p.needs(nil)
	require.Len(t, got.Needs, 2)
	require.Equal(t, view.NeedFailure, got.Needs[0].Kind)
	require.Equal(t, view.NeedLate, got.Needs[1].Kind)
	require.Regexp(t, `^run 1 is behind its deadline, for 1 min`, got.Needs[1].Text)
	require.Equal(t, "nobody works on it", got.Needs[1].Expectation.Why)
	var due []int64
	for _, d := range got.Deadlines {
		due = append(due, d.Run)
		require.Equal(t, d.Run != 3, d.Late)
	}
	require.Equal(t, []int64{5, 1, 3}, due, "within a day")
}

// A schedule or watch that does not do what it should needs people.
func TestBrokenSchedules(t *testing.T) {
	t.Parallel()
	failing := &schedule.Failing{Message: "no such\nfile: {{set param}}", Since: time.Now().Add(-time.Hour)}
	for name, tc := range map[string]struct {
		change func(*schedule.Standing)
		want   string
	}{
		"well": {func(*schedule.Standing) {}, ""},
		"failing": {func(s *schedule.Standing) { s.Failing = failing },
			"schedule nightly cannot begin its run: no such file: param"},
		"blind": {func(s *schedule.Standing) { s.Kind, s.Blind = "watch", failing },
			"watch nightly cannot look at its files: no such file: param"},
		"unopened": {func(s *schedule.Standing) { s.Unopened = true },
			"schedule nightly has not looked at its files yet"},
		"nobody looks": {func(s *schedule.Standing) { s.Looked = time.Now().Add(-time.Hour) },
			"schedule nightly is looked at by no scheduler"},
		"nobody, for weeks": {func(s *schedule.Standing) { s.Looked = time.Now().Add(-2 * NeedsLookBack) }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			st := schedule.Standing{Version: 1, Kind: schedule.KindSchedule, Script: "a.yaml", Name: "nightly", When: "0 7 * * *",
				Zone: "UTC", Looked: time.Now()}
			tc.change(&st)
			record, err := json.Marshal(st)
			require.NoError(t, err)
			require.NoError(t, scheduler.ScheduleBox(p.Home, "main").Put(t.Context(), "n", record))
			got := p.needs(nil).Needs
			if tc.want == "" {
				require.Empty(t, got)
				return
			}
			require.Len(t, got, 1)
			require.Equal(t, []string{view.NeedSchedule, tc.want}, []string{got[0].Kind, got[0].Text})
			require.Equal(t, "nightly", got[0].Schedule.Name)
			seen, err := json.Marshal(p.needs(func(by *Asker) { by.Reads = false }).Needs)
			require.NoError(t, err)
			require.NotContains(t, string(seen), "no such", "messages quote values")
		})
	}
}

// BenchmarkNeeds measures what needs people in a workspace of 100,000 runs, a tenth of which have failed.
func BenchmarkNeeds(b *testing.B) {
	p := newPlace(b)
	const all = 100_000
	for i := range all {
		key := p.begin(fmt.Sprintf("script%d.yaml", i%20), fmt.Sprint(i%7), time.Duration(all-i)*time.Minute, nil)
		kind := state.CommandKind("")
		if i%10 == 0 {
			kind = state.CommandFail
		}
		if i < all-5 {
			p.ends(key, kind, 0)
		}
	}
	for b.Loop() {
		p.needs(nil)
	}
}
