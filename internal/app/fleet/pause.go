package fleet

import (
	"context"
	"fmt"
	"slices"
	"time"

	"thalweg/internal/app/caller"
	"thalweg/internal/app/scheduler"
	"thalweg/internal/app/view"
	"thalweg/internal/base/calendar"
	"thalweg/internal/base/fault"
	"thalweg/internal/ops/history"
	"thalweg/internal/ops/schedule"
	"thalweg/internal/store/state"
)

// nextShown is how many moments are shown before a schedule is paused or goes on.
const nextShown = 3

// ScheduleOrder pauses a schedule or watch, or lets it go on.
type ScheduleOrder struct {
	ID     string
	Pause  bool
	Reason string
	DryRun bool
}

// OrderSchedule carries out an order to a schedule or watch of a workspace, or says what it would do.
func (s *Service) OrderSchedule(ctx context.Context, by caller.Caller, workspace string,
	o ScheduleOrder) (out view.ScheduleOrdered, err error) {
	find := func() error {
		all, err := s.Schedules(ctx, workspace)
		if err != nil {
			return err
		}
		i := slices.IndexFunc(all, func(r view.Schedule) bool { return r.ID == o.ID })
		if i < 0 {
			return &fault.Error{Kind: fault.Script, Code: fault.NotFound, Hint: "{{do schedules}} lists them",
				Message: fmt.Sprintf("workspace %s has no schedule or watch %s", workspace, o.ID)}
		}
		out.Schedule = all[i]
		return nil
	}
	if err := find(); err != nil {
		return out, err
	}
	out.DryRun, out.Changes, out.Next = o.DryRun, o.Pause != (out.Schedule.Paused != nil), nextOf(out.Schedule)
	if o.DryRun || !out.Changes {
		return out, nil
	}
	mark := by.Mark(o.Reason)
	if err = s.record(ctx, mark, workspace, o, out.Schedule); err != nil { // what has an effect is in the audit
		return out, err
	}
	box := scheduler.PausedBox(s.Home, workspace)
	if o.Pause {
		err = schedule.Pause(ctx, box, o.ID, mark.Actor, mark.Reason, mark.Time)
	} else if _, err = box.List(ctx); err == nil { // a note is removed as it was read
		err = box.Remove(ctx, o.ID)
	}
	if err != nil {
		return out, err
	}
	return out, find()
}

// record keeps an order for the audit.
func (s *Service) record(ctx context.Context, mark state.Mark, workspace string, o ScheduleOrder,
	of view.Schedule) error {
	e := view.AuditEntry{Time: mark.Time.UTC(), Workspace: workspace, Actor: schedule.Cut(mark.Actor), Via: mark.Via,
		Action: "resume", Reason: schedule.Cut(mark.Reason), Schedule: schedule.Cut(of.Kind + " " + of.Name),
		Script: schedule.Cut(of.Script)}
	if o.Pause {
		e.Action = "pause"
	}
	return history.RecordScheduleOrder(ctx, s.Home.State, o.ID, e)
}

// nextOf lists the next moments of a schedule; a watch has none.
func nextOf(s view.Schedule) []time.Time {
	out := []time.Time{}
	zone, err := calendar.ParseZone(s.Zone)
	if s.Kind != schedule.KindSchedule || err != nil {
		return out
	}
	times, err := calendar.ParseTimes(s.When, zone)
	if err != nil {
		return out
	}
	for at := times.Next(time.Now()); len(out) < nextShown && !at.IsZero(); at = times.Next(at) {
		out = append(out, at.In(zone))
	}
	return out
}
