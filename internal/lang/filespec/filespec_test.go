package filespec

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPaths(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"a", "a.b", "items[0].sku", `"a.b".c`, "größe", "a[0][1]", `a."x"`} {
		_, err := ParsePath(path)
		require.NoError(t, err, path)
	}
	for path, want := range map[string]string{"": "a key is missing", "a.": "a key is missing", "a[": "not closed",
		"a[x]": "no element", "[0]": "a key is missing", `"a`: "not closed", "a[0]b": "a point or"} {
		_, err := ParsePath(path)
		require.ErrorContains(t, err, want, path)
	}
	require.Equal(t, `"a.b"`, KeyPath("a.b"))
	for _, key := range []string{"a", "a.b", `x"y`, "", `\`, "[0]"} {
		steps, err := ParsePath(KeyPath(key))
		require.NoError(t, err)
		require.Equal(t, []Step{{key, -1}}, steps)
	}
}

func TestRanges(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Area{"": {}, "B3": {2, 3, 0, 0}, "B3:F": {2, 3, 6, 0}, "b:f": {2, 0, 6, 0},
		"$B$3:$F$100": {2, 3, 6, 100}, "XFD1": {16384, 1, 0, 0}} {
		got, err := ParseRange(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
	for _, text := range []string{"3B", "F3:B3", "B3:F1", "ZZZZ1", "B0", ":", "B3:", "A1048577"} {
		_, err := ParseRange(text)
		require.Error(t, err, text)
	}
	require.Equal(t, "XFD", ColumnLetters(16384))
	require.Equal(t, "AA", ColumnLetters(27))
}
