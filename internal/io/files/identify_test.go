package files_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/io/files"
	"thalweg/internal/lang/script"
)

// A file that was changed is never known by what it was known by before, also
// if its size and time are made to be what they were, and at once behind the look.
func TestIdentify(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	look := func(names ...string) []files.Identity {
		t.Helper()
		r := &script.FileReader{}
		for _, n := range names {
			r.URLs = append(r.URLs, script.FileURL{URL: n})
		}
		found, err := files.Identify(t.Context(), r, files.Places{Dir: dir})
		require.NoError(t, err)
		for _, f := range found {
			require.Empty(t, f.Why)
		}
		return found
	}
	write("a.csv", "1")
	first := look("a.csv")
	require.Equal(t, first, look("a.csv"))
	seen := map[string]bool{}
	at := time.Date(2024, 1, 2, 3, 4, 5, 0, time.UTC)
	for i := range 50 {
		write("a.csv", string(rune('0'+i%10)))
		require.NoError(t, os.Chtimes(filepath.Join(dir, "a.csv"), at, at))
		id := look("a.csv")[0].Text
		require.False(t, seen[id], "%d: %s", i, id)
		seen[id] = true
	}
	require.NoError(t, os.Rename(filepath.Join(dir, "a.csv"), filepath.Join(dir, "old")))
	write("a.csv", "9")
	require.False(t, seen[look("a.csv")[0].Text])

	write("b.csv", "1")
	require.Len(t, look("*.csv"), 2)
	require.Equal(t, "b.csv", look("*.csv")[1].URL)
	_, err := files.Identify(t.Context(), &script.FileReader{URLs: []script.FileURL{{URL: "none.csv"}}},
		files.Places{Dir: dir})
	require.ErrorContains(t, err, "does not exist")

	// What cannot be told apart says so.
	url := "https://example.org/a.csv"
	for tag, why := range map[string]string{`"x"`: "",
		"": "its server gives no strong ETag, by which its versions could be told apart"} {
		copied := map[string]files.Copy{url: {Key: "k", Path: filepath.Join(dir, "b.csv"), Tag: tag}}
		found, err := files.Identify(t.Context(), &script.FileReader{URLs: []script.FileURL{{URL: url}}},
			files.Places{Copies: copied})
		require.NoError(t, err)
		require.Equal(t, why, found[0].Why)
	}
	ahead := time.Now().Add(time.Hour)
	require.NoError(t, os.Chtimes(filepath.Join(dir, "b.csv"), ahead, ahead))
	look("b.csv") // the time of change is what counts
}
