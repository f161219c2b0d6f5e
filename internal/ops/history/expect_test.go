package history_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/ops/history"
	"thalweg/internal/run/gate"
	"thalweg/internal/store/state"
)

// pastStore has the nodes of complete runs.
type pastStore struct {
	state.Store
	nodes map[int64][]state.Node
	reads int
}

func (s *pastStore) Nodes(_ context.Context, key state.RunKey) ([]state.Node, error) {
	s.reads++
	return s.nodes[key.Run], nil
}

// complete adds a run that began at noon a day before: a took as many seconds, then b, which began a second later.
func (s *pastStore) complete(number int64, a, b int, change func(nodes []state.Node)) state.Run {
	began := noon.Add(-24 * time.Hour)
	run := state.Run{RunKey: state.RunKey{Workspace: "main", Run: number}, Status: state.Complete, Created: began,
		Finished: began.Add(time.Hour)}
	node := func(name string, from, to int, inputs ...string) state.Node {
		return state.Node{NodeKey: state.NodeKey{RunKey: run.RunKey, Node: name},
			NodeSpec: state.NodeSpec{Name: name, Inputs: inputs}, Status: state.Succeeded,
			Started: began.Add(time.Duration(from) * time.Second), Finished: began.Add(time.Duration(to) * time.Second)}
	}
	s.nodes[number] = []state.Node{node("a", 0, a), node("b", a+1, a+1+b, "a")}
	if change != nil {
		change(s.nodes[number])
	}
	return run
}

func asksAt(t *testing.T, n *state.Node, since time.Time, decided time.Duration) {
	t.Helper()
	text, err := gate.Record{Version: 1, Gate: "g", Since: since}.Encode()
	require.NoError(t, err)
	n.Kind, n.Gate = state.KindGate, text
	if decided > 0 {
		n.Decision = &state.Decision{Mark: state.Mark{Time: since.Add(decided)}}
		n.Started, n.Epoch = time.Time{}, 1
	}
}

// A run ends when its nodes take what they took before, and what is done of them counts.
func TestExpect(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		status state.Status
		past   func(s *pastStore) []state.Run
		change func(f *history.Facts, a, b *state.Node)
		want   []time.Duration // from noon: expected, from, to; none: nothing is expected
		of     int
	}{
		"nothing before": {},
		"one before, nothing done": {past: func(s *pastStore) []state.Run {
			return []state.Run{s.complete(1, 60, 30, nil)}
		}, want: []time.Duration{91 * time.Second, 91 * time.Second, 91 * time.Second}, of: 1},
		"three before": {past: func(s *pastStore) []state.Run {
			return []state.Run{s.complete(1, 60, 30, nil), s.complete(2, 10, 9, nil), s.complete(3, 70, 129, nil)}
		}, want: []time.Duration{91 * time.Second, 20 * time.Second, 200 * time.Second}, of: 3},
		"two before: between them": {past: func(s *pastStore) []state.Run {
			return []state.Run{s.complete(1, 60, 39, nil), s.complete(2, 10, 9, nil)}
		}, want: []time.Duration{60 * time.Second, 20 * time.Second, 100 * time.Second}, of: 2},
		"more than are needed": {past: func(s *pastStore) (out []state.Run) {
			for i := range int64(15) {
				out = append(out, s.complete(i+1, 60, 39, nil))
			}
			return out
		}, want: []time.Duration{100 * time.Second, 100 * time.Second, 100 * time.Second}, of: history.ExperiencesMost},
		"other nodes before": {past: func(s *pastStore) []state.Run {
			return []state.Run{s.complete(1, 60, 30, func(nodes []state.Node) { nodes[1].Name = "c" })}
		}},
		"the node that is done had another name": {past: func(s *pastStore) []state.Run {
			return []state.Run{s.complete(1, 60, 30, func(nodes []state.Node) { nodes[0].Name, nodes[1].Inputs[0] = "x", "x" })}
		}, change: func(_ *history.Facts, a, _ *state.Node) {
			works(a, 1, 1, time.Minute)
		}, want: []time.Duration{31 * time.Second, 31 * time.Second, 31 * time.Second}, of: 1},
		"half of a node in half of its time": {past: func(s *pastStore) []state.Run {
			return []state.Run{s.complete(1, 60, 30, nil)}
		}, change: func(_ *history.Facts, a, _ *state.Node) {
			works(a, 10, 5, 30*time.Second)
		}, want: []time.Duration{61 * time.Second, 61 * time.Second, 61 * time.Second}, of: 1},
		"half of a node, three times as slow": {past: func(s *pastStore) []state.Run {
			return []state.Run{s.complete(1, 60, 30, nil)}
		}, change: func(_ *history.Facts, a, _ *state.Node) {
			works(a, 10, 5, 90*time.Second)
		}, want: []time.Duration{91 * time.Second, 91 * time.Second, 91 * time.Second}, of: 1},
		"longer than ever": {past: func(s *pastStore) []state.Run {
			return []state.Run{s.complete(1, 60, 30, nil)}
		}, change: func(_ *history.Facts, a, _ *state.Node) {
			works(a, 10, 0, 90*time.Second)
		}, want: []time.Duration{31 * time.Second, 31 * time.Second, 31 * time.Second}, of: 1},
		"rows that were taken over before are computed now": {past: func(s *pastStore) []state.Run {
			return []state.Run{s.complete(1, 0, 0, func(nodes []state.Node) { nodes[0].ReusedFrom = &nodes[0].NodeKey }),
				s.complete(2, 60, 30, nil)}
		}, change: func(_ *history.Facts, a, _ *state.Node) {
			works(a, 10, 0, 0)
			a.PlanDigest = "d"
		}, want: []time.Duration{91 * time.Second, 91 * time.Second, 91 * time.Second}, of: 1},
		"a gate takes what people took": {past: func(s *pastStore) []state.Run {
			return []state.Run{s.complete(1, 60, 30, func(nodes []state.Node) {
				asksAt(t, &nodes[0], noon.Add(-24*time.Hour), time.Hour)
			})}
		}, change: func(_ *history.Facts, a, _ *state.Node) {
			a.Status = state.Waiting
			asksAt(t, a, noon.Add(-10*time.Minute), 0)
		}, want: []time.Duration{50*time.Minute + 30*time.Second, 50*time.Minute + 30*time.Second,
			50*time.Minute + 30*time.Second}, of: 1},
		"a gate that asked nobody before": {past: func(s *pastStore) []state.Run {
			return []state.Run{s.complete(1, 60, 30, nil)}
		}, change: func(_ *history.Facts, a, _ *state.Node) {
			a.Status = state.Waiting
			asksAt(t, a, noon.Add(-10*time.Minute), 0)
		}},
		"paused": {status: state.Paused, past: func(s *pastStore) []state.Run {
			return []state.Run{s.complete(1, 60, 30, nil)}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &pastStore{nodes: map[int64][]state.Node{}}
			var earlier []state.Run
			if tc.past != nil {
				earlier = tc.past(s)
			}
			if tc.change == nil {
				tc.change = func(*history.Facts, *state.Node, *state.Node) {}
			}
			if tc.status == "" {
				tc.status = state.Running
			}
			f := stateOf(tc.status, tc.change)
			f.Run.Run, f.Run.Deadline = 99, noon.Add(25*time.Second)
			known := history.NewExperience(s)
			got, err := known.Expect(t.Context(), f.Run, f.Nodes, earlier, noon)
			require.NoError(t, err)
			require.Equal(t, tc.of, got.Of)
			require.Equal(t, f.Run.Deadline, *got.Deadline)
			require.Equal(t, len(tc.want) == 0, got.Why != "", got.Why)
			if len(tc.want) == 0 {
				require.Nil(t, got.Expected)
				require.False(t, got.Late(noon))
				require.True(t, got.Late(noon.Add(time.Minute)))
				return
			}
			for i, at := range []*time.Time{got.Expected, got.From, got.To} {
				require.Equal(t, tc.want[i], at.Sub(noon))
			}
			require.True(t, got.Late(noon))
			require.False(t, history.Expectation{Expected: got.Expected}.Late(noon), "it has no deadline")
			reads := s.reads
			_, err = known.Expect(t.Context(), f.Run, f.Nodes, earlier, noon)
			require.NoError(t, err)
			require.Equal(t, reads, s.reads, "each run is read once")
		})
	}
}

// A run of tomorrow has the nodes of the latest one, and is expected to take as long.
func TestExpectNext(t *testing.T) {
	t.Parallel()
	s := &pastStore{nodes: map[int64][]state.Node{}}
	earlier := []state.Run{s.complete(2, 60, 30, nil), s.complete(1, 10, 9, nil)}
	begins := noon.Add(24 * time.Hour)
	got, err := history.NewExperience(s).ExpectNext(t.Context(), begins, begins.Add(time.Minute), earlier)
	require.NoError(t, err)
	require.Equal(t, []time.Duration{20 * time.Second, 91 * time.Second}, []time.Duration{got.From.Sub(begins),
		got.To.Sub(begins)})
	require.False(t, got.Late(begins), "expected after 55.5 s")
	got, err = history.NewExperience(s).ExpectNext(t.Context(), begins, time.Time{}, nil)
	require.NoError(t, err)
	require.Nil(t, got.Expected)
	require.NotEmpty(t, got.Why)
}
