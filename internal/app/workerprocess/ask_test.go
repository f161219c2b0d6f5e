package workerprocess

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// What is asked holds, and of what was there before the rest: a retry that names one limit keeps the other.
func TestAskOver(t *testing.T) {
	before := Ask{Elapsed: "2h", Cost: "5"}
	require.Equal(t, before, Ask{}.Over(before))
	require.Equal(t, Ask{Elapsed: "1h", Cost: "5"}, Ask{Elapsed: "1h"}.Over(before))
	require.Equal(t, Ask{Elapsed: "2h", Cost: "none"}, Ask{Cost: "none"}.Over(before))
}
