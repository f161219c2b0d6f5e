package main

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"thalweg/internal/app"
	"thalweg/internal/app/view"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
)

// runView shows a run while it works: bars on a terminal, lines elsewhere,
// JSON events when asked.
type runView struct {
	app  *console
	json bool

	mu      sync.Mutex
	nodes   map[string]*nodeView
	names   int // width of the longest name
	started time.Time
	bars    *mpb.Progress
	closed  bool
}

// nodeView holds the progress of a node so far.
type nodeView struct {
	name     string
	begun    time.Time
	ended    time.Time
	planned  bool
	batches  int
	done     int
	inFlight int
	rows     int64
	bytes    int64
	failed   map[int]bool // batches that did
	waits    string       // what it waits for, while it does
	copying  string       // how far its inputs are copied, while they are
	copyTold time.Time    // when that was printed
	from     int64        // the run whose rows it has; 0: its own
	bar      *mpb.Bar
}

func newRunView(a *console, asJSON bool) *runView {
	return &runView{app: a, json: asJSON, nodes: map[string]*nodeView{}, started: time.Now()}
}

// begin tells about a run that is about to work.
func (v *runView) begin(s app.Started) {
	v.mu.Lock()
	names := make([]string, len(s.Nodes))
	for i, n := range s.Nodes {
		names[i] = n.Name
		v.names = max(v.names, len(n.Name))
		if v.nodes[n.Name] = (&nodeView{name: n.Name}); !s.Remote {
			// all that happened is told of those that others work on
			v.nodes[n.Name] = &nodeView{name: n.Name, batches: n.BatchesTotal, done: n.BatchesDone, rows: n.RowsOut,
				bytes: n.BytesOut, planned: n.BatchesTotal > 0}
		}
	}
	v.mu.Unlock()
	if v.json {
		v.event(view.RunStarted{Event: "run_started", Workspace: s.Key.Workspace, Run: s.Key.Run,
			Resumed: s.Resumed, Nodes: names, Budget: s.Budget})
		return
	}
	v.app.printDiagnostics(s.Warnings)
	verb := "started"
	if s.Resumed {
		verb = "resumed"
	}
	if s.Remote {
		verb = map[bool]string{false: "submitted", true: "followed"}[s.Resumed]
		fmt.Fprintf(v.app.stderr, "run %d %s in workspace %s: %s\n", s.Key.Run, verb, s.Key.Workspace,
			countNodes(len(s.Nodes)))
		if v.app.terminal {
			v.openBars(s.Nodes)
		}
		return
	}
	fmt.Fprintf(v.app.stderr, "run %d %s in workspace %s: %s, %s, %s of memory\n", s.Key.Run, verb, s.Key.Workspace,
		countNodes(len(s.Nodes)), counted(s.Budget.Slots, "slot", "slots"), size(s.Budget.TotalBytes))
	if v.app.terminal {
		v.openBars(s.Nodes)
	}
}

// openBars makes a bar for each node.
func (v *runView) openBars(nodes []view.Node) {
	// The bars' goroutines call line, which locks: nothing of theirs is called
	// while the lock is held.
	bars := mpb.New(mpb.WithOutput(v.app.screen), mpb.WithAutoRefresh(), mpb.WithRefreshRate(150*time.Millisecond))
	for _, n := range nodes {
		nv := v.nodes[n.Name]
		bar := bars.New(int64(max(n.BatchesTotal, 1)),
			mpb.BarStyle().Lbound(" ").Filler("━").Tip("━").Padding("─").Rbound(" "),
			mpb.BarWidth(20),
			mpb.PrependDecorators(decor.Name(fmt.Sprintf("%-*s", v.names, n.Name))),
			mpb.AppendDecorators(decor.Any(func(decor.Statistics) string { return v.line(nv) })))
		bar.SetCurrent(int64(n.BatchesDone))
		v.mu.Lock()
		nv.bar = bar
		v.mu.Unlock()
	}
	v.mu.Lock()
	v.bars = bars
	v.mu.Unlock()
}

// line is the text behind a node's bar.
func (v *runView) line(n *nodeView) string {
	v.mu.Lock()
	defer v.mu.Unlock()
	switch {
	case len(n.failed) > 0:
		return v.app.mark("failed", red)
	case n.waits != "":
		return v.app.mark(n.waits, yellow)
	case view.IsGate(n.name) && !n.ended.IsZero():
		return "passed"
	case !n.planned && n.copying != "":
		return n.copying
	case !n.planned:
		return "waiting"
	case n.from != 0:
		return fmt.Sprintf("taken over from run %d", n.from)
	}
	s := fmt.Sprintf("%d/%s  %s  %s  %s", n.done, counted(n.batches, "batch", "batches"),
		countRows(n.rows), size(n.bytes), span(n.elapsed()))
	if rest := n.rest(); rest > 0 {
		s += "  about " + span(rest) + " left"
	}
	return s
}

func (n *nodeView) elapsed() time.Duration {
	switch {
	case n.begun.IsZero():
		return 0
	case n.ended.IsZero():
		return time.Since(n.begun)
	}
	return n.ended.Sub(n.begun)
}

// rest estimates the time until the node is done from its finished batches.
func (n *nodeView) rest() time.Duration {
	if n.done == 0 || n.done >= n.batches || n.begun.IsZero() {
		return 0
	}
	return time.Duration(float64(n.elapsed()) / float64(n.done) * float64(n.batches-n.done))
}

// observe takes the worker's events.
func (v *runView) observe(e view.Event) {
	v.mu.Lock()
	if v.json {
		v.observeJSON(e)
		v.mu.Unlock()
		return
	}
	n := v.nodes[e.Node]
	if n == nil {
		v.mu.Unlock()
		return
	}
	n.apply(e)
	bar, done := n.bar, n.done
	if bar == nil {
		v.printLine(e, n)
	}
	v.mu.Unlock()
	if bar == nil {
		return
	}
	if e.Kind == view.NodePlanned {
		bar.SetTotal(int64(max(e.Batches, 1)), false)
	}
	bar.SetCurrent(int64(done))
}

func (v *runView) observeJSON(e view.Event) {
	if e.Kind == view.RunEnded {
		return // the summary follows
	}
	out := view.RunEvent{Event: e.Kind, Time: e.Time, Node: e.Node, Batch: e.Batch, Attempt: e.Attempt,
		Batches: e.Batches, Failure: e.Failure, From: view.ReusedFromOf(e.ReusedFrom), Gate: e.Gate, Copying: e.Copying}
	if e.Kind == view.BatchFinished || e.Kind == view.NodeFinished {
		out.Stats = &e.Stats
	}
	if len(e.Checks) > 0 {
		out.Checks = view.ChecksOf(e.Node, e.Checks)
	}
	v.event(out)
}

func (v *runView) event(e any) {
	_ = printJSON(v.app.stdout, e) // the reader is gone when this fails; the run goes on
}

func (n *nodeView) apply(e view.Event) {
	switch e.Kind {
	case view.NodePlanned:
		n.planned, n.batches, n.waits = true, e.Batches, ""
		if n.from = 0; e.ReusedFrom != nil {
			n.from = e.ReusedFrom.Run
		}
	case view.NodeCopying:
		n.copying = fmt.Sprintf("copying inputs: %d of %s, %s", e.Copying.FilesDone,
			counted(e.Copying.Files, "file", "files"), size(e.Copying.Bytes))
	case view.NodeWaiting:
		n.waits = "waits for people"
		if e.Gate != nil {
			n.waits = "waits for " + whoDecides(*e.Gate)
		}
	case view.BatchStarted:
		if n.begun.IsZero() {
			n.begun = e.Time
		}
		n.inFlight++
		delete(n.failed, e.Batch) // it is done again
	case view.BatchFinished:
		n.inFlight--
		n.done++
		n.rows += e.Stats.RowsOut
		n.bytes += e.Stats.BytesOut
	case view.BatchFailed:
		n.inFlight--
		if n.failed == nil {
			n.failed = map[int]bool{}
		}
		n.failed[e.Batch] = true
	case view.BatchReleased, view.BatchRetried, view.BatchLost:
		n.inFlight--
	case view.NodeFinished:
		n.ended = e.Time
	}
}

// copyingPrinted is the time between two lines of a log about the progress of copying.
const copyingPrinted = 10 * time.Second

// printLine is the form for logs: a line when a node is done or fails, and
// every so many batches of a long one.
func (v *runView) printLine(e view.Event, n *nodeView) {
	for _, c := range view.ChecksOf(e.Node, e.Checks) {
		if c.Status == view.CheckWarned {
			fmt.Fprintf(v.app.stderr, "%8s  %-*s  check %s: %s\n", span(time.Since(v.started)), v.names, n.name,
				c.Name, c.Message)
		}
	}
	switch e.Kind {
	case view.NodeCopying:
		if e.Time.Sub(n.copyTold) >= copyingPrinted {
			n.copyTold = e.Time
			fmt.Fprintf(v.app.stderr, "%8s  %-*s  %s\n", span(time.Since(v.started)), v.names, n.name, n.copying)
		}
	case view.NodeWaiting:
		fmt.Fprintf(v.app.stderr, "%8s  %-*s  %s\n", span(time.Since(v.started)), v.names, n.name, n.waits)
	case view.NodeFinished:
		if view.IsGate(n.name) {
			fmt.Fprintf(v.app.stderr, "%8s  %-*s  passed\n", span(time.Since(v.started)), v.names, n.name)
			return
		}
		if e.ReusedFrom != nil {
			fmt.Fprintf(v.app.stderr, "%8s  %-*s  taken over from run %d\n", span(time.Since(v.started)),
				v.names, n.name, e.ReusedFrom.Run)
			return
		}
		fmt.Fprintf(v.app.stderr, "%8s  %-*s  done: %s in, %s out, %s, %s in %s\n", span(time.Since(v.started)),
			v.names, n.name,
			countRows(e.Stats.RowsIn), countRows(e.Stats.RowsOut), size(e.Stats.BytesOut),
			counted(n.batches, "batch", "batches"), span(n.elapsed()))
	case view.BatchFailed:
		fmt.Fprintf(v.app.stderr, "%8s  %-*s  batch %d failed\n", span(time.Since(v.started)), v.names, n.name, e.Batch)
	case view.BatchRetried:
		fmt.Fprintf(v.app.stderr, "%8s  %-*s  batch %d is tried again: %s\n", span(time.Since(v.started)),
			v.names, n.name, e.Batch, plain(e.Failure.Message))
	case view.BatchLost:
		fmt.Fprintf(v.app.stderr, "%8s  %-*s  batch %d: its worker went away; another one does it again\n",
			span(time.Since(v.started)), v.names, n.name, e.Batch)
	case view.BatchFinished:
		if step := max(n.batches/5, 1); n.batches >= 10 && n.done%step == 0 && n.done < n.batches {
			fmt.Fprintf(v.app.stderr, "%8s  %-*s  %d/%s, %s\n", span(time.Since(v.started)), v.names, n.name, n.done,
				counted(n.batches, "batch", "batches"), countRows(n.rows))
		}
	}
}

// say tells something beside the nodes: above the bars, where there are some.
func (v *runView) say(tell func(io.Writer)) {
	v.mu.Lock()
	bars := v.bars
	if v.closed {
		bars = nil
	}
	v.mu.Unlock()
	if bars == nil {
		tell(v.app.stderr)
		return
	}
	var text strings.Builder
	tell(&text)
	_, _ = io.WriteString(bars, v.app.known.Text(text.String())) // the run goes on if nobody can read it
}

// pause ends the bars until the run goes on.
func (v *runView) pause() {
	v.close()
	v.mu.Lock()
	defer v.mu.Unlock()
	v.bars, v.closed = nil, false
}

// close ends the bars and leaves their last state on the screen.
func (v *runView) close() {
	v.mu.Lock()
	bars, closed := v.bars, v.closed
	v.closed = true
	var open []*mpb.Bar
	for _, n := range v.nodes {
		if n.bar != nil {
			open = append(open, n.bar)
		}
	}
	v.mu.Unlock()
	if bars == nil || closed {
		return
	}
	for _, b := range open {
		b.Abort(false) // does nothing to a bar that is full
	}
	bars.Wait()
	fmt.Fprintln(v.app.stderr)
}
