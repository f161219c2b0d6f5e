package remote_test

import (
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/base/fault"
	"thalweg/internal/io/remote"
	"thalweg/internal/test/remotetest"
)

// listed are the names of the files that match, as the world calls them.
func listed(t *testing.T, w *world, pattern string) (out []string) {
	t.Helper()
	files, err := w.client.List(t.Context(), w.url(pattern), 1000)
	require.NoError(t, err, pattern)
	for _, f := range files {
		name := strings.TrimPrefix(f.URL, w.url(""))
		out = append(out, strings.TrimPrefix(name, "/"))
		got, err := w.client.Read(t.Context(), f.URL, 100, nil)
		require.NoError(t, err, "the address that is listed is that of the file")
		require.Len(t, got, int(f.Version.Bytes))
		require.False(t, f.Version.ModTime.IsZero())
	}
	return out
}

func TestList(t *testing.T) {
	writable(t, func(t *testing.T, w *world) {
		for i, name := range []string{"in/b.csv", "in/a.csv", "in/a.txt", "in/.a.csv.tmp",
			"in/.hidden.csv", "in/sub/c.csv", "in/sub2/c.csv", "in/.git/c.csv", "other.csv", "in/größe 1.csv"} {
			w.put(name, strings.Repeat("x", i))
		}
		space := "in/größe 1.csv"
		if strings.HasPrefix(w.url(""), "sftp") {
			space = "in/gr%C3%B6%C3%9Fe%201.csv"
		}
		for pattern, want := range map[string][]string{
			"in/*.csv":     {"in/a.csv", "in/b.csv", space},
			"in/?.*":       {"in/a.csv", "in/a.txt", "in/b.csv"},
			"in/[a].csv":   {"in/a.csv"},
			"in/b.csv":     {"in/b.csv"},
			"in/none.csv":  nil,
			"in/.*.csv":    {"in/.hidden.csv"},
			"in/*/c.csv":   {"in/sub/c.csv", "in/sub2/c.csv"},
			"*/sub?/*.csv": {"in/sub2/c.csv"},
			"*.csv":        {"other.csv"},
			`in/\*.csv`:    nil,
		} {
			require.Equal(t, want, listed(t, w, pattern), pattern)
		}
		before, err := w.client.List(t.Context(), w.url("in/a.csv"), 1)
		require.NoError(t, err)
		w.put("in/a.csv", "changed")
		after, err := w.client.List(t.Context(), w.url("in/a.csv"), 1)
		require.NoError(t, err)
		require.NotEqual(t, before[0].Version, after[0].Version)

		_, err = w.client.List(t.Context(), w.url("in/*.csv"), 2)
		require.ErrorContains(t, err, "more than 2 files match")
		require.Contains(t, fault.Of(err).Hint, "narrower")
	})
}

// A listing that breaks is tried again, and goes on when the server is back.
func TestListThroughABadNetwork(t *testing.T) {
	writable(t, func(t *testing.T, w *world) {
		for i := range 300 {
			w.put(fmt.Sprintf("in/%03d.csv", i), "x")
		}
		w.proxy.Plan(remotetest.Break{Down: 3000}, remotetest.Break{Down: 5000})
		files, err := w.client.List(t.Context(), w.url("in/*.csv"), 300)
		require.NoError(t, err)
		require.Len(t, files, 300)
		require.Contains(t, w.log.String(), "it is repeated")
	})
}

// ** looks through directories of any depth, but through no hidden one and no link.
func TestListThroughDirectories(t *testing.T) {
	writable(t, func(t *testing.T, w *world) {
		for _, name := range []string{"in/x.csv", "in/a/x.csv", "in/a/b/x.csv", "in/a/b/y.txt",
			"in/.h/x.csv", "in/a/.x.csv", "other/x.csv"} {
			w.put(name, "x")
		}
		if _, dir, ok := strings.Cut(w.url(""), w.proxy.Addr); ok {
			require.NoError(t, os.Symlink("..", filepath.Join(dir, "in", "a", "up")))
		}
		require.Equal(t, []string{"in/a/b/x.csv", "in/a/x.csv", "in/x.csv"}, listed(t, w, "in/**/*.csv"))
		require.Equal(t, []string{"in/a/b/x.csv", "in/a/x.csv", "in/x.csv"}, listed(t, w, "in/**/**/x.csv"))
		require.Equal(t, []string{"in/a/b/x.csv", "in/a/b/y.txt"}, listed(t, w, "in/**/b/**"))
	})
}

func TestListWhatIsNotThere(t *testing.T) {
	t.Parallel()
	w := sftpWorld(t)
	_, err := w.client.List(t.Context(), w.url("nowhere/*.csv"), 10)
	require.ErrorIs(t, err, fs.ErrNotExist)
	_, dir, _ := strings.Cut(w.url(""), w.proxy.Addr)
	require.ErrorContains(t, err, "the server has no directory "+dir+"/nowhere/")
	require.NoError(t, os.Symlink("nowhere", filepath.Join(dir, "dead.csv")))
	w.put("real", "x")
	require.NoError(t, os.Symlink("real", filepath.Join(dir, "link.csv")))
	require.Equal(t, []string{"link.csv"}, listed(t, w, "*.csv"))

	s := s3World(t)
	require.Empty(t, listed(t, s, "nowhere/*.csv"))
	_, err = s.client.List(t.Context(), "s3://nobody/*.csv", 10)
	require.ErrorContains(t, err, "NoSuchBucket")
	_, err = s.client.List(t.Context(), "https://h/*.csv", 10)
	require.ErrorContains(t, err, "a web server")
}

// Keys with all kinds of characters, and more keys than a page.
func TestListOddKeys(t *testing.T) {
	t.Parallel()
	w := s3World(t)
	odd := []string{"in/a b+c%20?#.csv", "in//x.csv", "in/&<>.csv"}
	for _, name := range odd {
		w.put(name, "")
	}
	require.ElementsMatch(t, []string{odd[0], odd[2]}, listedRaw(t, w, "in/*.csv"))
	require.Equal(t, []string{odd[1]}, listedRaw(t, w, "in//*.csv"))
	for i := range 1500 {
		w.put(fmt.Sprintf("many/%04d.csv", i), "")
	}
	require.Len(t, listedRaw(t, w, "many/*.csv"), 1500)
}

func listedRaw(t *testing.T, w *world, pattern string) (out []string) {
	files, err := w.client.List(t.Context(), w.url(pattern), 10_000)
	require.NoError(t, err)
	for _, f := range files {
		out = append(out, f.Path)
	}
	return out
}

// Keys that XML cannot have come escaped from services that can do that.
func TestListEscapedKeys(t *testing.T) {
	t.Parallel()
	s := remotetest.NewS3(t)
	s.Intercept(func(rw http.ResponseWriter, r *http.Request) bool {
		require.Equal(t, "url", r.URL.Query().Get("encoding-type"))
		fmt.Fprint(rw,
			`<ListBucketResult><EncodingType>url</EncodingType><Contents><Key>in/%01+a%2Bb.csv</Key><Size>3</Size></Contents></ListBucketResult>`)
		return true
	})
	c := remote.New(remote.Config{S3Endpoint: s.Endpoint})
	files, err := c.List(t.Context(), "s3://data/in/*.csv", 10)
	require.NoError(t, err)
	require.Equal(t, "in/\x01 a+b.csv", files[0].Path)
	require.NoError(t, c.Close())
}

// A service that lists nothing for ever, or forgets where it goes on.
func TestListEndsWhateverTheServiceSays(t *testing.T) {
	t.Parallel()
	for token, want := range map[string]string{"": "does not say where it goes on", "more": "had to be looked at"} {
		s := remotetest.NewS3(t)
		s.Intercept(func(rw http.ResponseWriter, _ *http.Request) bool {
			fmt.Fprintf(rw,
				`<ListBucketResult><Name>data</Name><IsTruncated>true</IsTruncated><NextContinuationToken>%s</NextContinuationToken></ListBucketResult>`, token)
			return true
		})
		c := remote.New(remote.Config{S3Endpoint: s.Endpoint})
		_, err := c.List(t.Context(), "s3://data/*.csv", 10)
		require.ErrorContains(t, err, want)
		require.NoError(t, c.Close())
	}
}
