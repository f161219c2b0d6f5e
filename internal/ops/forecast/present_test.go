package forecast

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/base/budget"
	"thalweg/internal/ops/simulate"
	"thalweg/internal/run/sheet"
)

// sheetOf is of a worker of two slots that was there from one second to another, and claimed ten batches in 40 ms.
func sheetOf(worker string, from, to int) sheet.Sheet {
	at := func(s int) time.Time { return time.Unix(1_000_000+int64(s), 0) }
	there := float64(to - from)
	return sheet.Sheet{Worker: worker, Machine: "c7g.large", Cores: 2, Slots: 2, Memory: 4 << 30, From: at(from),
		To:       at(to),
		Presence: there, PeakResident: 1 << 30, Batches: 10,
		Shares: map[string]float64{"work": 2*there - 0.04, "claims": 0.04}}
}

// left returns the sheet of a worker that was there for so many seconds only.
func left(s sheet.Sheet, seconds float64) sheet.Sheet {
	s.Presence = seconds
	return s
}

func TestSheetsSayWhoWasThere(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		sheets  []sheet.Sheet
		workers int
		elapsed time.Duration
	}{
		"nobody":                 {nil, 0, time.Minute},
		"one":                    {[]sheet.Sheet{sheetOf("a", 0, 60)}, 1, time.Minute},
		"two at once":            {[]sheet.Sheet{sheetOf("a", 0, 60), sheetOf("b", 2, 60)}, 2, time.Minute},
		"one behind the other":   {[]sheet.Sheet{sheetOf("a", 0, 30), sheetOf("b", 30, 60)}, 1, time.Minute},
		"with a pause between":   {[]sheet.Sheet{sheetOf("a", 0, 20), sheetOf("b", 50, 60)}, 1, 30 * time.Second},
		"who has left meanwhile": {[]sheet.Sheet{left(sheetOf("a", 0, 60), 10)}, 1, 10 * time.Second},
		"two who have left meanwhile": {[]sheet.Sheet{left(sheetOf("a", 0, 60), 10), left(sheetOf("b", 0, 60), 10)}, 2,
			10 * time.Second},
		"one within another's": {[]sheet.Sheet{sheetOf("a", 0, 60), sheetOf("b", 10, 12), sheetOf("c", 58, 60)}, 1,
			time.Minute},
		"a sheet that has no time": {[]sheet.Sheet{sheetOf("a", 5, 5)}, 0, time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := Record{Elapsed: time.Minute}
			if name == "a sheet that has no time" {
				c.sheets[0].Shares = nil
			}
			r.attend(c.sheets)
			require.Equal(t, c.workers, r.Workers)
			require.Equal(t, c.elapsed, r.Elapsed)
			if c.workers == 0 {
				return
			}
			require.Equal(t, 2, r.Slots)
			require.Equal(t, 2, r.Cores)
			require.EqualValues(t, 512<<20, r.Peak)
			require.Equal(t, "c7g.large", r.Machine)
			require.Equal(t, 4*time.Millisecond, r.Claim)
			sum := 0.0
			for _, share := range r.Shares {
				sum += share
			}
			require.InDelta(t, 1, sum, 1e-9)
		})
	}
}

func TestMachinesOfSeveralTypesAreNone(t *testing.T) {
	t.Parallel()
	other := sheetOf("b", 0, 60)
	other.Machine, other.Memory = "c8g.large", 2<<30
	r := Record{Elapsed: time.Minute}
	r.attend([]sheet.Sheet{sheetOf("a", 0, 60), other})
	require.Empty(t, r.Machine)
	require.EqualValues(t, 2<<30, r.Memory)
}

// TestStateIsAsQuickAsClaimsWere holds that means of simulated claims are those of the sheets, and that those of one
// kind of state say nothing of another.
func TestStateIsAsQuickAsClaimsWere(t *testing.T) {
	t.Parallel()
	b, err := budget.Split(4<<30, 2, 0)
	require.NoError(t, err)
	r := Record{Elapsed: time.Minute}
	r.attend([]sheet.Sheet{sheetOf("a", 0, 60)})
	dir := Load{Budget: b, State: simulate.Directory()}
	require.InEpsilon(t, 4, r.state(dir).Write.Mean(), 1e-9)
	remote := dir
	remote.State = simulate.Portfolio().State
	s := r.state(remote)
	require.InEpsilon(t, 4, s.Read.Mean()+s.Write.Mean(), 1e-9)
	remote.Was = &Place{Budget: b, State: dir.State}
	require.Equal(t, remote.State, r.state(remote))

	few := sheetOf("a", 0, 60)
	few.Batches = claimsLeast - 1
	r = Record{Elapsed: time.Minute}
	r.attend([]sheet.Sheet{few})
	require.Equal(t, dir.State, r.state(dir))
}
