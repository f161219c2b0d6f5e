package allowance_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/base/allowance"
)

func TestWhatIsNoLimitIsRefused(t *testing.T) {
	for _, text := range []string{"", " ", "0", "-1", "+1", "NaN", "Inf", "1e400", "1e3", "0x10", "5 minutes", "1,5", "soon",
		"9223372036855", "0.0000001", "1.", ".5", "$1", "None", "١"} {
		_, err := allowance.Cost(text)
		require.ErrorContains(t, err, "is nothing that a run may cost", "%q", text)
	}
	for _, text := range []string{"", "0", "0s", "-1h", "NaN", "1e400h", "1e3", "90", "5 minutes", "2 h", "999999999h", "1us",
		"2d", "soon", "None"} {
		_, err := allowance.Elapsed(text)
		require.ErrorContains(t, err, "is no time that a run may take", "%q", text)
	}
}

func TestLimits(t *testing.T) {
	for text, want := range map[string]int64{"none": 0, "12.50": 12_500_000, "0.000001": 1, "0012": 12_000_000,
		"9223372036854.775807": math.MaxInt64} {
		got, err := allowance.Cost(text)
		require.NoError(t, err)
		require.Equal(t, want, got, text)
	}
	for text, want := range map[string]time.Duration{"none": 0, "1ms": time.Millisecond, "1h30m": 90 * time.Minute,
		"2500000h": 2_500_000 * time.Hour} {
		got, err := allowance.Elapsed(text)
		require.NoError(t, err)
		require.Equal(t, want, got, text)
	}
}
