package history_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/ops/history"
	"thalweg/internal/store/state"
	"thalweg/internal/test/statetest/hostile"
)

// Pages of selected runs list each of them once, whatever is selected and however many are on a page.
func TestPagesOfSelectedRuns(t *testing.T) {
	t.Parallel()
	store := &counted{Store: hostile.New().Open()}
	const runs = 60
	for i := range runs {
		_, err := store.CreateRun(t.Context(), state.Run{RunKey: state.RunKey{Workspace: "main"},
			Created: noon.Add(time.Duration(i) * time.Hour), Description: fmt.Sprint("of ", i%3)}, nil)
		require.NoError(t, err)
	}
	at := func(hours int) time.Time { return noon.Add(time.Duration(hours) * time.Hour) }
	third := func(r history.Run) bool { return r.Description == "of 1" }
	for name, tc := range map[string]struct {
		o           history.ListOptions
		first, last int64 // numbers of the runs that come first and last
		count       int
	}{
		"all":      {history.ListOptions{}, 60, 1, 60},
		"selected": {history.ListOptions{Keep: third}, 59, 2, 20},
		"matched": {history.ListOptions{Match: func(r state.Run) bool { return r.Run%10 == 0 }, Keep: third},
			50, 20, 2},
		"since":          {history.ListOptions{Since: at(50)}, 60, 51, 10},
		"until":          {history.ListOptions{Until: at(5)}, 5, 1, 5},
		"between":        {history.ListOptions{Since: at(10), Until: at(20)}, 20, 11, 10},
		"both":           {history.ListOptions{Since: at(10), Until: at(20), Keep: third}, 20, 11, 4},
		"before all":     {history.ListOptions{Until: at(0)}, 0, 0, 0},
		"behind all":     {history.ListOptions{Since: at(1000)}, 0, 0, 0},
		"the other way":  {history.ListOptions{Since: at(20), Until: at(10)}, 0, 0, 0},
		"until the last": {history.ListOptions{Until: at(1000)}, 60, 1, 60},
	} {
		for _, limit := range []int{1, 2, 7, 10, 100} {
			var got []int64
			o := tc.o
			for o.Limit = limit; ; {
				page, next, err := history.ListPage(t.Context(), store, "main", o)
				require.NoError(t, err)
				require.LessOrEqual(t, len(page), limit)
				for _, r := range page {
					got = append(got, r.Run)
				}
				if o.From = next; next == 0 {
					break
				}
			}
			require.Len(t, got, tc.count, "%s, %d a page: %v", name, limit, got)
			for i := 1; i < len(got); i++ {
				require.Less(t, got[i], got[i-1], name)
			}
			if tc.count > 0 {
				require.Equal(t, []int64{tc.first, tc.last}, []int64{got[0], got[len(got)-1]}, name)
			}
		}
	}
	store.rows.Store(0)
	_, _, err := history.ListPage(t.Context(), store, "main", history.ListOptions{Until: at(5), Since: at(3), Limit: 10})
	require.NoError(t, err)
	require.Less(t, store.rows.Load(), int64(25), "runs that are far from the time are not read")
}
