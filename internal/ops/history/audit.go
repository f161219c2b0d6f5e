package history

import (
	"context"
	"fmt"
	"slices"
	"time"

	"thalweg/internal/store/state"
)

// AuditEntry is one order or decision about a run, or one about a schedule. Those about a run are read from its events,
// which nobody can edit.
type AuditEntry struct {
	Time      time.Time           `json:"time"`
	Workspace string              `json:"workspace"`
	Run       int64               `json:"run"` // 0: it is about a schedule
	Actor     string              `json:"actor"`
	Via       string              `json:"via,omitempty"`      // how the caller came in: see state.Mark
	Action    string              `json:"action"`             // create, or the order: see state.CommandKind
	Nodes     []state.CommandNode `json:"nodes,omitempty"`    // nodes that it is about; none: the whole run
	Reason    string              `json:"reason,omitempty"`   // as the caller gave it
	Script    string              `json:"script,omitempty"`   // path of the script; of create and of schedules only
	Epoch     int64               `json:"epoch,omitempty"`    // number of the order in its run
	Void      bool                `json:"void,omitempty"`     // a decision that its gate ignored: it showed something else
	Schedule  string              `json:"schedule,omitempty"` // schedule or watch that it is about, by kind and name
}

// created is the action that begins a run.
const created = "create"

// Audit lists the orders and decisions of people about a run, the first one first.
func Audit(ctx context.Context, store state.Store, key state.RunKey) ([]AuditEntry, error) {
	run, err := store.Run(ctx, key)
	if err != nil {
		return nil, fmt.Errorf("read run %d: %w", key.Run, err)
	}
	return audit(ctx, store, run)
}

// AuditAll lists the orders and decisions about a workspace's runs, the latest run
// first. It stops after the run with which it has limit entries; 0: all runs. Orders
// about schedules are between those about the runs that began before and after them.
func AuditAll(ctx context.Context, store state.Store, workspace string, limit int) (entries []AuditEntry, err error) {
	schedules, err := scheduleOrders(ctx, store, workspace, limit)
	if err != nil {
		return nil, err
	}
	for page := (state.Page{Limit: limit}); ; {
		runs, next, err := store.Runs(ctx, workspace, page)
		if err != nil {
			return nil, fmt.Errorf("list the runs of workspace %s: %w", workspace, err)
		}
		for _, r := range runs {
			of, err := audit(ctx, store, r)
			if err != nil {
				return nil, err
			}
			slices.Reverse(of)
			for len(schedules) > 0 && schedules[0].Time.After(r.Created) {
				entries, schedules = append(entries, schedules[0]), schedules[1:]
			}
			if entries = append(entries, of...); limit > 0 && len(entries) >= limit {
				return entries, nil
			}
		}
		if page.From = next; next == 0 {
			return append(entries, schedules...), nil
		}
	}
}

func audit(ctx context.Context, store state.Store, run state.Run) (entries []AuditEntry, err error) {
	for after := int64(0); ; {
		events, err := store.Events(ctx, state.NodeKey{RunKey: run.RunKey}, after, state.PageMax)
		if err != nil {
			return nil, fmt.Errorf("read the events of run %d: %w", run.Run, err)
		}
		for _, e := range events {
			after = e.Seq
			d := AuditEntry{Time: e.Time, Workspace: run.Workspace, Run: run.Run, Actor: e.Actor}
			switch {
			case e.Kind == state.RunCreated:
				d.Action, d.Script = created, run.ScriptPath
			case e.Kind == state.OrderBegun && e.Command != nil && e.Command.OfPeople():
				d.Action, d.Nodes, d.Reason, d.Epoch = string(e.Command.Kind), e.Command.Nodes, e.Command.Reason, e.Epoch
				d.Via = e.Command.Via
				if d.Void, err = void(ctx, store, run.RunKey, *e.Command); err != nil {
					return nil, err
				}
			default:
				continue
			}
			entries = append(entries, d)
		}
		if len(events) < state.PageMax {
			return entries, nil
		}
	}
}

// void reports whether a gate ignored a decision, because it showed something else
// when the order reached it.
func void(ctx context.Context, store state.Store, key state.RunKey, o state.Command) (bool, error) {
	if o.Kind != state.CommandApprove && o.Kind != state.CommandReject {
		return false, nil
	}
	for _, redo := range o.Nodes {
		// a gate has no batches, and few events
		events, err := store.Events(ctx, state.NodeKey{RunKey: key, Node: redo.Node}, 0, state.PageMax)
		if err != nil {
			return false, fmt.Errorf("read the events of %s: %w", redo.Node, err)
		}
		for _, e := range events {
			if e.Kind == state.NodeHeard && e.Epoch == o.Epoch && e.Decision == nil {
				return true, nil
			}
		}
	}
	return false, nil
}
