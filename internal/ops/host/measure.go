package host

import (
	"context"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"thalweg/internal/base/budget"
	"thalweg/internal/base/fault"
	"thalweg/internal/base/progress"
)

// Version is that of the form of a Result.
const Version = 1

// Options say what is measured, and for how long.
type Options struct {
	Root    string        // below which the kernel's files are; "": /
	Machine string        // type; "": the firmware's
	Load    time.Duration // of full load; everything else takes a share of it
	Dir     string        // whose disk is measured; absolute
	Peer    *Other        // nil: only the loopback is measured
}

// Result is what was measured of a machine.
type Result struct {
	Version      int               `json:"version"`
	Host         string            `json:"host"`
	Machine      string            `json:"machine"` // type; "": not known
	Began        time.Time         `json:"began"`
	Calculation  int               `json:"calculation"`          // whose rounds are counted
	CoreSpeed    float64           `json:"core_speed,omitempty"` // times that of a core of Reference
	Reference    string            `json:"core_speed_of,omitempty"`
	Facts        Facts             `json:"facts"`
	Figures      map[string]Figure `json:"figures"`
	Load         Load              `json:"load"`
	Interrupts   []Interrupts      `json:"interrupts"`
	Disk         Disk              `json:"disk"`
	Power        []Power           `json:"power,omitempty"`
	Temperatures []Temperature     `json:"temperatures,omitempty"`
	Rules        []Rule            `json:"rules"`
	Unseen       []Unseen          `json:"unseen"`
}

// Figure is something that was measured, each time that it was. It is above 0.
type Figure struct {
	Value   float64   `json:"value"` // mean
	Unit    string    `json:"unit"`
	Repeats []float64 `json:"repeats"`
}

// Unseen is what could not be seen or measured.
type Unseen struct {
	What string `json:"what"`
	Why  string `json:"why"`
}

// measuring is a measurement in progress.
type measuring struct {
	Result
	root       tree
	load       time.Duration
	each       time.Duration // of one repeat of anything else
	repeats    int
	threads    int
	memoryMost int64
	peer       *Other
	sink       uint64 // keeps results alive
}

const (
	eachPart  = 60 // of the load, one of so many
	eachLeast = 5 * time.Millisecond
	eachMost  = time.Second
	repeats   = 3
)

// Measure measures the machine.
func Measure(ctx context.Context, o Options) (Result, error) {
	m := newMeasuring(o)
	m.look()
	if err := m.ready(ctx, o.Dir); err != nil {
		return Result{}, err
	}
	for _, step := range []struct {
		name string
		do   func(context.Context) error
	}{
		{"clock", m.clock}, {"full load", m.fullLoad}, {"memory", m.memory},
		{"disk", func(ctx context.Context) error { return m.disk(ctx, o.Dir) }}, {"loopback", m.loopback}, {"peer", m.toPeer},
	} {
		m.tell(ctx, step.name, 0, 0)
		if err := ctx.Err(); err != nil {
			return Result{}, err
		}
		if err := step.do(ctx); err != nil {
			return Result{}, err
		}
	}
	m.Facts.Limits.Throttled = m.root.throttled() // the load is what a quota holds back
	m.judge()
	return m.Result, nil
}

func newMeasuring(o Options) *measuring {
	m := &measuring{root: tree(o.Root), load: o.Load, repeats: repeats, threads: threadsOf(), peer: o.Peer}
	if m.root == "" {
		m.root = "/"
	}
	m.each = min(max(o.Load/eachPart, eachLeast), eachMost)
	m.Version, m.Calculation, m.Began, m.Figures = Version, Calculation, time.Now().UTC(), map[string]Figure{}
	m.Host, _ = os.Hostname() // "" if it has none
	m.memoryMost = min(memoryMost, budget.MachineBytes()/memoryPart)
	if free := tree("/").meminfo("MemAvailable"); free > 0 {
		m.memoryMost = min(m.memoryMost, free/memoryPart)
	}
	if o.Load < time.Duration(eachPart)*eachMost/6 { // a short look: most of it would go to preparing
		m.memoryMost = min(m.memoryMost, memoryLeast)
	}
	if m.Machine = o.Machine; m.Machine == "" {
		m.Machine = m.root.guest().machineType()
	}
	return m
}

// ready finds out whether the disk and the other side can be measured, before minutes are spent.
func (m *measuring) ready(ctx context.Context, dir string) error {
	f, err := scratch(dir)
	if err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return &fault.Error{Kind: fault.Environment, Message: "close a file in " + dir, Err: err}
	}
	if m.peer == nil {
		return nil
	}
	_, release, err := m.peer.dial(ctx, wantEcho, m.each)
	if err != nil {
		return m.peer.failed(ctx, "reach", err)
	}
	release()
	return nil
}

// toPeer measures the network to another machine.
func (m *measuring) toPeer(ctx context.Context) error {
	if m.peer == nil {
		m.miss("network to another machine", "none was named with {{set peer}}")
		return nil
	}
	return m.network(ctx, "peer", *m.peer)
}

// add notes a figure; what took no time at all has none.
func (m *measuring) add(name, unit string, values ...float64) {
	values = slices.DeleteFunc(values, func(v float64) bool { return !(v > 0) })
	if len(values) == 0 {
		return
	}
	f := Figure{Unit: unit, Repeats: values}
	for _, v := range values {
		f.Value += v / float64(len(values))
	}
	m.Figures[name] = f
}

func (m *measuring) miss(what, why string) { m.Unseen = append(m.Unseen, Unseen{what, why}) }

// tell says how far it is.
func (m *measuring) tell(ctx context.Context, phase string, done, of time.Duration) {
	p := progress.Progress{Phase: phase}
	if of > 0 {
		p.Done, p.Of, p.Unit = int64(done/time.Second), int64(of/time.Second), "s"
	}
	progress.Tell(ctx, p)
}

// Against sets the speed of a core beside that of another host, on which runs were carried out: both under full load.
func (r *Result) Against(other Result, name string) error {
	wrong := func(text string, args ...any) error {
		f := fault.New(fault.Script, text, args...)
		f.Place.File, f.Hint = name, "it is what {{do bench-host json=}} prints"
		return f
	}
	const rate = "core_rate_loaded"
	switch was := other.Figures[rate].Value; {
	case other.Version != Version:
		return wrong("it is of form %d, and this program knows form %d", other.Version, Version)
	case other.Calculation != Calculation:
		return wrong("its rates are of calculation %d, and this program has calculation %d: they cannot be compared",
			other.Calculation, Calculation)
	case !(was > 0):
		return wrong("it has no figure %s", rate)
	default:
		r.CoreSpeed = r.Figures[rate].Value / was
		r.Reference = strings.TrimSpace(other.Host + " " + other.Machine)
		if other.Facts.Compiler != r.Facts.Compiler {
			r.Unseen = append(r.Unseen, Unseen{"core_speed by one compiler", "the reference was measured by a program of " +
				other.Facts.Compiler + ", and this host by one of " + r.Facts.Compiler})
		}
	}
	return nil
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
