package inputcache_test

import (
	"bytes"
	"compress/gzip"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/base/fault"
	"thalweg/internal/io/inputcache"
	"thalweg/internal/io/remote"
)

func gzipped(t *testing.T, text string) []byte {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, err := w.Write([]byte(text))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return out.Bytes()
}

// server serves files by name, and counts what was asked of it.
func server(t *testing.T, files map[string][]byte) (at string, asked *sync.Map) {
	t.Helper()
	asked = &sync.Map{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		data, ok := files[r.URL.Path[1:]]
		if !ok {
			http.NotFound(w, r)
			return
		}
		n, _ := asked.LoadOrStore(r.Method+r.URL.Path, new(atomic.Int32))
		n.(*atomic.Int32).Add(1)
		w.Header().Set("ETag", `"1"`)
		http.ServeContent(w, r, "", time.Unix(1, 0), bytes.NewReader(data))
	}))
	t.Cleanup(s.Close)
	return s.URL, asked
}

func client(t *testing.T) *remote.Client {
	t.Helper()
	c := remote.New(remote.Config{HomeDir: t.TempDir(), Pause: time.Millisecond, SpoolBytes: 1 << 20})
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

// The text of a file is the same wherever the file is and however it is packed; bytes stay
// what they are.
func TestTexts(t *testing.T) {
	t.Parallel()
	packed := gzipped(t, "a\nM\xfcller\n")
	at, asked := server(t, map[string][]byte{"x": packed, "y": []byte("a\n1\n")})
	local := filepath.Join(t.TempDir(), "x")
	require.NoError(t, os.WriteFile(local, packed, 0o600))
	dir, c := t.TempDir(), client(t)
	for _, step := range []string{"made", "found"} {
		wants := []inputcache.Want{
			{URL: at + "/x", Text: true, Charset: "iso-8859-1"}, {URL: local, Text: true, Charset: "iso-8859-1"},
			{URL: at + "/y", Text: true}, {URL: at + "/x"}, {URL: at + "/x", Text: true, Charset: "ibm850"},
		}
		found, err := inputcache.New(dir, c, nil).EnsureAll(t.Context(), wants)
		require.NoError(t, err)
		for i, want := range []string{"a\nMüller\n", "a\nMüller\n", "a\n1\n", string(packed), "a\nM³ller\n"} {
			data, err := os.ReadFile(found[i].Path)
			require.NoError(t, err)
			require.Equal(t, want, string(data), "%s %d", step, i)
		}
		if n, _ := asked.Load("GET/x"); step == "made" {
			require.EqualValues(t, 1, n.(*atomic.Int32).Load(), "its bytes are copied once, whatever is read of them")
		}
		left, err := filepath.Glob(filepath.Join(dir, "*.part"))
		require.NoError(t, err)
		require.Empty(t, left)
	}
}

// A later process makes the text again if the file is another one, and refuses it if the
// run was planned with what it was.
func TestTextsOfChangedFiles(t *testing.T) {
	t.Parallel()
	local, dir, c := filepath.Join(t.TempDir(), "x.gz"), t.TempDir(), client(t)
	require.NoError(t, os.WriteFile(local, gzipped(t, "one"), 0o600))
	want := inputcache.Want{URL: local, Text: true}
	first, err := inputcache.New(dir, c, nil).EnsureAll(t.Context(), []inputcache.Want{want})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(local, gzipped(t, "another"), 0o600))
	second, err := inputcache.New(dir, c, nil).EnsureAll(t.Context(), []inputcache.Want{want})
	require.NoError(t, err)
	data, err := os.ReadFile(second[0].Path)
	require.NoError(t, err)
	require.Equal(t, "another", string(data))
	want.Version = first[0].Version
	_, err = inputcache.New(dir, c, nil).EnsureAll(t.Context(), []inputcache.Want{want})
	require.ErrorContains(t, err, "changed after the run planned it")
	require.Equal(t, fault.UserData, fault.Of(err).Kind)
}

func TestWhatCannotBeCopied(t *testing.T) {
	t.Parallel()
	at, _ := server(t, map[string][]byte{"a": []byte("x"), "cut": gzipped(t, "a\n1\n")[:12]})
	dir, c := t.TempDir(), client(t)
	big := filepath.Join(t.TempDir(), "big")
	require.NoError(t, os.WriteFile(big, gzipped(t, string(make([]byte, 2<<20))), 0o600))
	for _, bad := range []struct {
		url, message string
		kind         fault.Kind
	}{
		{at + "/none", "404", fault.UserData},
		{at + "/cut", "ends too early", fault.UserData},
		{filepath.Join(dir, "none"), "does not exist", fault.UserData},
		{dir, "a folder, not a file", fault.UserData},
		{big, "more than 1 MiB", fault.Environment},
	} {
		_, err := inputcache.New(filepath.Join(dir, "copies"), c, nil).EnsureAll(t.Context(),
			[]inputcache.Want{{URL: at + "/a", Text: true}, {URL: bad.url, Text: true}})
		require.ErrorContains(t, err, bad.message)
		require.Equal(t, bad.kind, fault.Of(err).Kind, "%v", err)
		require.Equal(t, bad.url, fault.Of(err).Place.File, "%v", err)
		left, err := filepath.Glob(filepath.Join(dir, "copies", "*.part"))
		require.NoError(t, err)
		require.Empty(t, left)
	}
}

// What is being copied is counted while it is.
func TestProgress(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	at, _ := server(t, map[string][]byte{"a.csv": []byte("n\n1\n"), "b.csv.gz": gzipped(t, "n\n2\n")})
	store := inputcache.New(dir, client(t), nil)
	wants := []inputcache.Want{{URL: at + "/a.csv", Text: true}, {URL: at + "/b.csv.gz", Text: true}}
	done, size := store.Progress(wants)
	require.Zero(t, done)
	require.Zero(t, size)
	_, err := store.EnsureAll(t.Context(), wants[:1])
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, wants[1].Key()+".part"), []byte("half"), 0o600))
	done, size = store.Progress(wants)
	require.Equal(t, 1, done)
	require.EqualValues(t, len("n\n1\n")+len("half"), size)
	_, err = store.EnsureAll(t.Context(), wants)
	require.NoError(t, err)
	done, _ = store.Progress(wants)
	require.Equal(t, 2, done)
}
