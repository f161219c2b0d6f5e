package history

import (
	"context"
	"fmt"
	"slices"
	"time"

	"thalweg/internal/store/state"
)

// AuditEntry is one order or decision about a run. It is read from the run's events, which nobody can edit.
type AuditEntry struct {
	Time      time.Time    `json:"time"`
	Workspace string       `json:"workspace"`
	Run       int64        `json:"run"`
	Actor     string       `json:"actor"`
	Via       string       `json:"via,omitempty"`    // way in: see state.Mark
	Action    string       `json:"action"`           // create, or the order: see state.CommandKind
	Nodes     []state.Redo `json:"nodes,omitempty"`  // that it is about; none: the whole run
	Reason    string       `json:"reason,omitempty"` // by their own account
	Script    string       `json:"script,omitempty"` // that the run is of, of create
	Epoch     int64        `json:"epoch,omitempty"`  // number of the order in its run
	Void      bool         `json:"void,omitempty"`   // a decision about something else than was there
}

// created is the action that begins a run.
const created = "create"

// Audit lists what people have done to a run, in its order.
func Audit(ctx context.Context, store state.Store, key state.RunKey) ([]AuditEntry, error) {
	run, err := store.Run(ctx, key)
	if err != nil {
		return nil, fmt.Errorf("read run %d: %w", key.Run, err)
	}
	return audit(ctx, store, run)
}

// AuditAll lists what people have done to a workspace's runs, the latest runs
// first: at least so many deeds, if there are as many; 0: all.
func AuditAll(ctx context.Context, store state.Store, workspace string, limit int) (deeds []AuditEntry, err error) {
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
			if deeds = append(deeds, of...); limit > 0 && len(deeds) >= limit {
				return deeds, nil
			}
		}
		if page.From = next; next == 0 {
			return deeds, nil
		}
	}
}

func audit(ctx context.Context, store state.Store, run state.Run) (deeds []AuditEntry, err error) {
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
			deeds = append(deeds, d)
		}
		if len(events) < state.PageMax {
			return deeds, nil
		}
	}
}

// void reports whether a decision was about something else than was there when
// its node heard of it.
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
