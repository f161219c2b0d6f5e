package notify

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"thalweg/internal/base/fault"
	"thalweg/internal/base/message"
	"thalweg/internal/lang/script"
	"thalweg/internal/run/gate"
	"thalweg/internal/store/state"
)

// Store reads runs, and holds the role of the notifying process.
type Store interface {
	Run(ctx context.Context, key state.RunKey) (state.Run, error)
	Nodes(ctx context.Context, key state.RunKey) ([]state.Node, error)
	Node(ctx context.Context, key state.NodeKey) (state.Node, error)
	Events(ctx context.Context, key state.NodeKey, after int64, limit int) ([]state.Event, error)
	Acquire(ctx context.Context, key state.RunKey, role, owner string, now, until time.Time) (state.Role, error)
	Resign(ctx context.Context, key state.RunKey, role, owner string) error
}

// Registry keeps the records: one for each run that has hooks and is not over, or of
// which something is owed. It may lose nothing that it has taken. Writers do
// not see each other: the last counts. A record may be replaced by an older
// one, then something is told twice, with the same id.
type Registry interface {
	Put(ctx context.Context, key state.RunKey, record []byte) error
	Remove(ctx context.Context, key state.RunKey) error
	List(ctx context.Context) ([]Entry, error)
}

// Entry is a record in a box.
type Entry struct {
	Run    state.RunKey
	Record []byte
}

// recordVersion is that of the form of records.
const recordVersion = 1

// record is the stored progress of a run's notices. Everything up to Seen has been told, or is owed.
type record struct {
	Version int               `json:"v"`
	Seen    map[string]int64  `json:"seen"`           // events of the run ("") and of its gates (short digests)
	Order   state.CommandKind `json:"order,omitzero"` // begun, as far as seen
	Over    bool              `json:"over,omitzero"`  // as far as seen
	Late    bool              `json:"late,omitzero"`  // the deadline is dealt with
	Owed    []owed            `json:"owed,omitempty"`
}

// owed is an event that not all hooks have been told of.
type owed struct {
	Kind  message.Kind        `json:"k"`
	Node  string              `json:"n,omitempty"` // whose event it is
	Seq   int64               `json:"q,omitzero"`  // its number
	At    int64               `json:"a"`           // when it happened, Unix milliseconds
	Hooks map[int]sendAttempt `json:"h"`           // by their places in the run's list
}

// sendAttempt counts the tries of a hook, and has the time of the next one.
type sendAttempt struct {
	Times int   `json:"t,omitzero"`
	Next  int64 `json:"x,omitzero"` // Unix milliseconds
}

// Limits of a record: it fits into a note of the state.
const (
	owedEventsMax = 4   // then the next events wait in the run
	gatesMax      = 100 // of a run whose openings are told
	eventsPage    = 200

	seenBytes  = 24 // of an event that was seen, at most
	owedBytes  = 160
	triedBytes = 36
)

// room reports whether one more event can be owed. There is always room for one.
func (rec *record) room(hooks []script.Hook) bool {
	bytes := seenBytes * len(rec.Seen)
	for _, o := range rec.Owed {
		bytes += owedBytes + len(o.Node) + triedBytes*len(o.Hooks)
	}
	return len(rec.Owed) == 0 || len(rec.Owed) < owedEventsMax &&
		bytes+2*owedBytes+triedBytes*len(hooks) < state.NoteBytesMax
}

func parseRecord(text []byte) (*record, error) {
	rec := &record{}
	if err := json.Unmarshal(text, rec); err != nil {
		return nil, fmt.Errorf("read what was told: %w", err)
	}
	if rec.Version != recordVersion {
		return nil, fault.OtherForm("the record of who was told of a run", rec.Version, recordVersion)
	}
	if rec.Seen == nil {
		rec.Seen = map[string]int64{}
	}
	return rec, nil
}

func (rec *record) encode() ([]byte, error) {
	text, err := json.Marshal(rec)
	if err != nil {
		return nil, fmt.Errorf("encode what was told: %w", err)
	}
	return text, nil
}

// begin makes the record of a run that is about to be worked on. Of a run that
// goes on again, all up to that order has been told, or was before there were records.
func begin(ctx context.Context, s Store, run state.Run) (*record, error) {
	rec := &record{Version: recordVersion, Seen: map[string]int64{}}
	resumed := func(e state.Event) bool {
		return e.Kind == state.OrderBegun && e.Command != nil &&
			(e.Command.Kind == state.CommandReopen || e.Command.Kind == state.CommandRedo)
	}
	last, err := lastWhere(ctx, s, state.NodeKey{RunKey: run.RunKey}, resumed)
	if err != nil || last == nil {
		return rec, err
	}
	rec.Seen[""] = last.Seq
	rec.Late = !run.Deadline.IsZero() && last.Time.After(run.Deadline) // nobody expected it by then
	nodes, err := s.Nodes(ctx, run.RunKey)
	if err != nil {
		return nil, fmt.Errorf("read the nodes of run %d: %w", run.Run, err)
	}
	for _, n := range nodes {
		if !gate.Is(n.NodeSpec) {
			continue
		}
		heard, err := lastWhere(ctx, s, n.NodeKey, func(e state.Event) bool { return e.Kind == state.NodeHeard })
		if err != nil {
			return nil, err
		}
		if heard != nil {
			rec.Seen[short(n.Name)] = heard.Seq
		}
	}
	return rec, nil
}

// lastWhere finds the last event of which something holds.
func lastWhere(ctx context.Context, s Store, key state.NodeKey, is func(state.Event) bool) (last *state.Event,
	err error) {
	for after := int64(0); ; {
		events, err := s.Events(ctx, key, after, eventsPage)
		if err != nil {
			return nil, fmt.Errorf("read the events of run %d: %w", key.Run, err)
		}
		for _, e := range events {
			if after = e.Seq; is(e) {
				last = &e
			}
		}
		if len(events) < eventsPage {
			return last, nil
		}
	}
}

// look takes note of what has happened since, and reports whether it did.
func (rec *record) look(ctx context.Context, s Store, run state.Run, hooks []script.Hook, now time.Time) (changed bool,
	err error) {
	gates, err := rec.lookAtGates(ctx, s, run, hooks)
	if err != nil {
		return gates, err
	}
	for rec.room(hooks) {
		events, err := s.Events(ctx, state.NodeKey{RunKey: run.RunKey}, rec.Seen[""], 1)
		if err != nil {
			return changed, fmt.Errorf("read the events of run %d: %w", run.Run, err)
		}
		if len(events) == 0 {
			break
		}
		if changed = true; rec.endsLate(events[0], run) { // nobody was there to see it
			rec.late(run, hooks)
			continue
		}
		rec.take(events[0], hooks)
	}
	if !rec.Over && !rec.Late && !run.Deadline.IsZero() && !now.Before(run.Deadline) && rec.room(hooks) {
		rec.late(run, hooks)
		changed = true
	}
	return changed || gates, nil
}

// endsLate reports whether a run is over by an event, behind its deadline, and
// that it was late is not dealt with.
func (rec *record) endsLate(e state.Event, run state.Run) bool {
	over := e.Kind == state.RunCompleted || e.Kind == state.OrderEnded && e.Status.Terminal()
	return over && !rec.Late && !run.Deadline.IsZero() && e.Time.After(run.Deadline)
}

// take takes note of an event of the run itself.
func (rec *record) take(e state.Event, hooks []script.Hook) {
	var kind message.Kind
	switch e.Kind {
	case state.OrderBegun:
		if e.Command != nil {
			rec.Order = e.Command.Kind
		}
	case state.OrderEnded:
		switch rec.Order {
		case state.CommandStop:
			kind = message.Stopped
		case state.CommandFail:
			kind = message.Failed
		case state.CommandPause:
			kind = message.Waiting
		}
		rec.Over, rec.Order = e.Status.Terminal(), ""
	case state.RunCompleted:
		kind, rec.Over = message.Done, true
	}
	rec.Seen[""] = e.Seq
	if kind != "" {
		rec.owe(owed{Kind: kind, Seq: e.Seq, At: e.Time.UnixMilli()}, hooks)
	}
}

func (rec *record) late(run state.Run, hooks []script.Hook) {
	rec.Late = true
	rec.owe(owed{Kind: message.Late, At: run.Deadline.UnixMilli()}, hooks)
}

// lookAtGates takes note of gates that were opened.
func (rec *record) lookAtGates(ctx context.Context, s Store, run state.Run, hooks []script.Hook) (changed bool,
	err error) {
	if !slices.ContainsFunc(hooks, func(h script.Hook) bool { return slices.Contains(h.On, message.Waiting) }) {
		return false, nil
	}
	nodes, err := s.Nodes(ctx, run.RunKey)
	if err != nil {
		return false, fmt.Errorf("read the nodes of run %d: %w", run.Run, err)
	}
	gates := 0
	for _, n := range nodes {
		if !gate.Is(n.NodeSpec) || gates == gatesMax {
			continue
		}
		gates++
		for rec.Seen[short(n.Name)] < n.Revision && rec.room(hooks) {
			events, err := s.Events(ctx, n.NodeKey, rec.Seen[short(n.Name)], 1)
			if err != nil {
				return changed, fmt.Errorf("read the events of node %s: %w", n.Name, err)
			}
			if len(events) == 0 {
				break
			}
			e := events[0]
			rec.Seen[short(n.Name)], changed = e.Seq, true
			if e.Kind == state.NodeMoved && e.Status == state.Waiting {
				rec.owe(owed{Kind: message.Waiting, Node: n.Name, Seq: e.Seq, At: e.Time.UnixMilli()}, hooks)
			}
		}
	}
	return changed, nil
}

// owe notes an event for the hooks that want to know of it.
func (rec *record) owe(o owed, hooks []script.Hook) {
	o.Hooks = map[int]sendAttempt{}
	for i, h := range hooks {
		if slices.Contains(h.On, o.Kind) {
			o.Hooks[i] = sendAttempt{}
		}
	}
	if len(o.Hooks) > 0 {
		rec.Owed = append(rec.Owed, o)
	}
}

// settle takes a hook off an event that it was told of, or never will be.
func (rec *record) settle(event, hook int) {
	delete(rec.Owed[event].Hooks, hook)
}

// tidy removes events that all hooks have been told of.
func (rec *record) tidy() {
	rec.Owed = slices.DeleteFunc(rec.Owed, func(o owed) bool { return len(o.Hooks) == 0 })
}

// next returns the time at which the first message is due; the zero time if none is.
func (rec *record) next() (first time.Time) {
	for _, o := range rec.Owed {
		for _, tried := range o.Hooks {
			if at := time.UnixMilli(tried.Next); first.IsZero() || at.Before(first) {
				first = at
			}
		}
	}
	return first
}

func short(name string) string {
	sum := sha256.Sum256([]byte(name))
	return hex.EncodeToString(sum[:4])
}

// eventID is the id of an event of a run: whoever tells of it finds the same.
func eventID(run state.Run, o owed) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\n%d\n%s\n%s\n%s\n%d\n%s", run.Workspace, run.Run, run.Token,
		run.Created.UTC().Format(time.RFC3339Nano), o.Node, o.Seq, o.Kind))
	return "evt_" + hex.EncodeToString(sum[:16])
}
