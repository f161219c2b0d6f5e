package cache

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/store/parts"
	"thalweg/internal/test/partstest"
)

// readBefore is a backend of which somebody reads a part as soon as it is there.
type readBefore struct {
	*partstest.Memory
	read func(key string)
}

func (b *readBefore) Put(ctx context.Context, key, path string) (parts.Info, error) {
	info, err := b.Memory.Put(ctx, key, path)
	if b.read != nil {
		b.read(key)
	}
	return info, err
}

// Who writes a part that has been fetched meanwhile leaves the copy alone that readers have.
func TestFetchedBeforeItsWriterIsDone(t *testing.T) {
	t.Parallel()
	b := &readBefore{Memory: &partstest.Memory{}}
	s, err := Open(Config{Backend: b, Dir: filepath.Join(t.TempDir(), "copies"), LimitBytes: 1 << 20, Keep: true})
	require.NoError(t, err)
	b.read = func(key string) {
		_, release := fetch(t, s, key, "")
		release()
	}
	sum := putBy(t, s, "a", 100)
	path, release := fetch(t, s, "a", sum)
	require.FileExists(t, path)
	release()
	kept, err := os.ReadDir(filepath.Join(s.dir, keptDir))
	require.NoError(t, err)
	require.Len(t, kept, 1)
	require.Equal(t, int64(100), s.bytes)
	require.NoError(t, s.Close())
}

// Several readers find a damaged copy at once: one of them fetches the part anew, and the
// others, who leave the damaged copy, leave that alone.
func TestReadersOfADamagedCopy(t *testing.T) {
	t.Parallel()
	const readers, rounds = 4, 50
	for range rounds {
		m, dir := &partstest.Memory{}, filepath.Join(t.TempDir(), "copies")
		open := func() *Store {
			s, err := Open(Config{Backend: m, Dir: dir, LimitBytes: 1 << 20, Keep: true})
			require.NoError(t, err)
			return s
		}
		s := open()
		sum := putBy(t, s, "a", 1000)
		require.NoError(t, os.WriteFile(s.copies["a"].path, make([]byte, 1000), 0o600))
		s = open() // the other one has died
		var wg sync.WaitGroup
		errs := make([]error, readers)
		for i := range readers {
			wg.Go(func() {
				path, release, err := s.Fetch(t.Context(), "a", sum)
				if err == nil {
					_, err = os.Stat(path)
					release()
				}
				errs[i] = err
			})
		}
		wg.Wait()
		for _, err := range errs {
			require.NoError(t, err)
		}
		path, release := fetch(t, s, "a", sum)
		require.FileExists(t, path)
		release()
		require.NoError(t, s.Close())
	}
}
