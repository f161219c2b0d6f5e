package remote

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Only a strong entity tag promises the same bytes (RFC 9110, 8.8.1).
func TestStrongTag(t *testing.T) {
	t.Parallel()
	for tag, want := range map[string]string{`"abc"`: `"abc"`, `W/"abc"`: "", "": ""} {
		require.Equal(t, want, StrongTag(Version{Bytes: 3, ETag: tag}.Encode()), tag)
	}
	require.Empty(t, StrongTag("no version"))
}
