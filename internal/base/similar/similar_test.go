package similar

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNearest(t *testing.T) {
	t.Parallel()
	names := []string{"asc", "desc", "expression", "fields", "having", "ignore_case", "Name"}
	for word, want := range map[string]string{
		"dsc": "desc", "expresion": "expression", "exprssoin": "expression", "feilds": "fields",
		"name": "Name", "HAVING": "having", "nothing like it": "", "": "", strings.Repeat("x", 100): "",
	} {
		require.Equal(t, want, Nearest(word, names), word)
	}
	require.True(t, Typed("havng", "having"))
	require.True(t, Typed("Delimitted", "delimited"))
	require.False(t, Typed("hvng", "having"))
	require.False(t, Typed("have", "having"))
	require.False(t, Typed(strings.Repeat("x", 100), "having"))
	require.Empty(t, Nearest("a", make([]string, MaxNames+1)))
}
