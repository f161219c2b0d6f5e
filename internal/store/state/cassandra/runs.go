package cassandra

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"thalweg/internal/base/fault"
	"thalweg/internal/store/state"
)

// workspaceHead is the content of column data in the head of a workspace's partition.
type workspaceHead struct {
	Last int64 `json:"last"` // number of the latest run
}

// tokenRow says which run a creator's token has made.
type tokenRow struct {
	Token string `json:"token"`
	Run   int64  `json:"run"`
}

// runHead is the part of a run that every change rewrites.
type runHead struct {
	Run    state.Run             `json:"run"` // without pins and nodes
	Events int64                 `json:"events"`
	Spans  int64                 `json:"spans,omitempty"`
	Roles  map[string]state.Role `json:"roles,omitempty"`
}

// runMore is the part of a run that never changes, and that lists do not need.
type runMore struct {
	Nodes []state.NodeSpec `json:"nodes,omitempty"` // by ordinal
	Pins  []state.Pin      `json:"pins,omitempty"`
}

// CreateRun implements state.Store: a number first, then what is found by it
// (the note, the blobs, the nodes), then the run, which nobody sees before.
func (s *Store) CreateRun(ctx context.Context, run state.Run, nodes []state.NodeSpec,
	blobs ...state.Blob) (state.RunKey, error) {
	o := s.operation("CreateRun", fmt.Sprintf("create run in workspace %q", run.Workspace))
	if err := checkNodes(run.Workspace, nodes); err != nil {
		return state.RunKey{}, o.explain(err)
	}
	if run.Created.IsZero() {
		run.Created = time.Now()
	}
	if err := o.number(ctx, &run); err != nil {
		return state.RunKey{}, err
	}
	if err := o.create(ctx, run, nodes, blobs); err != nil {
		return state.RunKey{}, o.explain(err)
	}
	return run.RunKey, nil
}

func checkNodes(workspace string, nodes []state.NodeSpec) error {
	if workspace == "" {
		return fault.New(fault.Bug, "a run needs the name of a workspace")
	}
	seen := make(map[string]bool, len(nodes))
	for _, n := range nodes {
		if n.Name == "" || seen[n.Name] {
			return fault.New(fault.Bug, "node name %q is empty or used twice in a run", n.Name)
		}
		seen[n.Name] = true
	}
	return nil
}

// number gives a run its number in its workspace: that which its token has, or the next.
func (o *operation) number(ctx context.Context, run *state.Run) error {
	token := cmp.Or(run.Token, rand.Text())
	sum := sha256.Sum256([]byte(token))
	at := place{kind: kindToken, n1: int64(binary.BigEndian.Uint64(sum[:8])),
		n2: int64(binary.BigEndian.Uint64(sum[8:16]))} //nolint:gosec // any number
	p := ofWorkspace(run.Workspace)
	return o.update(ctx, p, func(ctx context.Context) (*change, error) {
		var head workspaceHead
		var known tokenRow
		rev, err := o.readRows(ctx, p, func(row place, data []byte) error {
			if row == headPlace {
				return o.codec.unpack(data, &head)
			}
			return o.codec.unpack(data, &known)
		}, at)
		if err != nil {
			return nil, err
		}
		if known.Run > 0 {
			run.Run = known.Run
			return nil, nil
		}
		if rev == 0 {
			if err := o.write(ctx, `INSERT INTO state_workspaces (one, workspace) VALUES (0, ?)`,
				run.Workspace); err != nil {
				return nil, err
			}
		}
		run.Run = head.Last + 1
		c := &change{rev: rev}
		data, err := o.codec.pack(workspaceHead{Last: run.Run})
		made, err2 := o.codec.pack(tokenRow{Token: token, Run: run.Run})
		c.put(p, at, column{"data", made})
		c.puts(p, column{"data", data})
		return c, errors.Join(err, err2)
	})
}

// readRows reads rows of a partition, and its head, at one moment; rev is 0 if there is none.
func (o *operation) readRows(ctx context.Context, p partition, each func(at place, data []byte) error,
	places ...place) (rev int64,
	err error) {
	text, args := "SELECT kind, n1, n2, rev, data"+rowsOf+"(kind, n1, n2) IN ((0, 0, 0)", p.with()
	for _, at := range places {
		text += ", (?, ?, ?)"
		args = append(args, at.kind, at.n1, at.n2)
	}
	err = o.query(ctx, imageRows, text+")", args, func(scan func(...any) error) error {
		var at place
		var r int64
		var data []byte
		if err := scan(&at.kind, &at.n1, &at.n2, &r, &data); err != nil {
			return err
		}
		if at == headPlace {
			rev = r
		}
		return each(at, data)
	})
	return rev, err
}

// create makes a run that has a number, unless it is there.
func (o *operation) create(ctx context.Context, run state.Run, nodes []state.NodeSpec, blobs []state.Blob) error {
	rev, err := o.readRows(ctx, ofRun(run.RunKey), func(place, []byte) error { return nil })
	if err != nil || rev > 0 {
		return err
	}
	for _, b := range blobs {
		if err := o.putBlob(ctx, b); err != nil {
			return err
		}
	}
	if err := o.putNote(ctx, run.Workspace, state.OpenNote(run.Run, "", run.Created)); err != nil {
		return err
	}
	err = together(ctx, len(nodes), atOnce,
		func(ctx context.Context, i int) error { return o.createNode(ctx, run.RunKey, nodes[i]) })
	if err != nil {
		return err
	}
	return o.createRecord(ctx, run, nodes)
}

// begin makes a partition, unless it is there.
func (o *operation) begin(ctx context.Context, p partition, columns []column, events ...eventRow) error {
	c := &change{}
	for i, e := range events {
		data, err := o.codec.pack(e)
		if err != nil {
			return err
		}
		c.put(p, place{kind: kindEvent, n1: int64(i + 1)}, column{"data", data})
	}
	c.puts(p, columns...)
	o2 := *o
	tried := false
	return o2.update(ctx, p, func(ctx context.Context) (*change, error) {
		if !tried {
			tried = true
			return c, nil
		}
		rev, err := o2.readRows(ctx, p, func(place, []byte) error { return nil })
		if err != nil || rev > 0 {
			return nil, err
		}
		return c, nil
	})
}

func (o *operation) createNode(ctx context.Context, key state.RunKey, spec state.NodeSpec) error {
	node := state.Node{NodeKey: state.NodeKey{RunKey: key, Node: spec.Name}, NodeSpec: spec, Status: state.Pending}
	head, err := o.codec.pack(nodeHead{})
	more, err2 := o.codec.pack(node)
	sums, err3 := o.codec.pack(nodeSums{})
	if err := errors.Join(err, err2, err3); err != nil {
		return err
	}
	return o.begin(ctx, ofNode(node.NodeKey), []column{{"data", head}, {"more", more}, {"sums", sums}})
}

func (o *operation) createRecord(ctx context.Context, run state.Run, nodes []state.NodeSpec) error {
	nodes = slices.Clone(nodes)
	slices.SortStableFunc(nodes, func(a, b state.NodeSpec) int { return cmp.Compare(a.Ordinal, b.Ordinal) })
	more, err := o.codec.pack(runMore{Nodes: nodes, Pins: run.Pins})
	if err != nil {
		return err
	}
	run.Status, run.Epoch, run.Command, run.Finished, run.Failure, run.Invalidated, run.Dropped, run.Pins,
		run.Nodes = state.Running, 0, nil,
		time.Time{}, nil, nil, nil, nil, nil
	run.Created, run.Deadline = stored(run.Created), stored(run.Deadline)
	head, err := o.codec.pack(runHead{Run: run, Events: 1})
	if err != nil {
		return err
	}
	return o.begin(ctx, ofRun(run.RunKey), []column{{"data", head}, {"more", more}},
		eventRow{Version: state.EventVersion, Time: run.Created, Actor: run.Actor, Kind: state.RunCreated,
			Data: state.EventData{Status: state.Running}})
}

// readRun reads a run's head, and what of it never changes if it is asked for.
func (o *operation) readRun(ctx context.Context, key state.RunKey, more *runMore) (rev int64, head runHead, err error) {
	if !isRun(key) {
		return 0, head, state.ErrNotFound
	}
	columns := "rev, data"
	if more != nil {
		columns += ", more"
	}
	err = o.query(ctx, 1, "SELECT "+columns+rowsOf+"kind = 0 AND n1 = 0 AND n2 = 0", ofRun(key).with(),
		func(scan func(...any) error) error {
			var data, rest []byte
			into := []any{&rev, &data}
			if more != nil {
				into = append(into, &rest)
			}
			if err := scan(into...); err != nil {
				return err
			}
			if err := o.codec.unpack(data, &head); err != nil || more == nil {
				return err
			}
			return o.codec.unpack(rest, more)
		})
	if err == nil && rev == 0 {
		err = state.ErrNotFound
	}
	return rev, head, err
}

// Run implements state.Store.
func (s *Store) Run(ctx context.Context, key state.RunKey) (state.Run, error) {
	o := s.operation("Run", "read "+nameRun(key))
	var more runMore
	_, head, err := o.readRun(ctx, key, &more)
	if err != nil {
		return state.Run{}, o.explain(err)
	}
	head.Run.Pins = more.Pins
	return head.Run, nil
}

// Runs implements state.Store.
func (s *Store) Runs(ctx context.Context, workspace string, page state.Page) (runs []state.Run, next int64, err error) {
	o := s.operation("Runs", fmt.Sprintf("list runs of workspace %q", workspace))
	last, err := o.lastRun(ctx, workspace)
	if err != nil {
		return nil, 0, o.explain(err)
	}
	if page.From > 0 {
		last = min(last, page.From-1)
	}
	limit := pageLimit(page.Limit)
	for last > 0 && len(runs) < limit {
		some := make([]*state.Run, min(int64(limit-len(runs)), last))
		err := together(ctx, len(some), atOnce, func(ctx context.Context, i int) (err error) {
			some[i], err = o.brief(ctx, state.RunKey{Workspace: workspace, Run: last - int64(i)})
			return err
		})
		if err != nil {
			return nil, 0, o.explain(err)
		}
		last -= int64(len(some))
		for _, r := range some {
			if r != nil { // else its creator has not come so far
				runs = append(runs, *r)
			}
		}
	}
	if last > 0 {
		next = last + 1
	}
	return runs, next, nil
}

func (o *operation) lastRun(ctx context.Context, workspace string) (int64, error) {
	var head workspaceHead
	_, err := o.readRows(ctx, ofWorkspace(workspace),
		func(_ place, data []byte) error { return o.codec.unpack(data, &head) })
	return head.Last, err
}

// brief is a run as lists have it; nil if it is not there.
func (o *operation) brief(ctx context.Context, key state.RunKey) (*state.Run, error) {
	var more runMore
	_, head, err := o.readRun(ctx, key, &more)
	if errors.Is(err, state.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	nodes, err := o.nodes(ctx, key, more.Nodes)
	for _, n := range nodes {
		head.Run.Nodes = append(head.Run.Nodes, state.NodeBrief{Name: n.Name, Table: n.Table, Status: n.Status,
			RowsOut: n.RowsOut, BytesOut: n.BytesOut, Spent: n.Spent})
	}
	return &head.Run, err
}

// Workspaces implements state.Store.
func (s *Store) Workspaces(ctx context.Context) (names []string, err error) {
	o := s.operation("Workspaces", "list workspaces")
	var all []string
	err = o.query(ctx, state.PageMax, `SELECT workspace FROM state_workspaces WHERE one = 0`, nil,
		func(scan func(...any) error) error {
			var name string
			err := scan(&name)
			all = append(all, name)
			return err
		})
	if err != nil {
		return nil, o.explain(err)
	}
	begun := make([]bool, len(all))
	err = together(ctx, len(all), atOnce, func(ctx context.Context, i int) (err error) {
		begun[i], err = o.hasBegun(ctx, all[i])
		return err
	})
	for i, name := range all {
		if begun[i] {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, o.explain(err)
}

// hasBegun reports whether a workspace has had a run: it has its name before.
func (o *operation) hasBegun(ctx context.Context, workspace string) (bool, error) {
	if _, ok := o.begun.get(workspace); ok {
		return true, nil
	}
	last, err := o.lastRun(ctx, workspace)
	if last > 0 {
		o.begun.put(workspace, struct{}{})
	}
	return last > 0, err
}
