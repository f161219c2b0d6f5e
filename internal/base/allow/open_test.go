package allow_test

import (
	"io"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/base/allow"
	"thalweg/internal/base/fault"
)

// placesIn makes a directory with a place that may be read, and one that may not.
func placesIn(t *testing.T) (in, other string, p *allow.Policy) {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	in, other = filepath.Join(dir, "in"), filepath.Join(dir, "other")
	for path, text := range map[string]string{in + "/real/a.csv": "fine", other + "/a.csv": "secret"} {
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	return in, other, &allow.Policy{Read: []string{in}}
}

// A link that is swapped all the time leads to what may be read, or nowhere.
func TestOpenWhileALinkIsSwapped(t *testing.T) {
	t.Parallel()
	in, other, p := placesIn(t)
	link := filepath.Join(in, "link")
	require.NoError(t, os.Symlink(filepath.Join(in, "real"), link))
	done := make(chan struct{})
	var swaps sync.WaitGroup
	swaps.Go(func() {
		for to := other; ; {
			select {
			case <-done:
				return
			default:
			}
			if os.Symlink(to, link+".new") == nil && os.Rename(link+".new", link) == nil {
				if to == other {
					to = filepath.Join(in, "real")
				} else {
					to = other
				}
			}
		}
	})
	opened := 0
	for range 20_000 {
		f, err := p.Open(filepath.Join(link, "a.csv"))
		if err != nil {
			continue
		}
		text, err := io.ReadAll(f)
		require.NoError(t, err)
		require.NoError(t, f.Close())
		require.Equal(t, "fine", string(text))
		opened++
	}
	close(done)
	swaps.Wait()
	require.Positive(t, opened)
}

func TestOpen(t *testing.T) {
	t.Parallel()
	in, other, p := placesIn(t)
	_, err := p.Open(filepath.Join(other, "a.csv"))
	require.Equal(t, fault.Forbidden, fault.CodeOf(err))
	_, err = p.Open(filepath.Join(in, "none.csv"))
	require.ErrorIs(t, err, os.ErrNotExist)
	pipe := filepath.Join(in, "pipe")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	for _, path := range []string{pipe, in} {
		for _, policy := range []*allow.Policy{p, nil} {
			var irregular *allow.NotRegularError
			_, err = policy.Open(path)
			require.ErrorAs(t, err, &irregular, path)
		}
	}
	f, err := (*allow.Policy)(nil).Open(filepath.Join(other, "a.csv"))
	require.NoError(t, err)
	require.NoError(t, f.Close())
}

// A pattern tells nothing of what is elsewhere, whatever leads there.
func TestGlob(t *testing.T) {
	t.Parallel()
	in, other, p := placesIn(t)
	require.NoError(t, os.Symlink(other, filepath.Join(in, "link")))
	require.NoError(t, os.Symlink(filepath.Join(other, "a.csv"), filepath.Join(in, "real", "link.csv")))
	for pattern, want := range map[string][]string{"*/*.csv": {"real/a.csv"}, "real/*": {"real/a.csv"}, "link/*": nil,
		in + "/*/a.csv": {in + "/real/a.csv"}, "real/a.csv": {"real/a.csv"}, "*/../../other/*": nil, "../other/*": nil,
		"/etc/*": nil, "/*": nil, "../other/a.csv": nil, "../*/a.csv": nil} {
		found, err := p.Glob(in, pattern)
		require.True(t, err == nil || fault.CodeOf(err) == fault.Forbidden, pattern)
		require.ElementsMatch(t, want, found, pattern)
	}
	found, err := (*allow.Policy)(nil).Glob(in, "../other/*")
	require.NoError(t, err)
	require.Len(t, found, 1)
}

// What would be made where a link to nothing leads is judged there.
func TestLinksToNothing(t *testing.T) {
	t.Parallel()
	in, other, _ := placesIn(t)
	p := &allow.Policy{Write: []string{in}}
	require.NoError(t, os.Symlink(filepath.Join(other, "new.db"), filepath.Join(in, "new.db")))
	require.NoError(t, os.Symlink("new.db", filepath.Join(in, "twice.db")))
	require.NoError(t, os.Symlink("../other/none", filepath.Join(in, "dir")))
	require.NoError(t, os.Symlink("loop", filepath.Join(in, "loop")))
	require.NoError(t, os.Symlink("real/new.db", filepath.Join(in, "fine.db")))
	for name, may := range map[string]bool{"new.db": false, "twice.db": false, "dir/x.db": false, "fine.db": true,
		"real/x.db": true, "loop": true, "loop/x": true} {
		require.Equal(t, may, p.MayWrite(filepath.Join(in, name)) == nil, name)
	}
}
