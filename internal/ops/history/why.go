package history

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"thalweg/internal/base/action"

	"thalweg/internal/base/format"
	"thalweg/internal/run/gate"
	"thalweg/internal/store/state"
)

// Thresholds of the rules that say what is slow. docs/operating.md explains them.
const (
	// SkewTimes is the least ratio of the longest batch to the middle one, of SkewBatches at least. SkewShare
	// is its least part of the node's time.
	SkewTimes   = 4
	SkewBatches = 3
	SkewShare   = 0.25
	// OneCoreShare is the least part of the run that a node with fewer batches than slots must have taken to
	// be reported.
	OneCoreShare = 0.5
	// NodeShare is the least part of the run that the longest node must have taken to be reported.
	NodeShare = 0.2
	// StageShare is the least part of its batches' time for which a stage is called the reason.
	StageShare = 0.4
	// WaitShare is StageShare for waiting for memory.
	WaitShare = 0.2
	// HeldShare is the least part of a run for which a decision or an order that held it up is called the
	// reason.
	HeldShare = 0.5
	// SlowAtLeast is the least time of a run in which anything is called slow.
	SlowAtLeast = time.Second
)

// Answer is a reason why a run is not further, in a sentence (Text), and what people
// can do about it (Do). Rule is the name of the rule that found it.
type Answer struct {
	Rule  string `json:"rule"`
	Text  string `json:"text"`
	Do    string `json:"do,omitempty"`
	Then  string `json:"then,omitempty"` // continues the run, once the cause that Do shows is mended
	Node  string `json:"node,omitempty"`
	Batch *int   `json:"batch,omitempty"`
}

// rule finds a reason; ok is false if the rule does not apply.
type rule struct {
	name string
	find func(f Facts) (a Answer, ok bool)
}

// rules lists the rules by importance: the first that applies is the main answer.
// Why a run is over comes first, then what it waits for, then what is slow in it.
var rules = []rule{
	{"dropped", Facts.whyDropped},
	{"invalidated", Facts.whyInvalidated},
	{"failed", Facts.whyFailed},
	{"stopped", Facts.whyStopped},
	{"paused", Facts.whyPaused},
	{"invalidated", Facts.whyNodesInvalidated},
	{"order", Facts.whyOrdered},
	{"gate", Facts.whyGate},
	{"memory_of_others", Facts.whyMemoryOfOthers},
	{"no_worker", Facts.whyNoWorker},
	{"interrupted", Facts.whyInterrupted},
	{"dead_worker", Facts.whyDeadWorker},
	{"backoff", Facts.whyBackoff},
	{"unplanned", Facts.whyUnplanned},
	{"skew_now", Facts.whySkewNow},
	{"held", Facts.whyHeld},
	{"skew", Facts.whySkew},
	{"wait", Facts.whyWait},
	{"one_core", Facts.whyOneCore},
	{"python", Facts.whyPython},
	{"memory", Facts.whyMemory},
	{"reading", Facts.whyReading},
	{"disk", Facts.whyDisk},
	{"computing", Facts.whyComputing},
	{"own", Facts.whyOwn},
	{"slots", Facts.whySlots},
	{"between", Facts.whyBetween},
	{"notices", Facts.whyNotices},
}

// Why returns all reasons that apply, the most important one first. There is at
// least one.
func (f Facts) Why() []Answer {
	var out []Answer
	for _, r := range rules {
		if a, ok := r.find(f); ok {
			a.Rule = r.name
			a.Text = fmt.Sprintf("run %d %s", f.Run.Run, a.Text)
			out = append(out, a)
		}
	}
	if len(out) == 0 {
		out = []Answer{{Rule: "nothing", Text: fmt.Sprintf("run %d %s: nothing in it stands out",
			f.Run.Run, f.progress())}}
	}
	return out
}

// progress says how far the run is.
func (f Facts) progress() string {
	if f.Run.Status == state.Complete {
		return "is complete, in " + format.Span(f.elapsed())
	}
	done, all := 0, 0
	for _, n := range f.Nodes {
		done, all = done+n.BatchesDone, all+n.BatchesTotal
	}
	return fmt.Sprintf("is %s, %s of %s done so far in %s", f.Run.Status, format.Count(int64(done)),
		format.Counted(int64(all), "batch", "batches"), format.Span(f.elapsed()))
}

// noticesMost limits the notices of an answer.
const noticesMost = 5

// whyNotices reports messages of the run's workers, for example that a message has a later version. None of them
// stops the run.
func (f Facts) whyNotices() (Answer, bool) {
	if len(f.Notices) == 0 || f.Run.Status != state.Running {
		return Answer{}, false
	}
	said := slices.Clone(f.Notices[:min(len(f.Notices), noticesMost)])
	if more := len(f.Notices) - len(said); more > 0 {
		said = append(said, fmt.Sprintf("%d more", more))
	}
	return Answer{Text: "is worked on, and its workers say: " + strings.Join(said, "; "),
		Do: "{{do cluster-status}} lists them"}, true
}

func (f Facts) whyFailed() (Answer, bool) {
	if f.Run.Status != state.Failed {
		return Answer{}, false
	}
	show, goOn := f.Run.AfterFailure()
	a := Answer{Text: "has failed", Do: show.String(), Then: goOn.String()}
	if f.Run.Failure != nil {
		a.Text, a.Node = a.Text+": "+f.Run.Failure.Text(), f.Run.Failure.Node
		if f.Run.Failure.Batch >= 0 {
			a.Batch = &f.Run.Failure.Batch
		}
	}
	if taken := f.Run.Taken(); taken != nil {
		a.Text += "; taken" + f.marked(*taken)
	}
	return a, true
}

func (f Facts) whyStopped() (Answer, bool) {
	if f.Run.Status != state.Stopped {
		return Answer{}, false
	}
	return Answer{Text: "was stopped" + f.by(f.Run.Command), Do: f.Run.Do("resume").String()}, true
}

// by says who gave an order, when, and why.
func (f Facts) by(o *state.Command) string {
	if o == nil {
		return ""
	}
	return f.marked(o.Mark)
}

func (f Facts) marked(m state.Mark) string {
	text := fmt.Sprintf(" by %s at %s", m.Actor, f.clock(m.Time))
	if m.Reason != "" {
		text += ": " + m.Reason
	}
	return text
}

func (f Facts) whyInvalidated() (Answer, bool) {
	if f.Run.Invalidated == nil {
		return Answer{}, false
	}
	return Answer{Text: "was invalidated" + f.marked(*f.Run.Invalidated)}, true
}

// whyNodesInvalidated says which nodes of a run were invalidated, if not the whole run was.
func (f Facts) whyNodesInvalidated() (Answer, bool) {
	if f.Run.Invalidated != nil || f.Run.Dropped != nil || f.Run.Command.Pending() || len(f.at(state.Invalidated)) == 0 {
		return Answer{}, false
	}
	var marks []state.Mark
	names := map[state.Mark][]string{}
	for _, n := range f.at(state.Invalidated) {
		m := f.Voided[n.Name]
		m.Time = m.Time.UTC() // equal marks are equal keys
		if names[m] == nil {
			marks = append(marks, m)
		}
		names[m] = append(names[m], n.Name)
	}
	var said []string
	for _, m := range marks {
		what, were := "node", "was"
		if len(names[m]) > 1 {
			what, were = "nodes", "were"
		}
		by := ""
		if m.Actor != "" {
			by = f.marked(m)
		}
		said = append(said, fmt.Sprintf("%s %s %s invalidated%s", what, strings.Join(names[m], ", "), were, by))
	}
	return Answer{Text: fmt.Sprintf("is %s, but %s", f.Run.Status, strings.Join(said, "; ")),
		Do: f.Run.Do("resume").String()}, true
}

func (f Facts) whyDropped() (Answer, bool) {
	if f.Run.Dropped == nil {
		return Answer{}, false
	}
	return Answer{Text: "was dropped" + f.marked(*f.Run.Dropped)}, true
}

func (f Facts) whyPaused() (Answer, bool) {
	if f.Run.Status != state.Paused {
		return Answer{}, false
	}
	text := "is paused"
	if f.Run.Command != nil && f.Run.Command.Kind == state.CommandPause {
		text += f.by(f.Run.Command)
	}
	if n := f.claimed(); n > 0 && !f.Orphaned {
		text += fmt.Sprintf("; %s still at work", format.Counted(int64(n), "batch is", "batches are"))
	}
	return Answer{Text: text, Do: f.Run.Do("resume").String()}, true
}

func (f Facts) whyOrdered() (Answer, bool) {
	if !f.Run.Command.Pending() {
		return Answer{}, false
	}
	var deaf []string
	for _, n := range f.Nodes {
		if f.Run.Command.Concerns(n.Name) && n.Epoch < f.Run.Command.Epoch {
			deaf = append(deaf, n.Name)
		}
	}
	a := Answer{Text: fmt.Sprintf("is being told to %s%s; %s not heard of it yet", f.Run.Command.Kind, f.by(f.Run.Command),
		haveNodes(deaf))}
	if f.Orphaned {
		a.Text += ", and nobody works on it"
		a.Do = f.Run.Do("resume").String()
		if f.Alone.Why != "" {
			a.Text, a.Do = strings.TrimSuffix(a.Text, "nobody works on it")+f.Alone.Why, f.Alone.Do
		}
		if f.Run.Command.Kind == state.CommandStop || f.Run.Command.Kind == state.CommandPause {
			a.Do = f.Run.Do(string(f.Run.Command.Kind)).String()
		}
	}
	return a, true
}

func haveNodes(names []string) string {
	if len(names) == 1 {
		return "node " + names[0] + " has"
	}
	return fmt.Sprintf("%d nodes have", len(names))
}

// busy reports whether there is a node whose batches can be worked on.
func (f Facts) busy() bool { return len(f.at(state.Running)) > 0 }

// waits reports whether there is nothing to do before somebody decides.
func (f Facts) waits() bool { return f.Run.Status == state.Running && state.Waits(f.Nodes) }

func (f Facts) whyGate() (Answer, bool) {
	waiting := f.at(state.Waiting)
	if !f.waits() {
		return Answer{}, false
	}
	n := waiting[0]
	g := f.Gates[n.Name]
	text := "waits for a decision about " + gate.NameOf(n.Name)
	if len(g.By) > 0 {
		text += " by " + strings.Join(g.By, " or ")
	}
	text += fmt.Sprintf(", since %s, for %s", f.clock(g.Since), format.Span(f.Now.Sub(g.Since)))
	switch {
	case g.Over(f.Now):
		text += fmt.Sprintf("; its time was over at %s: it is rejected when somebody works on the run",
			f.clock(g.Until))
	case !g.Until.IsZero():
		text += fmt.Sprintf("; rejected if nobody approves until %s", f.clock(g.Until))
	}
	if more := len(waiting) - 1; more > 0 {
		text += fmt.Sprintf("; %s as well", format.Counted(int64(more), "other gate waits", "other gates wait"))
	}
	return Answer{Text: text, Node: n.Name, Do: f.Run.Beside("approvals").String()}, true
}

func (f Facts) whyMemoryOfOthers() (Answer, bool) {
	// the run does not wait if a process that has memory works on one of its batches
	if f.Run.Status != state.Running || len(f.Memory) == 0 || f.claimedBy(f.withMemory) > 0 || f.Orphaned {
		return Answer{}, false
	}
	return Answer{Text: "waits for memory: " + strings.Join(f.Memory, "; ")}, true
}

// withMemory reports whether an owner of batches does not wait for memory, as far as is known.
func (f Facts) withMemory(owner string) bool { return f.Waits == nil || !f.Waits(owner) }

// claimed counts the batches that somebody is at work on.
func (f Facts) claimed() int { return f.claimedBy(func(string) bool { return true }) }

// claimedBy counts the claimed batches whose owner is such.
func (f Facts) claimedBy(such func(owner string) bool) (n int) {
	for _, batches := range f.Unsettled {
		for _, b := range batches {
			if b.Status == state.Claimed && such(b.Owner) {
				n++
			}
		}
	}
	return n
}

// left reports whether the run has work to do that nobody does.
func (f Facts) left() bool {
	return f.Run.Status == state.Running && f.Orphaned && !f.waits() && !f.Run.Command.Pending()
}

func (f Facts) whyNoWorker() (Answer, bool) {
	if !f.left() || f.Alone.Why == "" {
		return Answer{}, false
	}
	return Answer{Text: "waits for a worker: " + f.Alone.Why, Do: f.Alone.Do}, true
}

func (f Facts) whyInterrupted() (Answer, bool) {
	if !f.left() || f.Alone.Why != "" {
		return Answer{}, false
	}
	done, all := 0, 0
	for _, n := range f.Nodes {
		done, all = done+n.BatchesDone, all+n.BatchesTotal
	}
	return Answer{Text: fmt.Sprintf("is interrupted: nobody works on it; %s of %s planned so far are done",
		format.Count(int64(done)), format.Counted(int64(all), "batch", "batches")),
		Do: f.Run.Do("resume").String()}, true
}

// only finds a running node that waits for nothing but batches for which means is
// true. It returns the node, the least of these batches by less, and their number;
// 0: there is no such node.
func (f Facts) only(means func(state.Batch) bool, less func(a, b state.Batch) int) (n state.Node, b state.Batch,
	many int) {
	for _, n = range f.at(state.Running) {
		var these []state.Batch
		others := n.BatchesDone + n.BatchesFailed
		for _, b := range f.Unsettled[n.Name] {
			if means(b) {
				these = append(these, b)
			}
		}
		if len(these) > 0 && others+len(these) >= n.BatchesTotal {
			return n, slices.MinFunc(these, less), len(these)
		}
	}
	return state.Node{}, state.Batch{}, 0
}

func (f Facts) whyDeadWorker() (Answer, bool) {
	if f.Run.Status != state.Running {
		return Answer{}, false
	}
	n, b, many := f.only(func(b state.Batch) bool {
		return b.Status == state.Claimed && (b.Lease.Before(f.Now) || f.Gone != nil && f.Gone(b.Owner))
	}, func(a, b state.Batch) int { return a.Lease.Compare(b.Lease) })
	if many == 0 {
		return Answer{}, false
	}
	text := fmt.Sprintf("waits for %s of node %s, the first of them claimed by %s at %s, ",
		format.Counted(int64(many), "batch", "batches"), n.Name, b.Owner, f.clock(b.Started))
	if many == 1 {
		text = fmt.Sprintf("waits for batch %d of node %s, claimed by %s at %s, ", b.BatchKey.Batch, n.Name, b.Owner,
			f.clock(b.Started))
	}
	if b.Lease.Before(f.Now) {
		text += fmt.Sprintf("whose lease has not been extended and ended %s ago", format.Span(f.Now.Sub(b.Lease)))
	} else {
		text += fmt.Sprintf("which has ended; the lease ends in %s", format.Span(b.Lease.Sub(f.Now)))
	}
	return Answer{Text: text, Node: n.Name, Batch: &b.BatchKey.Batch}, true
}

func (f Facts) whyBackoff() (Answer, bool) {
	if f.Run.Status != state.Running {
		return Answer{}, false
	}
	n, b, many := f.only(func(b state.Batch) bool { return b.Status == state.Pending && b.NotBefore.After(f.Now) },
		func(a, b state.Batch) int { return a.NotBefore.Compare(b.NotBefore) })
	if many == 0 {
		return Answer{}, false
	}
	text := fmt.Sprintf("waits until batch %d of node %s is tried again at %s, in %s: %s failed",
		b.BatchKey.Batch, n.Name, f.clock(b.NotBefore),
		format.Span(b.NotBefore.Sub(f.Now)), format.Counted(int64(b.Tries), "try", "tries"))
	if many > 1 {
		text += fmt.Sprintf("; %d more wait as well", many-1)
	}
	return Answer{Text: text, Node: n.Name, Batch: &b.BatchKey.Batch,
		Do: f.Run.Do("show", "node", n.Name, "batch", b.BatchKey.Batch).String()}, true
}

func (f Facts) whyUnplanned() (Answer, bool) {
	if f.Run.Status != state.Running || f.busy() || f.Orphaned || f.Run.Command.Pending() {
		return Answer{}, false
	}
	done := map[string]bool{}
	for _, n := range f.at(state.Succeeded) {
		done[n.Name] = true
	}
	for _, n := range f.at(state.Pending) {
		if n.Ready(done) {
			return Answer{Text: fmt.Sprintf("is planning node %s: all that it reads is there", n.Name),
				Node: n.Name}, true
		}
	}
	return Answer{}, false
}

func (f Facts) whySkewNow() (Answer, bool) {
	if f.Run.Status != state.Running {
		return Answer{}, false
	}
	n, b, many := f.only(func(b state.Batch) bool { return b.Status == state.Claimed && !b.Lease.Before(f.Now) },
		func(a, b state.Batch) int { return a.Started.Compare(b.Started) })
	t := f.Tallies[n.Name]
	median, took := t.Median(), f.Now.Sub(b.Started)
	if many == 0 || f.slots() <= many || n.BatchesDone < SkewBatches || took < SkewTimes*median || took < SlowAtLeast {
		return Answer{}, false
	}
	return Answer{Text: fmt.Sprintf("waits for batch %d of node %s, which is at work for %s: the middle one of the "+
		"other %d took %s; it reads %s",
		b.BatchKey.Batch, n.Name, format.Span(took), n.BatchesDone, format.Span(median), reads(b.RowsIn, b.BytesIn)),
		Node: n.Name, Batch: &b.BatchKey.Batch, Do: f.Run.Do("show", "node", n.Name).String()}, true
}

func (f Facts) slots() int { return max(f.Slots, 1) }

func reads(rows, bytes int64) string {
	if rows < 0 {
		return format.Size(bytes)
	}
	return format.Counted(rows, "row", "rows")
}

// whyHeld finds the longest time for which a run stood still that has gone on since.
// It waited for a decision, or for the order to go on after an order or a failure.
func (f Facts) whyHeld() (Answer, bool) {
	all := took(f.Run, f.Now)
	if all < SlowAtLeast || f.Run.Status != state.Running && f.Run.Status != state.Complete {
		return Answer{}, false
	}
	var most time.Duration
	var a Answer
	for _, n := range f.Nodes {
		g, asked := f.Gates[n.Name]
		if !asked || n.Decision == nil || n.Decision.Time.Sub(g.Since) <= most {
			continue
		}
		most = n.Decision.Time.Sub(g.Since)
		verb := map[bool]string{true: "approved", false: "rejected"}[n.Decision.Approved]
		a = Answer{Node: n.Name, Text: fmt.Sprintf("waited %s of its %s for a decision about %s: asked at %s, %s%s",
			format.Span(most), format.Span(all),
			gate.NameOf(n.Name), f.clock(g.Since), verb, f.marked(n.Decision.Mark))}
	}
	for _, h := range f.Holds {
		if h.To.Sub(h.From) <= most {
			continue
		}
		most = h.To.Sub(h.From)
		what := "it was over at " + f.clock(h.From)
		switch done := stood[h.Order.Kind]; {
		case done != "":
			what = done + f.marked(h.Order.Mark)
		case h.Order.Kind == state.CommandFail:
			what = "it failed at " + f.clock(h.From)
		}
		a = Answer{Text: fmt.Sprintf("stood still for %s of its %s: %s; it went on at %s", format.Span(most),
			format.Span(all), what, f.clock(h.To))}
	}
	return a, float64(most) >= HeldShare*float64(all)
}

// stood names the orders with which a run stands still, as a participle for people.
var stood = map[state.CommandKind]string{state.CommandStop: "stopped", state.CommandPause: "paused",
	state.CommandReject: "rejected", state.CommandInvalidate: "invalidated"}

// slow returns the node that took most of a run's time, and its share of that time. ok
// is false if the run was short, or no node took NodeShare of it.
func (f Facts) slow() (n state.Node, t state.Tally, share float64, ok bool) {
	n, ok = f.heaviest()
	if !ok || f.elapsed() < SlowAtLeast || f.Run.Status != state.Running && f.Run.Status != state.Complete {
		return n, t, 0, false
	}
	share = float64(f.took(n)) / float64(f.elapsed())
	return n, f.Tallies[n.Name], share, share >= NodeShare
}

func (f Facts) whySkew() (Answer, bool) {
	n, t, _, ok := f.slow()
	if !ok || len(t.Longest) == 0 || n.BatchesTotal < SkewBatches {
		return Answer{}, false
	}
	longest, median := t.Longest[0], t.Median()
	took := longest.Stats.Elapsed
	if took < SkewTimes*median || float64(took) < SkewShare*float64(f.took(n)) || median == 0 {
		return Answer{}, false
	}
	text := fmt.Sprintf("spent %s in batch %d of node %s: %d times as long as the middle one of %d, which took %s",
		format.Span(took), longest.Batch, n.Name,
		int64(took/median), t.Batches, format.Span(median))
	if each := n.RowsIn / int64(max(n.BatchesDone, 1)); each > 0 && longest.Stats.RowsIn > 0 {
		text += fmt.Sprintf("; it read %s, a batch has %s on average",
			format.Counted(longest.Stats.RowsIn, "row", "rows"), format.Count(each))
	}
	return Answer{Text: text, Node: n.Name, Batch: &longest.Batch,
		Do: f.Run.Do("show", "node", n.Name, "batch", longest.Batch).String()}, true
}

func (f Facts) whyOneCore() (Answer, bool) {
	n, t, share, ok := f.slow()
	// several interpreters at once
	if !ok || share < OneCoreShare || n.BatchesTotal == 0 || n.BatchesTotal >= f.slots() ||
		t.Stats.Python > t.Stats.Elapsed {
		return Answer{}, false
	}
	stage := heaviestStage(StagesOf(t.Stats))
	return Answer{Text: fmt.Sprintf("spent %s of %s in node %s, which is cut into %s, for %s%s",
		format.Percent(f.took(n), f.elapsed()), f.its(), n.Name,
		format.Counted(int64(n.BatchesTotal), "batch", "batches"), format.Counted(int64(f.slots()), "slot", "slots"),
		stage), Node: n.Name, Do: action.Do("explain", "script", f.Run.ScriptPath, "node", n.Name).String()}, true
}

// heaviestStage names the stage that took the most time, without Slot.
func heaviestStage(s Stages) string {
	if s.work() <= 0 {
		return ""
	}
	at := slices.DeleteFunc(s.List(), func(st Stage) bool { return st.Name == "slot" })
	most := slices.MaxFunc(at, func(a, b Stage) int { return cmp.Compare(a.MS, b.MS) })
	return fmt.Sprintf("; %s of that was %s", format.Percent(ms(most.MS), ms(s.work())), doing[most.Name])
}

// doing says for people what happens in a stage.
var doing = map[string]string{"wait": "waiting for memory", "read": "fetching and opening inputs",
	"compute": "computing in DuckDB", "python": "Python",
	"write": "making results durable", "commit": "showing files", "other": "none of the stages"}

// stage finds a reason if a stage, which of reads, took at least a part of a slow node's time.
func (f Facts) stage(least float64, what string, of func(Stages) int64) (Answer, bool) {
	n, t, _, ok := f.slow()
	s := StagesOf(t.Stats)
	if !ok || s.share(of(s)) < least {
		return Answer{}, false
	}
	return Answer{Text: fmt.Sprintf("spent %s of %s in node %s, and %s of that %s: %s of %s over %s",
		format.Percent(f.took(n), f.elapsed()), f.its(), n.Name,
		format.Percent(ms(of(s)), ms(s.work())), what, format.Span(ms(of(s))), format.Span(ms(s.work())),
		format.Counted(int64(t.Batches), "batch", "batches")),
		Node: n.Name, Do: f.Run.Do("show", "node", n.Name).String()}, true
}

func (f Facts) whyWait() (Answer, bool) {
	return f.stage(WaitShare, "waiting for memory that other batches had", func(s Stages) int64 { return s.Wait })
}

func (f Facts) whyPython() (Answer, bool) {
	return f.stage(StageShare, "in Python", func(s Stages) int64 { return s.Python })
}

func (f Facts) whyReading() (Answer, bool) {
	return f.stage(StageShare, "fetching and opening what it reads", func(s Stages) int64 { return s.Read })
}

func (f Facts) whyDisk() (Answer, bool) {
	return f.stage(StageShare, "making what it wrote durable", func(s Stages) int64 { return s.Write + s.Commit })
}

func (f Facts) whyComputing() (Answer, bool) {
	return f.stage(StageShare, "computing in DuckDB, files that its statements read and write included",
		func(s Stages) int64 { return s.Compute })
}

func (f Facts) whyOwn() (Answer, bool) {
	return f.stage(StageShare,
		"in none of the stages: in Thalweg's own work for each batch, as rows that go to interpreters and come back",
		func(s Stages) int64 { return s.Other })
}

// whySlots finds batches that were claimed long before a slot was free for them.
func (f Facts) whySlots() (Answer, bool) {
	n, t, _, ok := f.slow()
	s := StagesOf(t.Stats)
	if !ok || s.Total == 0 || float64(s.Slot) < StageShare*float64(s.Total) {
		return Answer{}, false
	}
	return Answer{Text: fmt.Sprintf("spent %s of %s in node %s, whose batches waited for a free slot for %s of their "+
		"time, %s of %s over %s: all slots were in use",
		format.Percent(f.took(n), f.elapsed()), f.its(), n.Name, format.Percent(ms(s.Slot), ms(s.Total)),
		format.Span(ms(s.Slot)), format.Span(ms(s.Total)),
		format.Counted(int64(t.Batches), "batch", "batches")), Node: n.Name,
		Do: f.Run.Do("show", "node", n.Name).String()}, true
}

// whyBetween finds time in which slots had no batch. Batches were claimed and
// committed then, which no stage measures.
func (f Facts) whyBetween() (Answer, bool) {
	n, t, share, ok := f.slow()
	if !ok || share < OneCoreShare || n.BatchesDone < SkewBatches || t.Batches < n.BatchesDone {
		return Answer{}, false
	}
	var all time.Duration // of all nodes: they share the slots
	for _, tally := range f.Tallies {
		all += tally.Stats.Elapsed - tally.Stats.Turn
	}
	slots := time.Duration(f.slots())
	busy := (t.Stats.Elapsed - t.Stats.Turn) / min(slots, time.Duration(n.BatchesTotal))
	if len(t.Longest) > 0 { // all slots may have waited for the longest batch
		busy = max(busy, t.Longest[0].Stats.Elapsed)
	}
	idle := f.took(n) - busy
	if float64(idle) < StageShare*float64(f.took(n)) ||
		float64(f.elapsed()*slots-all) < StageShare*float64(f.elapsed()*slots) {
		return Answer{}, false
	}
	return Answer{Text: fmt.Sprintf("spent %s of %s in node %s, and %s of that between its %s of about %s each: "+
		"claiming and committing them, or with other programs on the machine",
		format.Percent(f.took(n), f.elapsed()), f.its(), n.Name, format.Percent(idle, f.took(n)),
		format.Counted(int64(n.BatchesTotal), "batch", "batches"),
		format.Counted(n.RowsIn/int64(n.BatchesDone), "row", "rows")), Node: n.Name,
		Do: f.Run.Do("show", "node", n.Name).String()}, true
}

func (f Facts) whyMemory() (Answer, bool) {
	n, t, _, ok := f.slow()
	if !ok {
		return Answer{}, false
	}
	c := t.Stats.Counters
	var did []string
	if v := c[state.CounterSpilled]; v > 0 {
		did = append(did, format.Size(v)+" went to spill files")
	}
	if v := c[state.CounterPieces]; v > 0 {
		did = append(did, format.Counted(v, "piece", "pieces")+" were done one after the other")
	}
	if v := c[state.CounterAlone]; v > 0 {
		did = append(did, format.Counted(v, "batch", "batches")+" ran alone")
	}
	if len(did) == 0 {
		return Answer{}, false
	}
	return Answer{Text: fmt.Sprintf("spent %s of %s in node %s, for whose batches the memory was not enough: %s",
		format.Percent(f.took(n), f.elapsed()), f.its(), n.Name,
		strings.Join(did, ", ")), Node: n.Name, Do: f.Run.Do("show", "node", n.Name).String()}, true
}
