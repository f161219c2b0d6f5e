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
