package history_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/ops/history"
	"thalweg/internal/store/state"
	"thalweg/internal/test/effort"
	"thalweg/internal/test/statetest/hostile"
)

// play is a run to which things happen, on machines whose clocks differ.
type play struct {
	t      *testing.T
	store  state.Store
	key    state.RunKey
	rng    *rand.Rand
	now    time.Time
	claims []state.Claim
	orders int
	over   int // how often the run was complete
}

func newPlay(t *testing.T, seed uint64) *play {
	p := &play{t: t, store: hostile.New().Open(), rng: rand.New(rand.NewPCG(seed, 0)), now: noon}
	key, err := p.store.CreateRun(t.Context(), state.Run{RunKey: state.RunKey{Workspace: "main"}, Actor: "eva",
		Created: noon},
		[]state.NodeSpec{{Name: "a"}, {Name: "b", Ordinal: 1}, {Name: "c", Ordinal: 2, Inputs: []string{"a"}}})
	require.NoError(t, err)
	p.key = key
	return p
}

// clock moves on, and is off by up to a second.
func (p *play) clock() time.Time {
	p.now = p.now.Add(time.Duration(p.rng.IntN(300)) * time.Millisecond)
	return p.now.Add(time.Duration(p.rng.IntN(2000)-1000) * time.Millisecond)
}

// step does something. What cannot be done is not done.
func (p *play) step() {
	ctx := p.t.Context()
	node := state.NodeKey{RunKey: p.key, Node: []string{"a", "b", "c"}[p.rng.IntN(3)]}
	n, err := p.store.Node(ctx, node)
	require.NoError(p.t, err)
	now := p.clock()
	switch p.rng.IntN(10) {
	case 0:
		if n.Status == state.Pending {
			specs := make([]state.BatchSpec, 4)
			for i := range specs {
				specs[i].Batch = i
			}
			_, _ = state.PlanNode(ctx, p.store, node, n.Epoch, state.Plan{Record: []byte("x"),
				Batches: specs}, "w", now)
		}
	case 1:
		p.orders++
		kinds := []state.CommandKind{state.CommandStop, state.CommandReopen, state.CommandPause, state.CommandUnpause,
			state.CommandRedo, state.CommandReopen}
		o := state.Command{Kind: kinds[p.rng.IntN(len(kinds))], Token: fmt.Sprint(p.orders),
			Mark: state.Mark{Actor: "eva", Time: now}}
		if o.Kind == state.CommandRedo {
			o.Nodes = []state.CommandNode{{Node: node.Node}}
		}
		_ = state.Direct(ctx, p.store, p.key, o)
	case 2:
		if n.BatchesDone == n.BatchesTotal {
			_ = p.store.MoveNode(ctx, node, state.Move{Epoch: n.Epoch, From: state.Running,
				To: state.Succeeded, Now: now})
		}
		p.complete(now)
	case 3, 4, 5:
		if len(p.claims) > 0 {
			i := p.rng.IntN(len(p.claims))
			_ = p.store.Commit(ctx, p.claims[i], state.Outcome{Stats: state.Stats{RowsOut: 7}}, now)
			p.claims = slices.Delete(p.claims, i, i+1)
		}
	default:
		offers, _, err := p.store.Offers(ctx, node, p.now, state.Page{Limit: 3})
		require.NoError(p.t, err)
		for _, o := range offers {
			if c, err := p.store.Claim(ctx, state.ClaimRequest{Offer: o, Owner: "w", Token: "t", Now: now,
				Lease: p.now.Add(time.Hour)}); err == nil {
				p.claims = append(p.claims, c)
			}
		}
	}
}

// complete ends the run if it can be.
func (p *play) complete(now time.Time) {
	run, err := p.store.Run(p.t.Context(), p.key)
	require.NoError(p.t, err)
	nodes, err := p.store.Nodes(p.t.Context(), p.key)
	require.NoError(p.t, err)
	if !slices.ContainsFunc(nodes, func(n state.Node) bool { return n.Status != state.Succeeded }) {
		_ = p.store.CompleteRun(p.t.Context(), p.key, run.Epoch, "w", now)
	}
}

// reader keeps what a stream has given, as it is printed.
type reader struct {
	*history.Stream
	lines []history.Line
	text  []string
}

func (r *reader) read(t *testing.T, limit int) int {
	lines, err := r.Next(t.Context(), limit)
	require.NoError(t, err)
	for _, l := range lines {
		text, err := json.Marshal(l)
		require.NoError(t, err)
		r.lines, r.text = append(r.lines, l), append(r.text, string(text))
	}
	return len(lines)
}

func (r *reader) readAll(t *testing.T) {
	for r.read(t, 7) > 0 {
	}
}

// Whoever reads, whenever, reads the same bytes: all that has happened, each
// partition in its order, an order before those who hear of it and its end
// behind them, and the end of the run behind what it is the end of.
func TestStreamIsTheSameForAll(t *testing.T) {
	t.Parallel()
	complete := 0
	for seed := range uint64(effort.Of(5, 10, 300)) {
		p := newPlay(t, seed)
		live := &reader{Stream: history.NewStream(p.store, p.key, 0)}
		var all []*reader
		for range 300 {
			p.step()
			switch p.rng.IntN(12) {
			case 0:
				live.read(t, 1+p.rng.IntN(20))
			case 1:
				r := &reader{Stream: history.NewStream(p.store, p.key, 0)}
				r.read(t, 1+p.rng.IntN(200))
				all = append(all, r)
			case 2:
				if len(all) > 0 {
					all[p.rng.IntN(len(all))].read(t, 1+p.rng.IntN(50))
				}
			}
		}
		live.readAll(t)
		later := &reader{Stream: history.NewStream(p.store, p.key, 0)}
		later.readAll(t)
		require.Equal(t, live.text, later.text, "seed %d", seed)
		for _, r := range all {
			require.Equal(t, later.text[:len(r.text)], r.text, "seed %d", seed)
			r.readAll(t)
			require.Equal(t, later.text, r.text, "seed %d", seed)
		}
		after := p.rng.IntN(len(later.text) + 1)
		rest := &reader{Stream: history.NewStream(p.store, p.key, int64(after))}
		rest.readAll(t)
		require.Equal(t, later.text[after:], append([]string{}, rest.text...), "seed %d", seed)
		p.check(later.lines, seed)
		complete += p.over
	}
	require.Greater(t, complete, 2)
}

// check looks at the order of all that has happened.
func (p *play) check(lines []history.Line, seed uint64) {
	p.t.Helper()
	seen := map[string]int64{}
	begun, ended, over := int64(0), int64(0), false
	for i, l := range lines {
		require.Equal(p.t, int64(i+1), l.N)
		require.Equal(p.t, seen[l.Node]+1, l.Seq, "seed %d", seed)
		seen[l.Node]++
		switch l.Kind {
		case state.OrderBegun:
			begun, over = l.Epoch, false
		case state.OrderEnded:
			ended = l.Epoch
		case state.RunCompleted:
			over = true
			p.over++
		case state.NodeHeard:
			require.LessOrEqual(p.t, l.Epoch, begun, "seed %d, line %d", seed, l.N)
			require.Greater(p.t, l.Epoch, ended, "seed %d, line %d", seed, l.N)
		default:
			require.False(p.t, over, "seed %d, line %d: %s of a run that is over", seed, l.N, l.Kind)
		}
	}
	for _, node := range []string{"", "a", "b", "c"} {
		events, err := p.store.Events(context.Background(), state.NodeKey{RunKey: p.key, Node: node}, seen[node], 1)
		require.NoError(p.t, err)
		require.Empty(p.t, events, "seed %d: nothing is left out", seed)
	}
}
