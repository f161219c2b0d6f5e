package effort_test

import (
	"flag"
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/test/effort"
)

func TestOf(t *testing.T) {
	for _, tc := range []struct{ chaos, short, want string }{
		{"", "true", "quick"}, {"", "false", "usual"}, {"1", "false", "all"}, {"1", "true", "all"},
	} {
		t.Setenv("THALWEG_CHAOS", tc.chaos)
		before := flag.Lookup("test.short").Value.String()
		require.NoError(t, flag.Set("test.short", tc.short))
		require.Equal(t, tc.want, effort.Of("quick", "usual", "all"), tc)
		require.NoError(t, flag.Set("test.short", before))
	}
}

// A test of one stage is skipped in the other, and runs where no stage is named.
func TestStages(t *testing.T) {
	for _, tc := range []struct {
		stage, calls string
		call         func(testing.TB)
		runs         bool
	}{
		{"", "Raced", effort.Raced, true}, {"", "Unraced", effort.Unraced, true},
		{"raced", "Raced", effort.Raced, true}, {"raced", "Unraced", effort.Unraced, false},
		{"unraced", "Raced", effort.Raced, false}, {"unraced", "Unraced", effort.Unraced, true},
	} {
		t.Setenv("THALWEG_TEST_STAGE", tc.stage)
		ran := false
		t.Run(tc.stage+" "+tc.calls, func(t *testing.T) {
			tc.call(t)
			ran = true
		})
		require.Equal(t, tc.runs, ran, "stage %q, %s", tc.stage, tc.calls)
	}
}
