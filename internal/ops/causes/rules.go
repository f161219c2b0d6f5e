package causes

import (
	"fmt"
	"strings"
	"time"

	"thalweg/internal/base/format"
	"thalweg/internal/ops/history"
	"thalweg/internal/run/sheet"
	"thalweg/internal/store/state"
)

// Thresholds that hold for all causes.
const (
	// GainLeast is the least part of the run's time that is to be gained without a cause: less is within the spread
	// of repeats of a run.
	GainLeast = 0.1
	// SlotsLeast is the least part of a node's time of slots that goes to free slots before anything is said of them:
	// that of history.SkewShare.
	SlotsLeast = history.SkewShare
)

// rule is a cause: what is measured, from which part of a node's time of slots on it is one, and what is done about it.
type rule struct {
	name   string // in JSON
	words  string // for people
	least  float64
	source string // of the threshold
	find   func(a *at) finding
	do     string
}

// finding is what a rule has measured of a node.
type finding struct {
	seconds  float64 // of slots
	gain     float64 // seconds of the run at most
	unknown  bool    // not measured
	evidence string
}

// rules are the causes, in the order of tables in which nothing else decides.
var rules = []rule{
	{"few_batches", "too few batches", SlotsLeast, "as why has it of a long batch", (*at).few,
		"Cut its input into more batches: smaller files, or a smaller batch size; or use fewer slots."},
	{"last_batches", "last batches", SlotsLeast, "as why has it of a long batch", (*at).last,
		"Cut its input into smaller batches, so that the last ones end together."},
	{"skew", "a batch far longer than others", SlotsLeast, "as why has it of a long batch", (*at).skew,
		"Look at what that batch reads: one large file or group of rows can often be cut."},
	{"handover", "free slots without a batch", SlotsLeast, "as why has it of a long batch", (*at).handover,
		"Put small nodes together, or use fewer slots; with workers, have a broker tell them of batches."},
	{"parts", "parts and files on their way", history.StageShare, "as why has it of stages", (*at).parts,
		"Bring workers nearer to the parts and files, give them a cache, or use a faster store or network."},
	{"state", "database of the state", history.WaitShare, "as why has it of waits for memory", (*at).state,
		"Bring workers nearer to the state, or cut fewer and larger batches."},
	{"claims_refused", "claims refused", SlotsLeast, "as why has it of a long batch", (*at).refused,
		"Cut larger batches, or let fewer workers with more slots each take them."},
	{"memory", "memory", history.WaitShare, "as why has it of waits for memory", (*at).memory,
		"Give workers more memory, fewer slots, or smaller batches."},
	{"collector", "Go's garbage collector", GainLeast, "of workers a quarter, half of where Go limits it", (*at).collector,
		"Give workers more memory, or fewer slots: the part of it that Go has is used up."},
	{"python", "Python that waits", history.StageShare, "as why has it of stages", (*at).python,
		"Its code sleeps or waits for something else: let it ask less often, or for many rows at once."},
	{"others_load", "load of other programs", history.WaitShare, "as why has it of waits for memory", (*at).load,
		"Take other programs off the machine, or give the worker fewer slots."},
}

// at is a node of a run, with all that rules look at.
type at struct {
	*run
	n *Node
	d divided
}

// run is what is derived from the facts of a run, once.
type run struct {
	f       *Facts
	elapsed float64
	going   float64 // of it, without the times in which the run stood still
	slots   float64 // on average
	batches float64 // of all nodes
	busy    float64 // seconds of slots in which Python did not sleep
	shares  sheet.Times
	cpu     float64 // seconds of processors: of all
	own, gc float64 // of the workers themselves, and of their collectors
	childGC float64 // of collectors of slots that are processes
	loads   map[string]load
}

// derive sums up the facts of a run.
func derive(f *Facts, of []divided, stood float64) *run {
	r := &run{f: f, elapsed: f.elapsed(), going: max(f.elapsed()-stood, 0), loads: loadsOf(f)}
	for _, w := range f.Workers {
		for s := range sheet.Count {
			r.shares[s] += w.Time(s)
		}
		r.cpu, r.own = r.cpu+w.CPU+w.ChildrenCPU, r.own+w.CPU
		r.gc, r.childGC = r.gc+w.GC, r.childGC+w.ChildrenGC
	}
	if r.elapsed > 0 {
		r.slots = r.shares.Sum().Seconds() / r.elapsed
	}
	for i := range f.Nodes {
		a := at{r, &f.Nodes[i], of[i]}
		r.batches += float64(f.Nodes[i].Tally.Batches)
		r.busy += a.awake()
	}
	return r
}

// awake is the time of slots in which the node's Python did not sleep.
func (a *at) awake() float64 {
	asleep, _ := a.asleep()
	return max(a.d.busy-asleep, 0)
}

// idle is a finding of free slots: what they could do is shared by all of them.
func (a *at) idle(seconds float64, format string, args ...any) finding {
	if a.slots <= 0 {
		return finding{unknown: true}
	}
	if seconds <= 0 {
		return finding{}
	}
	return finding{seconds: seconds, gain: seconds / a.slots, evidence: fmt.Sprintf(format, args...)}
}

// within is a finding of a part of the time in which batches were executed.
func (a *at) within(seconds float64, format string, args ...any) finding {
	seconds = min(seconds, a.d.busy)
	if seconds <= 0 {
		return finding{}
	}
	return finding{seconds: seconds, gain: seconds / a.d.busy * a.d.window, evidence: fmt.Sprintf(format, args...)}
}

func (a *at) few() finding {
	return a.idle(a.d.few, "%s for %.3g slots", format.Counted(int64(a.n.Planned), "batch", "batches"), a.slots)
}

func (a *at) last() finding {
	rounds := 0.0
	if a.slots > 0 {
		rounds = float64(a.n.Planned) / a.slots
	}
	return a.idle(a.d.last, "%.1f batches for each slot", rounds)
}

func (a *at) skew() finding {
	if len(a.n.Tally.Longest) == 0 {
		return a.idle(a.d.skew, "")
	}
	l, middle := a.n.Tally.Longest[0], a.n.Tally.Median()
	return a.idle(a.d.skew, "batch %d took %s, the middle one %s", l.Batch, format.Span(l.Stats.Elapsed),
		format.Span(middle))
}

// handover is what is left of it without the calls that took place meanwhile.
func (a *at) handover() finding {
	calls := a.ofBatches(a.shares[sheet.Claims] + a.shares[sheet.Commits] + a.shares[sheet.Refused])
	return a.idle(max(a.d.handover-calls, 0), "nothing was handed out, or nobody had taken it yet")
}

// ofBatches is the node's part of what goes by the number of batches.
func (a *at) ofBatches(d time.Duration) float64 {
	if a.batches == 0 {
		return 0
	}
	return d.Seconds() * float64(a.n.Tally.Batches) / a.batches
}

func (a *at) parts() finding {
	s := a.n.Tally.Stats
	return a.within((s.Read+s.Write+s.Commit).Seconds()*a.scale(), "%s read, %s written and shown",
		format.Span(s.Read), format.Span(s.Write+s.Commit))
}

// scale is what a second of a stage is of slots: several interpreters of a batch count at once.
func (a *at) scale() float64 {
	s := a.n.Tally.Stats
	known := s.Wait + s.Read + s.Engine + s.Python + s.Write + s.Commit
	if took := s.Elapsed - s.Turn; known > took && took > 0 {
		return float64(took) / float64(known)
	}
	return 1
}

func (a *at) state() finding {
	if a.slots <= 0 || a.batches == 0 {
		return finding{unknown: true}
	}
	each := time.Duration(float64(a.shares[sheet.Claims]+a.shares[sheet.Commits]) / a.batches)
	return a.idle(a.ofBatches(a.shares[sheet.Claims]+a.shares[sheet.Commits]),
		"claim and commit together took %s on average", each.Round(10*time.Microsecond))
}

func (a *at) refused() finding {
	return a.idle(a.ofBatches(a.shares[sheet.Refused]), "of the run's claims")
}

// memory is at most what waited for it, and what batches did in pieces or through files for lack of it.
func (a *at) memory() finding {
	s := a.n.Tally.Stats
	seconds := s.Wait.Seconds()
	did := []string{format.Span(s.Wait) + " waited"}
	batches := float64(max(a.n.Tally.Batches, 1))
	if n := s.Counters[state.CounterPieces]; n > 0 {
		did = append(did, format.Counted(n, "piece", "pieces")+" one after the other")
		cut := min(float64(n)/2/batches, 1)
		seconds += s.Engine.Seconds() * cut * (1 - 1/max(2, float64(n)/batches))
	}
	if n := s.Counters[state.CounterSpilled]; n > 0 {
		did = append(did, format.Size(n)+" in spill files")
		seconds += s.Engine.Seconds() * float64(n) / float64(n+s.BytesIn+s.BytesOut)
	}
	if n := s.Counters[state.CounterAlone]; n > 0 {
		did = append(did, format.Counted(n, "batch", "batches")+" alone")
	}
	return a.within(seconds*a.scale(), "%s", strings.Join(did, ", "))
}

// CollectorShare is the least part of workers' own processor time that a collector takes for want of memory: half of
// the 50 % to which Go limits it.
const CollectorShare = 0.25

// collector divides what collectors took among the nodes by their time. It is one for the whole run.
func (a *at) collector() finding {
	if a.own <= 0 || a.busy <= 0 {
		return finding{unknown: true}
	}
	gc := 0.0
	if a.gc >= CollectorShare*a.own {
		gc += a.gc
	}
	slots := a.cpu - a.own
	if a.childGC >= CollectorShare*slots {
		gc += a.childGC
	}
	f := a.within(gc*a.awake()/a.busy, "")
	f.evidence = fmt.Sprintf("%.0f %% of the workers' own processor time", 100*a.gc/a.own)
	if a.childGC > 0 && slots > 0 {
		f.evidence += fmt.Sprintf(", %.0f %% of their processes'", 100*a.childGC/slots)
	}
	return f
}

// asleep is the time of slots in which interpreters neither had a processor nor waited for one; ok is false if it is
// not measured.
func (a *at) asleep() (seconds float64, ok bool) {
	s := a.n.Tally.Stats
	cpu := time.Duration(s.Counters[state.CounterPythonCPU]) * time.Microsecond
	switch {
	case s.Python == 0:
		return 0, true
	case cpu == 0:
		return 0, false
	}
	starved := time.Duration(s.Counters[state.CounterPythonStarved]) * time.Microsecond
	seconds = max(s.Python-cpu-starved, 0).Seconds() * a.scale()
	return max(seconds-a.loads[a.n.Name].seconds, 0), true
}

func (a *at) python() finding {
	seconds, ok := a.asleep()
	if !ok {
		return finding{unknown: true}
	}
	s := a.n.Tally.Stats
	cpu := time.Duration(s.Counters[state.CounterPythonCPU]) * time.Microsecond
	starved := time.Duration(s.Counters[state.CounterPythonStarved]) * time.Microsecond
	return a.within(seconds, "%s in Python, %s of processors, %s of waits for one", format.Span(s.Python),
		format.Span(cpu),
		format.Span(starved))
}

func (a *at) load() finding {
	l, ok := a.loads[a.n.Name]
	if !ok {
		return finding{unknown: true}
	}
	return a.within(l.seconds, "%s", l.evidence)
}
