package main

import (
	"cmp"
	"fmt"
	"time"

	"thalweg/internal/app/view"
	"thalweg/internal/base/format"
)

// workersLine sums up the time sheets of a run.
func workersLine(w view.SheetsTotal) string {
	text := fmt.Sprintf("%d, there for %s in all, %.1f %% of their slots' time was work", w.Workers,
		span(seconds(w.Presence)), 100*w.Busy)
	if w.Lost > 0 {
		text += "; " + format.Counted(w.Lost, "attempt was", "attempts were") + " lost"
	}
	return text
}

func (a *console) showWorkers(d view.RunWorkers) {
	fmt.Fprintf(a.stdout, "run %d in workspace %s", d.Run, d.Workspace)
	if d.Total == nil {
		fmt.Fprintln(a.stdout, ": there is no time sheet of a worker")
		return
	}
	fmt.Fprintln(a.stdout)
	a.say("workers", workersLine(*d.Total))
	for _, w := range d.Workers {
		a.showWorker(w)
	}
}

func (a *console) showWorker(w view.TimeSheet) {
	fmt.Fprintf(a.stdout, "\n%s: %s, %s, %s, %s of memory\n", plain(w.Worker), plain(cmp.Or(w.Machine, "unknown machine")),
		format.Counted(int64(w.Cores), "core", "cores"), format.Counted(int64(w.Slots), "slot", "slots"), size(w.Memory))
	a.say("there", fmt.Sprintf("%s, from %s to %s", span(seconds(w.Presence)), w.From.Local().Format(time.DateTime),
		w.To.Local().Format(time.DateTime)))
	collector := "its garbage collector took " + span(seconds(w.GC))
	if w.ChildrenGC > 0 {
		collector += ", those of its slots " + span(seconds(w.ChildrenGC))
	}
	a.say("processor time", fmt.Sprintf("%s, and %s of its processes; %s", span(seconds(w.CPU)),
		span(seconds(w.ChildrenCPU)), collector))
	a.say("peak memory", fmt.Sprintf("%s; %s of the budget held", size(w.PeakResident), size(w.PeakBudget)))
	a.say("parts", fmt.Sprintf("%s read, %s written", size(w.PartsRead), size(w.PartsWritten)))
	a.say("state", format.Counted(w.Calls, "call", "calls"))
	a.say("batches", fmt.Sprintf("%s committed, %s lost", count(w.Batches), format.Counted(w.Lost, "attempt", "attempts")))
	shares := view.SharesOf(w)
	if w.Elsewhere > 0 {
		shares = append(shares, view.SlotShare{Text: "other runs", Time: seconds(w.Elsewhere)})
	}
	var values []int64
	for _, s := range shares {
		values = append(values, int64(s.Time))
	}
	fmt.Fprintln(a.stdout)
	t := a.newTable("slots' time", "time", "share", "")
	rightAligned(t, 2, 3)
	whole := seconds(w.Presence * float64(w.Slots))
	for i, line := range format.Lengths(barWidth, values) {
		t.AppendRow([]any{shares[i].Text, span(shares[i].Time), format.Percent(shares[i].Time, whole), line})
	}
	t.Render()
}
