package coordinator

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/store/state"
)

// What is on offer of a node is read again when there may be something new, and not
// while all that there is has hints in the queue or is being worked on.
func TestMayHaveNew(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_000, 0)
	const every = 2 * time.Second
	three := map[int]mark{0: {}, 1: {}, 2: {}}
	for name, c := range map[string]struct {
		s       sharing
		done    int
		waiting int
		fresh   time.Time
		want    bool
	}{
		"all have hints, some of which wait": {s: sharing{looked: now}, waiting: 1},
		"some have ended":                    {s: sharing{looked: now, done: 4}, done: 6, waiting: 1},
		"all of the phase have ended":        {s: sharing{looked: now, done: 4}, done: 7, waiting: 1, want: true},
		"there were more":                    {s: sharing{looked: now, more: true}, waiting: 1, want: true},
		"nobody has anything to take":        {s: sharing{looked: now}, want: true},
		"one was given back":                 {s: sharing{looked: now}, waiting: 1, fresh: now.Add(1), want: true},
		"one was given back long ago":        {s: sharing{looked: now}, waiting: 1, fresh: now},
		"it was read long ago":               {s: sharing{looked: now.Add(-every)}, waiting: 1, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, c.want, c.s.mayHaveNew(&node{offered: three}, state.Node{BatchesDone: c.done}, c.waiting,
				now, c.fresh, every))
		})
	}
}
