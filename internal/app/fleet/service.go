package fleet

import (
	"context"
	"fmt"
	"slices"
	"time"

	"thalweg/internal/app/cluster"
	"thalweg/internal/app/instance"
	"thalweg/internal/app/registry"
	"thalweg/internal/app/runs"
	"thalweg/internal/app/scheduler"
	"thalweg/internal/app/view"
	"thalweg/internal/base/calendar"
	"thalweg/internal/ops/history"
	"thalweg/internal/ops/schedule"
	"thalweg/internal/run/gate"
	"thalweg/internal/store/state"
)

// Service answers questions about who works for an instance, and when.
type Service struct {
	Home *instance.Instance
	Runs *runs.Service

	inputs inputs
}

// Status lists the workers of a cluster, and the runs that are not over. broker
// is why its broker cannot be used; nil: it can, or there is none.
func (s *Service) Status(ctx context.Context) (out view.ClusterStatus, broker, err error) {
	workers, err := registry.Workers(ctx, s.Home)
	if err != nil {
		return out, nil, err
	}
	open, err := s.openRuns(ctx, workers)
	if err != nil {
		return out, nil, err
	}
	onlyOpen(workers, open)
	out = view.ClusterStatus{Workers: append([]view.Worker{}, workers...), Runs: append([]view.OpenRun{}, open...)}
	if broker = cluster.CheckBroker(ctx, s.Home.Cluster(), false); ctx.Err() != nil {
		return out, nil, ctx.Err()
	}
	if broker != nil {
		out.Broker = broker.Error()
	}
	return out, broker, nil
}

// onlyOpen leaves out of what workers say the runs that are over: one that has died says for a day what it
// said last.
func onlyOpen(workers []registry.WorkerEntry, open []view.OpenRun) {
	over := func(at registry.RunAt) bool {
		return !slices.ContainsFunc(open,
			func(r view.OpenRun) bool { return r.Workspace == at.Workspace && r.Run == at.Run })
	}
	for i := range workers {
		workers[i].Runs = slices.DeleteFunc(workers[i].Runs, over)
		workers[i].Refused = slices.DeleteFunc(workers[i].Refused, over)
	}
}

func (s *Service) openRuns(ctx context.Context, workers []registry.WorkerEntry) (out []view.OpenRun, err error) {
	workspaces, err := s.Home.State.Workspaces(ctx)
	if err != nil {
		return nil, fmt.Errorf("look for workspaces: %w", err)
	}
	for _, w := range workspaces {
		open, err := state.OpenRuns(ctx, s.Home.State, w, nil)
		if err != nil {
			return nil, fmt.Errorf("look for runs of workspace %s: %w", w, err)
		}
		for _, r := range open {
			seen, err := s.Runs.Listed(ctx, r.RunKey)
			if err != nil {
				return nil, err
			}
			row := view.OpenRun{Workspace: w, Run: r.Run, Script: r.ScriptPath, Status: seen.Status, Why: seen.NoWorker,
				Do: seen.Do}
			if len(seen.WaitsFor) > 0 && seen.Status == history.Waiting {
				row.Why = "waits for a decision about " + gate.NameOf(seen.WaitsFor[0])
			}
			for _, there := range workers {
				for _, at := range there.Runs {
					if !there.Gone && at.Workspace == w && at.Run == r.Run {
						row.Workers++
					}
				}
			}
			out = append(out, row)
		}
	}
	return out, nil
}

// OnTime is the longest time since a scheduler's last look for which it counts as being there.
const OnTime = schedule.OnTime

// Schedules lists the schedules and watches of a workspace.
func (s *Service) Schedules(ctx context.Context, workspace string) ([]view.Schedule, error) {
	standings, err := schedule.Standings(ctx, scheduler.ScheduleBox(s.Home, workspace))
	if err != nil {
		return nil, err
	}
	paused, err := schedule.PausedOf(ctx, scheduler.PausedBox(s.Home, workspace))
	if err != nil {
		return nil, err
	}
	out := []view.Schedule{}
	for _, st := range standings {
		r := view.Schedule{ID: st.ID, Standing: *st, Paused: paused[st.ID]}
		if st.Kind == schedule.KindSchedule {
			zone, err := calendar.ParseZone(st.Zone)
			if err != nil {
				zone = time.UTC // of a list of zones that has lost one
			}
			if times, err := calendar.ParseTimes(st.When, zone); err == nil {
				next := times.Next(time.Now())
				r.Next = &next
			}
			for _, at := range st.Queue {
				r.Due = append(r.Due, time.Unix(at, 0).In(zone))
			}
		}
		if st.Last != nil {
			if run, err := s.Runs.Listed(ctx, state.RunKey{Workspace: workspace, Run: st.Last.Run}); err == nil {
				r.Status = run.Status
			}
		}
		out = append(out, r)
	}
	return out, nil
}
