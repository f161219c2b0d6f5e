package sqlite

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/store/state"
)

// What anybody writes changes the version, and the revision of the run that it is about.
func TestWatch(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	path := filepath.Join(t.TempDir(), "state.db")
	s, other := openTest(t, path), openTest(t, path)
	first, second := state.RunKey{Workspace: "w", Run: 1}, state.RunKey{Workspace: "w", Run: 2}
	look := func() (int64, []int64) {
		version, err := s.DataVersion(ctx)
		require.NoError(t, err)
		revisions, err := s.Revisions(ctx, []state.RunKey{second, first, {Workspace: "x", Run: 1}})
		require.NoError(t, err)
		return version, revisions
	}
	version, revisions := look()
	require.Equal(t, []int64{0, 0, 0}, revisions)
	order := func(s state.Store, key state.RunKey, kind state.CommandKind) {
		require.NoError(t, state.Direct(ctx, s, key, state.Command{Kind: kind, Token: string(kind),
			Mark: state.Mark{Actor: "me", Time: time.Now()}}))
	}
	for _, step := range []struct {
		does func()
		want []int64 // of the second run, the first, and one that is not there
	}{
		{func() {}, []int64{0, 0, 0}},
		{func() {
			for range 2 {
				_, err := other.CreateRun(ctx, state.Run{RunKey: state.RunKey{Workspace: "w"}, Created: time.Now()},
					[]state.NodeSpec{{Name: "a"}, {Name: "b"}})
				require.NoError(t, err)
			}
		}, []int64{1, 1, 0}},
		{func() { order(other, first, state.CommandPause) }, []int64{1, 5, 0}}, // its begin, two nodes, its end
		{func() { order(s, second, state.CommandStop) }, []int64{5, 5, 0}},
	} {
		before := revisions
		was := version
		step.does()
		version, revisions = look()
		require.Equal(t, step.want, revisions)
		require.Equal(t, before[0] != revisions[0] || before[1] != revisions[1], was != version)
	}
}

func TestWatchOfClosed(t *testing.T) {
	t.Parallel()
	for _, asked := range []bool{false, true} {
		s, err := Open(context.Background(), filepath.Join(t.TempDir(), "state.db"))
		require.NoError(t, err)
		if asked {
			_, err = s.DataVersion(context.Background())
			require.NoError(t, err)
		}
		require.NoError(t, s.Close())
		_, err = s.DataVersion(context.Background())
		require.Error(t, err)
	}
}

func BenchmarkWatch(b *testing.B) {
	ctx := context.Background()
	s, err := OpenScratch(ctx, filepath.Join(b.TempDir(), "state.db"))
	require.NoError(b, err)
	defer func() { require.NoError(b, s.Close()) }()
	const runs, nodes = 200, 10
	var keys []state.RunKey
	specs := make([]state.NodeSpec, nodes)
	for i := range specs {
		specs[i].Name = string(rune('a' + i))
	}
	for range runs {
		key, err := s.CreateRun(ctx, state.Run{RunKey: state.RunKey{Workspace: "w"}}, specs)
		require.NoError(b, err)
		keys = append(keys, key)
	}
	b.Run("version", func(b *testing.B) {
		for b.Loop() {
			_, err := s.DataVersion(ctx)
			require.NoError(b, err)
		}
	})
	b.Run("revisions of 200 runs", func(b *testing.B) {
		for b.Loop() {
			_, err := s.Revisions(ctx, keys)
			require.NoError(b, err)
		}
	})
}
