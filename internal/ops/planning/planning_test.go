package planning_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"thalweg/internal/base/budget"
	"thalweg/internal/lang/script"
	"thalweg/internal/ops/forecast"
	"thalweg/internal/ops/planning"
	"thalweg/internal/ops/price"
	"thalweg/internal/ops/simulate"
	"thalweg/internal/run/plan"
	"thalweg/internal/store/state"
)

// most is how many machines of a type the tests try.
const most = 6

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// record is a run of 10 s on a machine of two slots: 16 batches of a load, 16 of Python behind them, and one file.
func record() forecast.Record {
	size := func(mib int64) plan.Size { return plan.Size{Rows: mib * 10_000, Bytes: mib << 20, Parts: 16} }
	spread := []float64{0.5, 0.75, 1.25, 1.5}
	return forecast.Record{Run: state.RunKey{Workspace: "w", Run: 3}, Elapsed: 10400 * time.Millisecond,
		Workers: 1, Slots: 2, Cores: 2, Memory: 2400 << 20, Peak: 600 << 20, Machine: "c7g.large",
		Nodes: []forecast.Node{
			{Name: "load", Kind: script.FileTable, Batches: 16, Files: 4 << 30, Out: size(4096), Stored: 1 << 30,
				Worked: 4 * time.Second, Spread: spread},
			{Name: "calc", Kind: script.ProcPyCalc, Inputs: []string{"load"}, Batches: 16, Out: size(4096),
				Stored: 1 << 30, Worked: 15500 * time.Millisecond, Moved: 500 * time.Millisecond, Spread: spread},
			{Name: "file", Kind: script.TableFile, Inputs: []string{"calc"}, Batches: 1, Worked: 100 * time.Millisecond},
		}}
}

func question(t *testing.T, names ...string) planning.Question {
	t.Helper()
	r := record()
	m, err := forecast.Fit([]forecast.Record{r})
	require.NoError(t, err)
	b, err := budget.Split(r.Memory, r.Cores, r.Cores)
	require.NoError(t, err)
	book, err := price.Published()
	require.NoError(t, err)
	machines, err := planning.MachinesOf(book, names, r.Machine, nil)
	require.NoError(t, err)
	portfolio := simulate.Portfolio()
	load := forecast.Load{Budget: b, State: portfolio.State, Queue: portfolio.Queue, Scale: 1}
	load.Was = &forecast.Place{Budget: b, State: load.State, Queue: load.Queue}
	return planning.Question{Model: m, Record: r, Alone: load, Many: load, Machines: machines, BringUp: time.Minute,
		Most: most, Seeds: 1}
}

// holds checks what holds of all plans.
func holds(t *testing.T, q planning.Question, p planning.Plan) {
	t.Helper()
	without := 0
	for _, n := range p.Without {
		without += n
	}
	require.LessOrEqual(t, len(p.Simulated)+without, p.Considered)
	require.Equal(t, most*len(q.Machines), p.Considered)
	for i, c := range p.Frontier {
		if i > 0 {
			require.Greater(t, c.Middle, p.Frontier[i-1].Middle)
			require.Less(t, c.Cost, p.Frontier[i-1].Cost)
		}
		for _, other := range p.Simulated {
			require.False(t, other.Middle < c.Middle && other.Cost < c.Cost, "%v is better than %v", other, c)
		}
	}
	for _, c := range p.Simulated {
		require.LessOrEqual(t, c.Low, c.Middle)
		require.LessOrEqual(t, c.Middle, c.High)
		require.LessOrEqual(t, c.Cost, c.Most)
		if !c.Fits {
			continue
		}
		require.NotNil(t, p.Answer)
		if q.Deadline > 0 {
			require.LessOrEqual(t, c.Bound, q.Deadline.Seconds())
			require.LessOrEqual(t, c.High, q.Deadline.Seconds())
			require.LessOrEqual(t, p.Answer.Cost, c.Cost)
		} else {
			require.LessOrEqual(t, c.Most, q.Budget)
			require.LessOrEqual(t, p.Answer.Middle, c.Middle)
		}
	}
	if p.Answer != nil {
		require.True(t, p.Answer.Fits)
	}
}

func TestPlansKeepTheirDeadlinesAndBudgets(t *testing.T) {
	t.Parallel()
	for _, deadline := range []time.Duration{100 * time.Millisecond, 4 * time.Second, 18 * time.Second} {
		for _, scale := range []float64{0.5, 2} {
			t.Run(fmt.Sprintf("%s of %g", deadline, scale), func(t *testing.T) {
				t.Parallel()
				q := question(t, "c7g.large", "c8g.2xlarge")
				q.Deadline, q.Alone.Scale, q.Many.Scale = deadline, scale, scale
				p, err := planning.Answer(t.Context(), q)
				require.NoError(t, err)
				holds(t, q, p)
				if deadline == 100*time.Millisecond {
					require.Nil(t, p.Answer)
					require.Positive(t, p.Without[planning.TooLongChain])
				}
				if deadline == 18*time.Second && scale < 1 {
					require.NotNil(t, p.Answer)
				}
			})
		}
	}
	for _, usd := range []float64{0.0001, 0.02} {
		t.Run(fmt.Sprintf("%g dollars", usd), func(t *testing.T) {
			t.Parallel()
			q := question(t, "c7g.large")
			q.Budget = price.Money(usd * float64(price.Dollar))
			p, err := planning.Answer(t.Context(), q)
			require.NoError(t, err)
			holds(t, q, p)
			require.Equal(t, usd > 0.001, p.Answer != nil)
		})
	}
}

// TestTheSameQuestionHasTheSameAnswer holds the answer for a record that is made up, and that it comes again.
func TestTheSameQuestionHasTheSameAnswer(t *testing.T) {
	t.Parallel()
	q := question(t, "c7g.large", "c7g.xlarge", "c7g.2xlarge")
	q.Deadline = 6 * time.Second
	first, err := planning.Answer(t.Context(), q)
	require.NoError(t, err)
	again, err := planning.Answer(t.Context(), q)
	require.NoError(t, err)
	require.Equal(t, first, again)
	a := first.Answer
	require.NotNil(t, a)
	require.Equal(t, "4 × c7g.large, 3.8 of 5.4 s, $0.0051, up 2 × c7g.xlarge, out none",
		fmt.Sprintf("%d × %s, %.1f of %.1f s, %s, up %s, out %s", a.Count, a.Machine, a.Middle, a.High,
			a.Cost.Text(4), name(first.Up), name(first.Out)))
}

func name(c *planning.Choice) string {
	if c == nil {
		return "none"
	}
	return fmt.Sprintf("%d × %s", c.Count, c.Machine)
}

// TestMoreThanTwiceIsWarnedOf holds that plans beyond what was measured say so, and are wider.
func TestMoreThanTwiceIsWarnedOf(t *testing.T) {
	t.Parallel()
	wide := func(scale float64) (float64, []string) {
		q := question(t, "c7g.large")
		q.Alone.Scale, q.Many.Scale, q.Budget = scale, scale, price.Dollar/100*price.Money(scale)
		p, err := planning.Answer(t.Context(), q)
		require.NoError(t, err)
		for _, c := range p.Simulated {
			if c.Count == 1 {
				return math.Log(c.High / c.Middle), q.Warnings(p)
			}
		}
		return 0, q.Warnings(p)
	}
	known, none := wide(2)
	beyond, warned := wide(8)
	require.NotContains(t, strings.Join(none, " "), "times as large")
	require.Contains(t, strings.Join(warned, " "), "8 times as large as the measured one")
	if known > 0 && beyond > 0 {
		require.Greater(t, beyond, known)
	}
}

func TestMemoryBoundsPlans(t *testing.T) {
	t.Parallel()
	q := question(t, "c7g.large")
	q.Deadline, q.Record.Peak = time.Hour, 4<<30
	p, err := planning.Answer(t.Context(), q)
	require.NoError(t, err)
	require.Nil(t, p.Answer)
	require.Equal(t, map[string]int{planning.TooLittle: most}, p.Without)
}

func TestSpeedsAreThoseThatWereMeasured(t *testing.T) {
	t.Parallel()
	book, err := price.Published()
	require.NoError(t, err)
	machines, err := planning.MachinesOf(book, []string{"c8g.large", "c7g.large"}, "c7g.large",
		map[string]float64{"c8g.large": 1.5})
	require.NoError(t, err)
	require.Equal(t, 1.0, machines[0].Speed)
	require.Equal(t, 1.5, machines[1].Speed)
	took := map[string]float64{}
	for _, m := range machines {
		q := question(t)
		q.Machines, q.Deadline = []planning.Machine{m}, time.Hour
		require.Equal(t, !m.Measured && m.Machine != "c7g.large", strings.Contains(strings.Join(q.Notes(), " "), "Nobody"))
		p, err := planning.Answer(t.Context(), q)
		require.NoError(t, err)
		took[m.Machine] = p.Simulated[0].Middle
	}
	require.Less(t, took["c8g.large"], took["c7g.large"]/1.3)
	q := question(t, "c8g.large")
	require.Contains(t, strings.Join(q.Notes(), " "), "Nobody has measured c8g.large")
}

func TestMachinesAreNamedOrOfTheRunsFamily(t *testing.T) {
	t.Parallel()
	book, err := price.Published()
	require.NoError(t, err)
	family, err := planning.MachinesOf(book, nil, "c7g.large", nil)
	require.NoError(t, err)
	require.Len(t, family, 8)
	for i, m := range family {
		require.Equal(t, "c7g", planning.Family(m.Machine))
		require.True(t, i == 0 || m.Cores > family[i-1].Cores)
	}
	for own, want := range map[string]string{"": "is not known", "rack-8": "rack-8, which has no price"} {
		_, err = planning.MachinesOf(book, nil, own, nil)
		require.ErrorContains(t, err, want)
	}
	_, err = planning.MachinesOf(book, []string{"c7g.lage"}, "", nil)
	require.ErrorContains(t, err, `machine "c7g.lage" has no price`)
}

func TestQuestionsThatMakeNoSense(t *testing.T) {
	t.Parallel()
	q := question(t, "c7g.large")
	_, err := planning.Answer(t.Context(), q)
	require.ErrorContains(t, err, "either a deadline or a budget")
	q.Deadline, q.Record.Workers = time.Hour, 0
	_, err = planning.Answer(t.Context(), q)
	require.ErrorContains(t, err, "run 3 has no time sheets")
}

// TestServicesArePaidAsLongAsMachines holds what is paid: of the same times, machines and services for the run and the
// bring-up.
func TestServicesArePaidAsLongAsMachines(t *testing.T) {
	t.Parallel()
	q := question(t, "c7g.large")
	q.Deadline = time.Hour
	alone, err := planning.Answer(t.Context(), q)
	require.NoError(t, err)
	q.Beside, q.BringUp = 100*price.Dollar, time.Second
	served, err := planning.Answer(t.Context(), q)
	require.NoError(t, err)
	holds(t, q, served)
	seen := map[int]planning.Choice{}
	for _, c := range alone.Simulated {
		seen[c.Count] = c
	}
	line := q.Machines[0].PerHour
	for _, c := range served.Simulated {
		require.Equal(t, seen[c.Count].Middle, c.Middle)
		there := time.Duration(c.Middle*float64(time.Second)) + time.Second
		require.Equal(t, (line.Times(c.Count) + 100*price.Dollar).For(there), c.Cost)
		require.Equal(t, line.Times(c.Count).For(there+59*time.Second), seen[c.Count].Cost)
	}
	require.Greater(t, served.Answer.Count, alone.Answer.Count, "who is quicker pays for less of the services")

	q.Deadline, q.Budget = 0, served.Answer.Most // one machine costs more
	within, err := planning.Answer(t.Context(), q)
	require.NoError(t, err)
	holds(t, q, within)
	require.NotNil(t, within.Answer, "a larger deployment may be within a budget that a smaller one is not")
}

// TestUpAndOutHaveAsManyCores holds what stands beside an answer, what limits each, and what the frontier is.
func TestUpAndOutHaveAsManyCores(t *testing.T) {
	t.Parallel()
	q := question(t, "c7g.medium", "c7g.large", "c7g.xlarge", "c8g.xlarge")
	q.Deadline = 6 * time.Second
	q.Machines = q.Machines[1:] // the answer is not one of the smallest
	p, err := planning.Answer(t.Context(), q)
	require.NoError(t, err)
	holds(t, q, p)
	a := p.Answer
	require.NotNil(t, a)
	require.NotNil(t, p.Up)
	require.Equal(t, a.Cores*a.Count, p.Up.Cores*p.Up.Count)
	require.Equal(t, a.Count, 2*p.Up.Count)
	require.Equal(t, planning.Family(a.Machine), planning.Family(p.Up.Machine))
	require.Positive(t, p.Up.Cost)
	require.Contains(t, p.Up.Limit, "%")
	require.NotEmpty(t, p.Frontier)
	for _, c := range p.Frontier {
		require.Regexp(t, `^[a-z ]+.*\([0-9.]+ %\)$`, c.Limit, "what limits it, and how much of the slots' time that takes")
	}
	q.Machines = append(question(t, "c7g.medium").Machines, q.Machines...)
	q.Deadline = 20 * time.Second
	p, err = planning.Answer(t.Context(), q)
	require.NoError(t, err)
	require.NotNil(t, p.Answer)
	if out := p.Out; out != nil {
		require.Equal(t, p.Answer.Cores*p.Answer.Count, out.Cores*out.Count)
		require.Equal(t, 2*p.Answer.Count, out.Count)
	}
}

// TestMoreThanTwiceTheCoresIsWarnedOf holds the same of cores as of sizes.
func TestMoreThanTwiceTheCoresIsWarnedOf(t *testing.T) {
	t.Parallel()
	q := question(t, "c7g.large")
	q.Deadline = 6 * time.Second
	p, err := planning.Answer(t.Context(), q)
	require.NoError(t, err)
	require.Greater(t, p.Answer.Cores*p.Answer.Count, 4)
	require.Equal(t, []string{"The run was measured on 2 cores, and the answer has 8: beyond twice, intervals are wider."},
		q.Warnings(p))
	for i, c := range p.Simulated {
		wide := math.Log(c.High / c.Middle)
		if c.Cores*c.Count <= 4 {
			require.Empty(t, q.Warnings(planning.Plan{Answer: &c}))
		} else if i > 0 && p.Simulated[i-1].Count < c.Count && p.Simulated[i-1].Cores*p.Simulated[i-1].Count >= 4 {
			require.Greater(t, wide, math.Log(p.Simulated[i-1].High/p.Simulated[i-1].Middle))
		}
	}
}

func TestMachinesThatMakeNoSense(t *testing.T) {
	t.Parallel()
	lines := "version: 1\ndate: 2026\nsource: us\nmachines:\n  bare: {usd_per_hour: 1}\n  blind: {cores: 2, usd_per_hour: 1}\n"
	many := make([]string, 65)
	for i := range many {
		many[i] = fmt.Sprintf("m.%d", i)
		lines += "  " + many[i] + ": {cores: 1, memory: 8GB, usd_per_hour: 0.1}\n"
	}
	book, diags := price.Read("prices.yaml", lines)
	require.NoError(t, diags.Err())
	for _, c := range []struct {
		names  []string
		speeds map[string]float64
		want   string
	}{
		{[]string{""}, nil, "a type of machine has no name"},
		{[]string{"bare"}, nil, "does not say how many cores it has"},
		{many, nil, "there are 65 types of machines; a plan takes 64"},
		{nil, nil, "there are 65 types of machines; a plan takes 64"},
		{[]string{"m.1"}, map[string]float64{"m.2": 2}, "a speed of machine m.2, which the plan does not take: it takes m.1"},
	} {
		_, err := planning.MachinesOf(book, c.names, "m.1", c.speeds)
		require.ErrorContains(t, err, c.want)
	}
	q := question(t, "c7g.large")
	var err error
	q.Machines, err = planning.MachinesOf(book, append(many[:63], "blind"), "", nil)
	require.NoError(t, err)
	require.Contains(t, strings.Join(q.Notes(), " "), "The price of blind does not say how much memory it has")
	q.Deadline = 12 * time.Second
	p, err := planning.Answer(t.Context(), q)
	require.NoError(t, err)
	holds(t, q, p)
	require.Len(t, q.Machines, 64)
}

func TestRunsOfTooManyBatchesAreRefused(t *testing.T) {
	t.Parallel()
	q := question(t, "c7g.large")
	q.Deadline, q.Alone.Batches, q.Many.Batches = time.Hour, 10_000, 10_000
	_, err := planning.Answer(t.Context(), q)
	require.ErrorContains(t, err, "batches on 1 × c7g.large, and plans are made for at most 50000")
}
