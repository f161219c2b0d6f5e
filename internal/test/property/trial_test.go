package property

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"thalweg/internal/app/instance"
	"thalweg/internal/app/runner"
	"thalweg/internal/app/runtime"
	"thalweg/internal/run/gate"
	"thalweg/internal/run/orders"
	"thalweg/internal/store/state"
)

// A trial is a random script that is run, perhaps edited and run again, by
// processes to which things happen: they are killed, stopped for longer than
// their leases, told to end; people decide, pause, stop and repeat meanwhile.
// What it draws in a turn follows from its seed and the number of the turn.
type trial struct {
	seed    uint64
	g       gen // of the turn
	dir     string
	script  *script
	in      *inputs
	variant variant
	tally   *tally

	rounds  int      // that the script is run, with an edit in between
	cells   []string // of a matrix; nil: it is none
	workers int      // beside who runs it
	gc      bool     // beside it
	lease   time.Duration

	round    int
	turn     int
	faults   int // that may still come in this round
	begun    int // runs before the round
	finished int // cells that the last call of the matrix has found complete
	later    string
	rejected bool // somebody has rejected a gate
	hurt     bool // a child was killed, or a task was made to fail

	procs   []*process
	waiting []delayed
	log     []string
}

const (
	trialLease  = time.Second
	faultsMax   = 5
	turnsMax    = 40
	turnTimeout = 3 * time.Minute
	plentyOf    = 8 // processes share the memory
)

func (t *trial) say(format string, args ...any) {
	t.log = append(t.log, fmt.Sprintf("%d.%d ", t.round, t.turn)+fmt.Sprintf(format, args...))
}

// newTrial draws what a trial is.
func newTrial(seed uint64, tally *tally) *trial {
	g := newGen(seed, 21)
	t := &trial{seed: seed, g: g, script: supervised(seed), tally: tally, rounds: pick(g, 1, 1, 1, 1, 2, 3),
		lease: trialLease, workers: pick(g, 0, 0, 0, 1, 1, 2), gc: g.oneIn(3)}
	if g.oneIn(8) {
		t.rounds, t.cells = 1, []string{"a", "b", "c"}[:2+g.IntN(2)]
	}
	v := &t.variant
	v.Slots, v.Threads, v.Cuts, v.Buckets, v.Fused = 1+g.IntN(3), 1+g.IntN(3), pick(g, int64(0), 2, 2, 4),
		g.oneIn(2), g.oneIn(5)
	return t
}

// run does the trial in a directory of its own.
func (t *trial) run(ctx context.Context) (err error) {
	if t.dir, err = os.MkdirTemp("", "chaos"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.end(), os.RemoveAll(t.dir)) }()
	data := filepath.Join(t.dir, "in")
	if t.in, err = writeInputs(newGen(t.seed, 2), t.script, data); err != nil {
		return err
	}
	edits := newGen(t.seed, 22)
	for t.round = range t.rounds {
		var tables map[string][][]any
		if refusedBy(func() { tables = t.script.tables() }) {
			break // what an edit has left cannot be computed
		}
		if err := t.once(ctx, tables); err != nil {
			return fmt.Errorf("round %d: %w", t.round, err)
		}
		if t.round+1 < t.rounds {
			t.tally.add("edited and run again", 1)
			if t.in, err = t.script.disturb(edits, t.in, data, filepath.Join(t.dir, "out")); err != nil {
				return err
			}
		}
	}
	if err := t.end(); err != nil {
		return err
	}
	return t.audit(ctx)
}

// once runs the script as it is now, undisturbed and then disturbed, and compares.
func (t *trial) once(ctx context.Context, tables map[string][][]any) error {
	t.variant.Memory, t.variant.Cores = plentyOf*max(plenty/2, memoryFor(tables)), 2
	if t.variant.Cuts > 0 {
		t.variant.Batch = max(t.in.bytes/t.variant.Cuts, tiny)
	}
	want, err := t.undisturbed(ctx)
	if err != nil {
		return fmt.Errorf("undisturbed: %w", err)
	}
	if err := t.script.check(want, tables); err != nil {
		return fmt.Errorf("undisturbed: %w", err)
	}
	if err := t.disturbed(ctx); err != nil {
		return err
	}
	return t.compare(want)
}

// undisturbed runs the script in one go, with the answers as parameters: it has no gates then.
func (t *trial) undisturbed(ctx context.Context) (_ map[string]string, err error) {
	dir := filepath.Join(t.dir, fmt.Sprint("calm", t.round))
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	home, err := instance.Open(ctx, filepath.Join(dir, "state"), true)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, home.Close()) }()
	at := place{inputs: t.in, out: filepath.Join(dir, "out"), python: filepath.Join(dir, "formulas.py")}
	if err := t.write(dir, at); err != nil {
		return nil, err
	}
	params := t.script.answers()
	sum, err := runner.Run(ctx, home, runner.Options{ScriptPath: filepath.Join(dir, "script.json"), Workspace: "main",
		Process: runtime.Process{MemoryBytes: t.variant.Memory, Cores: 1, Interpreter: "python3"}, Params: params,
		Unattended: true})
	if err == nil && sum.Status != state.Complete {
		err = fmt.Errorf("the run is %s%s", sum.Status, hint(sum))
	}
	if err != nil {
		return nil, err
	}
	return read(at.out)
}

func (t *trial) write(dir string, at place) error {
	text, err := t.script.text(at)
	if err != nil {
		return err
	}
	return errors.Join(os.WriteFile(filepath.Join(dir, "script.json"), []byte(text), 0o644),
		os.WriteFile(at.python, []byte(formulas), 0o644))
}

// compare holds the output folder to what the undisturbed run has written.
func (t *trial) compare(want map[string]string) error {
	dirs := []string{filepath.Join(t.dir, "out")}
	if t.cells != nil {
		dirs = nil
		for _, c := range t.cells {
			dirs = append(dirs, filepath.Join(t.dir, "out", c))
		}
	}
	for _, dir := range dirs {
		got, err := read(dir)
		if err != nil {
			return err
		}
		maps.DeleteFunc(got, func(name, _ string) bool { return strings.HasPrefix(name, ".") }) // looked for at the end
		if a, b := slices.Sorted(maps.Keys(want)), slices.Sorted(maps.Keys(got)); !slices.Equal(a, b) {
			return fmt.Errorf("%s has %v, not %v", dir, b, a)
		}
		for name := range want {
			if got[name] != want[name] {
				return fmt.Errorf("%s has other bytes than the undisturbed run has written:\n%.300q\n%.300q",
					name, got[name], want[name])
			}
		}
	}
	return nil
}

// view is a look at the state.
type view struct {
	runs  []state.Run  // the latest first
	run   state.Run    // the latest
	nodes []state.Node // of it
	asked []gate.Asked
}

func (t *trial) look(ctx context.Context) (v view, err error) {
	if _, err := os.Stat(filepath.Join(t.dir, "state", "state.db")); errors.Is(err, os.ErrNotExist) {
		return v, nil
	}
	home, err := instance.Open(ctx, filepath.Join(t.dir, "state"), true)
	if err != nil {
		return v, err
	}
	defer func() { err = errors.Join(err, home.Close()) }()
	if v.runs, err = state.All(ctx, home.State.Runs, "main"); err != nil || len(v.runs) == 0 {
		return v, err
	}
	for i := range v.runs[:len(v.runs)-t.begun] {
		if v.runs[i], err = home.State.Run(ctx, v.runs[i].RunKey); err != nil {
			return v, err
		}
	}
	v.run = v.runs[0]
	if v.nodes, err = home.State.Nodes(ctx, v.run.RunKey); err == nil {
		v.asked, err = gate.Waiting(ctx, home.State, "main", time.Now())
	}
	return v, err
}

func (v view) done() bool {
	return v.run.Status == state.Complete &&
		!slices.ContainsFunc(v.nodes, func(n state.Node) bool { return n.Status != state.Succeeded })
}

// disturbed runs the script to its end, whatever happens.
func (t *trial) disturbed(ctx context.Context) error {
	out := filepath.Join(t.dir, "out")
	if t.cells != nil {
		out = filepath.Join(out, "{cell}")
	}
	if err := t.write(t.dir, place{inputs: t.in, out: out, python: filepath.Join(t.dir, "formulas.py")}); err != nil {
		return err
	}
	v, err := t.look(ctx)
	if err != nil {
		return err
	}
	plan := newGen(t.seed, 30+uint64(t.round))
	t.begun, t.finished, t.faults, t.later = len(v.runs), 0, 1+plan.IntN(faultsMax), ""
	if t.cells == nil {
		t.later = pick(plan, "", "", "", "redo", "redo", "invalidate")
	}
	for t.turn = 0; ; t.turn++ {
		t.g = newGen(t.seed, uint64(1000*(t.round+1)+t.turn))
		if v, err = t.look(ctx); err != nil {
			return fmt.Errorf("look at the state: %w", err)
		}
		if t.turn == turnsMax {
			return fmt.Errorf("it does not end: run %d is %s", v.run.Run, v.run.Status)
		}
		if len(v.runs)-t.begun > max(1, len(t.cells)*turnsMax) {
			return fmt.Errorf("there are %d runs, and %d before the round", len(v.runs), t.begun)
		}
		over := t.cells == nil && len(v.runs) > t.begun && v.done() || t.cells != nil && t.finished == len(t.cells)
		if over && t.later == "" {
			return nil
		}
		next, err := t.next(v, over)
		if err != nil {
			return err
		}
		if t.faults > 0 {
			t.start(next, true)
			t.company(v, next)
			err = t.attend(ctx)
		} else { // nothing happens any more: it is done without a process of its own
			err = t.here(ctx, next)
		}
		if err != nil {
			return err
		}
	}
}

// next returns the deed that has to follow so that the round ends.
func (t *trial) next(v view, over bool) (deed, error) {
	d := deed{Run: v.run.Run, Reuse: true, Pinned: t.g.oneIn(2)}
	for _, run := range v.runs[:len(v.runs)-t.begun] {
		if err := t.judge(run); err != nil {
			return d, err
		}
	}
	switch {
	case over:
		return t.afterwards(v, d), nil
	case len(v.asked) > 0 && (t.cells != nil || state.Waits(v.nodes)):
		return t.decision(v), nil
	case t.cells != nil:
		d.Do, d.Pinned, d.Cells = "matrix", false, t.cells
	case len(v.runs) == t.begun:
		d.Do, d.Run, d.Pinned, d.Token = "run", 0, false, fmt.Sprint("round ", t.round)
	case v.run.Status == state.Failed && t.g.oneIn(2):
		d.Do = "retry"
	default:
		d.Do = "resume"
	}
	return d, nil
}

// judge says whether a run that has failed may have.
func (t *trial) judge(run state.Run) error {
	switch f := run.Failure; {
	case run.Status != state.Failed:
		return nil
	case f == nil:
		return fmt.Errorf("run %d has failed without a word", run.Run)
	case strings.HasPrefix(f.Node, gate.Prefix) && t.rejected, f.Kind == "environment" && t.hurt:
		return nil
	}
	return fmt.Errorf("run %d has failed: %+v", run.Run, *run.Failure)
}

// afterwards does something of a complete run again.
func (t *trial) afterwards(v view, d deed) deed {
	t.faults += t.g.IntN(3)
	n := v.nodes[t.g.IntN(len(v.nodes))]
	if d.Do, t.later = t.later, ""; d.Do == "invalidate" && !gate.Is(n.NodeSpec) {
		d.Node = n.Name
		return d
	}
	d.Do = "retry"
	if n.BatchesTotal == 0 || t.g.oneIn(2) {
		d.Again.Nodes = []string{n.Name}
		return d
	}
	from := t.g.IntN(n.BatchesTotal)
	d.Again.Batches = []orders.Batches{{Node: n.Name, From: from, To: from + t.g.IntN(min(2, n.BatchesTotal-from))}}
	return d
}

// decision is about one of the gates that wait.
func (t *trial) decision(v view) deed {
	asked := pick(t.g, v.asked...)
	d := deed{Do: "decide", Run: asked.Run, Gate: asked.Record.Gate, Approve: t.faults == 0 || !t.g.oneIn(5)}
	if !d.Approve {
		t.rejected = true
		t.faults--
		return d
	}
	d.Answers = map[string]string{}
	for _, q := range asked.Record.Answers {
		d.Answers[q.Name] = t.script.answers()[q.Name]
	}
	return d
}

// company starts deeds beside the one that has to be done.
func (t *trial) company(v view, next deed) {
	moment := func() time.Duration {
		return time.Duration(t.g.IntN(pick(t.g, 50, 200, 600))) * time.Millisecond
	}
	alive := 0
	for _, p := range t.procs {
		if p.deed.Do == "worker" && !p.over() {
			alive++
		}
	}
	if alive < t.workers {
		t.soon(moment(), deed{Do: "worker"}, t.faults > 0)
	}
	if t.gc && t.g.oneIn(2) {
		d := deed{Do: "gc", Times: pick(t.g, 1, 5, 30)}
		if t.cells == nil {
			d.Keep = t.g.IntN(2)
		}
		t.soon(moment(), d, t.faults > 0)
	}
	if next.Do == "decide" && t.g.oneIn(3) { // two people at once
		d := next
		if d.Approve = next.Approve && t.g.oneIn(2); !d.Approve {
			d.Answers, t.rejected = nil, true
		}
		t.faults--
		t.soon(moment()/4, d, true)
	}
	if len(v.runs) > t.begun && next.Do != "decide" {
		if t.g.oneIn(3) {
			do := "stop"
			if t.cells == nil && t.g.oneIn(2) {
				do = "pause"
			}
			t.soon(moment(), deed{Do: do, Run: v.run.Run}, true)
		}
		if t.cells == nil && t.g.oneIn(5) { // two that drive it
			t.soon(moment(), deed{Do: "resume", Run: v.run.Run, Reuse: true}, true)
		}
	}
}
