package fault

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestInScript(t *testing.T) {
	t.Parallel()
	require.Equal(t, "the script reads it at a.yaml:1:2", InScript("", "reads it", "a.yaml:1:2"))
	f := &Error{Hint: InScript("mend it", "reads it", "a.yaml:1:2")}
	require.Equal(t, "mend it; the script reads it at a.yaml:1:2", f.Hint)
	require.True(t, f.NamesScript("a.yaml"))
	require.False(t, f.NamesScript("b.yaml"))
}
