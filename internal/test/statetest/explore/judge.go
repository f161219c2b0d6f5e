package explore

import (
	"fmt"
	"slices"
	"strings"

	"thalweg/internal/store/state"
)

// judge compares what stands in the store before and after a change: whatever
// was asked for, nothing may go that was promised.
func (w *world) judge(c *call, answer error, before *world) error {
	err := w.judgeRun(before)
	if err == nil && c.part != runAt {
		err = w.judgeNode(c, answer, before.at[c.part], before.ran)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", c.name, err)
	}
	w.noteOrder(before.ran)
	return nil
}

// noteOrder keeps what follows from an order for what is promised later: what a
// person has decided holds from when it begins, until it is carried out that the
// gate is done again; claims from before one that ends what is under way are void
// when it is carried out.
func (w *world) noteOrder(before *runPicture) {
	o, began := w.ran.Command, w.ran.Epoch > before.Epoch
	switch {
	case o == nil || !began && (!o.Done || before.Command.Done):
	case began && o.Kind == state.CommandApprove:
		w.approved += "(" + o.Nodes[0].Digest + ")"
	case began && o.Kind == state.CommandReject && w.at[gateAt].Status == state.Waiting: // it has not been passed
		w.approved = strings.ReplaceAll(w.approved, "("+o.Nodes[0].Digest+")", "")
	case !o.Done:
	case o.Kind == state.CommandStop, o.Kind == state.CommandFail, o.Kind == state.CommandReopen,
		o.Kind == state.CommandRedo && o.From != state.Running:
		w.over = o.Epoch
	}
	if o != nil && o.Done && o.Kind == state.CommandRedo &&
		slices.ContainsFunc(o.Nodes, func(r state.CommandNode) bool { return r.Node == gate }) && !before.Command.Done {
		w.approved = ""
	}
}

// judgeNode holds that a node moves as it may, and forgets no order; that nothing
// is begun in a run that is over or paused; and what is promised of its batches.
func (w *world) judgeNode(c *call, answer error, was *nodePicture, run *runPicture) error {
	is := w.at[c.part]
	paused := run.Status == state.Paused && !run.Command.Pending()
	begun := len(is.attempts) > len(was.attempts) || is.PlanDigest != was.PlanDigest && is.PlanDigest != "" ||
		is.Status == state.Waiting && was.Status != state.Waiting
	switch {
	case was.Status != is.Status && !state.CanMove("node", was.Status, is.Status):
		return fmt.Errorf("node %s went from %s to %s", is.Name, was.Status, is.Status)
	case is.Epoch < was.Epoch || is.Fence < was.Fence || is.Fence > is.Epoch:
		return fmt.Errorf("node %s forgot an order", is.Name)
	case begun && (paused || run.over()):
		return fmt.Errorf("something of %s is begun although the run is %s", is.Name, run.Status)
	case c.part == gateAt && is.Status == state.Succeeded && was.Status != state.Succeeded:
		if d := is.Decision; d == nil || !d.Approved || d.Digest != is.GateDigest || !w.mayPass(d.Digest) {
			return fmt.Errorf("the gate is passed without a decision")
		}
	}
	if c.kind == hears && is.Epoch > was.Epoch {
		if err := redone(c.order, is); err != nil {
			return err
		}
	}
	return w.judgeBatches(c, answer, was)
}

// redone holds that nothing stays of what is to be done again.
func redone(o *state.Command, n *nodePicture) error {
	for _, r := range o.Nodes {
		if o.Kind != state.CommandRedo || r.Node != n.Name {
			continue
		}
		for i, b := range n.batches {
			if b.Status == state.Succeeded && (r.Replan || len(r.Batches) == 0 || slices.Contains(r.Batches, i)) {
				return fmt.Errorf("batch %d of %s stays done, which is to be done again", i, n.Name)
			}
		}
	}
	return nil
}

// judgeBatches checks four promises. Only a commit makes a batch succeed, once and in the name of its latest attempt.
// No batch is lost but by an order to do it again. No claim commits after an order that ended it was carried out.
// The table shows just what was committed.
func (w *world) judgeBatches(c *call, answer error, was *nodePicture) error {
	is := w.at[c.part]
	if len(is.batches) < len(was.batches) && c.kind != hears {
		return fmt.Errorf("the batches of %s are lost", is.Name)
	}
	for i, b := range is.batches {
		done, did := b.Status == state.Succeeded, i < len(was.batches) && was.batches[i].Status == state.Succeeded
		switch {
		case done && !did && c.kind != commits:
			return fmt.Errorf("batch %d of %s has succeeded without a commit", i, is.Name)
		case done && !did && (b.Epoch < w.over || b.Epoch < was.Fence):
			return fmt.Errorf("batch %d of %s is revived: it was claimed in epoch %d, and order %d was carried out", i,
				is.Name, b.Epoch, max(w.over, was.Fence))
		case done && did && b.Attempt != was.batches[i].Attempt:
			return fmt.Errorf("batch %d of %s is committed twice", i, is.Name)
		case did && !done && c.kind != hears:
			return fmt.Errorf("the commit of batch %d of %s is lost", i, is.Name)
		case done && !did && c.part == secondAt:
			if _, read, _ := strings.Cut(strings.TrimSuffix(c.content, ">"), "<"); !w.mayPass(read) {
				return fmt.Errorf("%s is made from %q, which nobody has approved", second, read)
			}
		}
		if err := shows(is, i, b); err != nil {
			return err
		}
	}
	if c.kind == commits && answer != nil && strings.Contains(is.content(), c.content) {
		return fmt.Errorf("what the table shows is refused, and thrown away: %w", answer)
	}
	if c.kind == commits && answer == nil && !slices.ContainsFunc(is.attempts, func(a state.Attempt) bool {
		return a.Batch == c.claim.Batch && a.Attempt == c.claim.Attempt && a.Status == state.Succeeded
	}) {
		return fmt.Errorf("the commit is confirmed, and lost")
	}
	return doubled(is)
}

// shows holds that a node's table has what one batch has come to, and no more.
func shows(n *nodePicture, batch int, b state.Batch) error {
	count := 0
	for _, p := range n.parts {
		switch {
		case p.Batch != batch:
			continue
		case p.Attempt != b.Attempt || b.Status != state.Succeeded:
			return fmt.Errorf("the table of %s shows attempt %d of batch %d, which is %s at attempt %d",
				n.Name, p.Attempt, batch, b.Status, b.Attempt)
		}
		count++
	}
	if want := map[bool]int{true: 1}[b.Status == state.Succeeded]; count != want {
		return fmt.Errorf("the table of %s has batch %d %d times, which is %s", n.Name, batch, count, b.Status)
	}
	return nil
}

// doubled holds that a batch succeeds once until it is done again.
func doubled(n *nodePicture) error {
	type once struct{ batch, generation int }
	seen := map[once]bool{}
	for _, a := range n.attempts {
		if a.Status != state.Succeeded {
			continue
		}
		if seen[once{a.Batch, a.Generation}] {
			return fmt.Errorf("two attempts of batch %d of %s have committed", a.Batch, n.Name)
		}
		seen[once{a.Batch, a.Generation}] = true
	}
	return nil
}

// judgeRun holds that a run is complete only with every node, each made from
// what the others have now, and that nothing goes on in one that does not.
func (w *world) judgeRun(before *world) error {
	if was, is := before.ran.Status, w.ran.Status; was != is && !state.CanMove("run", was, is) {
		return fmt.Errorf("the run went from %s to %s", was, is)
	}
	if w.ran.Status == state.Complete && before.ran.Status != state.Complete {
		for _, n := range w.at {
			if n.Status != state.Succeeded || n.BatchesDone != n.BatchesTotal {
				return fmt.Errorf("the run is complete, and node %s is %s", n.Name, n.Status)
			}
		}
		if want, got := w.at[firstAt].content(), w.at[secondAt].content(); !strings.HasSuffix(got, "<"+want+">") {
			return fmt.Errorf("the run is complete, and %s was made from other rows than %s: %s", second, want, got)
		}
	}
	if w.ran.Status == state.Running || w.ran.Command.Pending() {
		return nil
	}
	for _, n := range w.at {
		if !n.Status.Terminal() && (w.ran.Status.Terminal() || n.Status == state.Running || n.Status == state.Pending) {
			return fmt.Errorf("the run is %s, and node %s is %s", w.ran.Status, n.Name, n.Status)
		}
	}
	return nil
}

// mayPass reports whether somebody has approved what a digest stands for.
func (w *world) mayPass(digest string) bool { return strings.Contains(w.approved, "("+digest+")") }
