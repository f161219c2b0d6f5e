package remote_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/johannesboyne/gofakes3"
	"github.com/stretchr/testify/require"

	"thalweg/internal/base/fault"
	"thalweg/internal/io/remote"
	"thalweg/internal/test/effort"
	"thalweg/internal/test/remotetest"
)

// world is a kind of server with a breaking proxy before it.
type world struct {
	client *remote.Client
	proxy  *remotetest.Proxy
	log    *bytes.Buffer
	url    func(name string) string
	put    func(name, content string)
	get    func(name string) (string, bool) // nil: read only
	names  func() []string                  // what is stored
	config remote.Config
}

// again is a new client of the same server, as a new process has one.
func (w *world) again(t *testing.T) *remote.Client {
	c := remote.New(w.config)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

var worlds = map[string]func(t *testing.T) *world{"https": httpsWorld, "s3": s3World, "sftp": sftpWorld}

// each runs a test against every kind of server.
func each(t *testing.T, test func(t *testing.T, w *world)) {
	t.Parallel()
	for name, make := range worlds {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, make(t))
		})
	}
}

// writable leaves the kinds out that cannot be written.
func writable(t *testing.T, test func(t *testing.T, w *world)) {
	each(t, func(t *testing.T, w *world) {
		if w.get != nil {
			test(t, w)
		}
	})
}

func finish(t *testing.T, w *world, cfg remote.Config) *world {
	w.log = &bytes.Buffer{}
	cfg.Pause, cfg.PauseMax, cfg.IdleTimeout = time.Millisecond, 10*time.Millisecond, effort.Patience
	cfg.ConnectTimeout = effort.Patience
	cfg.Logger = slog.New(slog.NewTextHandler(w.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	w.config = cfg
	w.client = w.again(t)
	return w
}

func httpsWorld(t *testing.T) *world {
	s := remotetest.NewHTTPS(t, t.TempDir())
	w := &world{proxy: remotetest.NewProxy(t, s.Addr)}
	w.url = func(name string) string { return "https://" + w.proxy.Addr + "/" + name + "?token=SECRET" }
	w.put = func(name, content string) { putFile(t, filepath.Join(s.Dir, name), content) }
	return finish(t, w, remote.Config{CAPath: s.CAFile})
}

func s3World(t *testing.T) *world {
	s := remotetest.NewS3(t)
	w := &world{proxy: remotetest.NewProxy(t, strings.TrimPrefix(s.Endpoint, "http://"))}
	w.url = func(name string) string { return "s3://data/" + name }
	w.put = func(name, content string) { s.Put(t, name, content) }
	w.get = func(name string) (string, bool) { return s.Get(t, name) }
	w.names = func() []string {
		list, err := s.Backend.ListBucket(s.Bucket, nil, gofakes3.ListBucketPage{})
		require.NoError(t, err)
		var out []string
		for _, o := range list.Contents {
			out = append(out, o.Key)
		}
		return out
	}
	return finish(t, w, remote.Config{S3Endpoint: "http://" + w.proxy.Addr})
}

func sftpWorld(t *testing.T) *world {
	dir := t.TempDir()
	s := remotetest.NewSFTP(t, dir)
	w := &world{proxy: remotetest.NewProxy(t, s.Addr)}
	s.Know(t, w.proxy.Addr)
	w.url = func(name string) string { return "sftp://joe@" + w.proxy.Addr + path.Join(s.Dir, name) }
	w.put = func(name, content string) { putFile(t, filepath.Join(s.Dir, name), content) }
	w.get = func(name string) (string, bool) {
		data, err := os.ReadFile(filepath.Join(s.Dir, name))
		return string(data), err == nil
	}
	w.names = func() []string {
		var out []string
		require.NoError(t, filepath.WalkDir(s.Dir, func(p string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				rel, _ := filepath.Rel(s.Dir, p)
				out = append(out, rel)
			}
			return err
		}))
		return out
	}
	return finish(t, w, remote.Config{SFTPKeys: map[string]string{"joe": s.KeyFile}, KnownHosts: s.KnownHosts})
}

func putFile(t *testing.T, path, content string) {
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
}

// noise is content in which no two places look alike.
func noise(bytes int) string {
	r := rand.NewChaCha8([32]byte{1})
	out := make([]byte, bytes)
	_, _ = r.Read(out)
	return string(out)
}

func TestRead(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.put("dir/a b.txt", "hello")
		name := "dir/a b.txt"
		if strings.HasPrefix(w.url(""), "https") {
			name = "dir/a%20b.txt"
		}
		got, err := w.client.Read(t.Context(), w.url(name), 5, nil)
		require.NoError(t, err)
		require.Equal(t, "hello", string(got))
		_, err = w.client.Read(t.Context(), w.url(name), 4, nil)
		require.ErrorContains(t, err, "larger than 4 bytes")
		_, err = w.client.Read(t.Context(), w.url("none"), 4, nil)
		require.ErrorIs(t, err, fs.ErrNotExist)
		require.Equal(t, fault.Script, fault.Of(err).Kind)
		require.Contains(t, err.Error(), "none")
		require.NotContains(t, err.Error(), "SECRET")
		w.put("empty", "")
		got, err = w.client.Read(t.Context(), w.url("empty"), 4, nil)
		require.NoError(t, err)
		require.Empty(t, got)
	})
}

func TestSpoolMakesOneCopyOfOneVersion(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		content := noise(1 << 20)
		w.put("a.bin", content)
		dir := filepath.Join(t.TempDir(), "in")
		spool := w.client.Spool(dir, nil)
		c, err := spool.Ensure(t.Context(), w.url("a.bin"), "")
		require.NoError(t, err)
		requireCopy(t, content, c)
		again, err := spool.Ensure(t.Context(), w.url("a.bin"), c.Version)
		require.NoError(t, err)
		require.Equal(t, c, again)

		// A later process uses the copy as it is.
		before, err := os.Stat(c.Path)
		require.NoError(t, err)
		later := w.again(t)
		c2, err := later.Spool(dir, nil).Ensure(t.Context(), w.url("a.bin"), c.Version)
		require.NoError(t, err)
		after, err := os.Stat(c2.Path)
		require.NoError(t, err)
		require.Equal(t, before.ModTime(), after.ModTime(), "not copied again")

		// Without the copy the plan's version still counts.
		other := filepath.Join(t.TempDir(), "other")
		_, err = later.Spool(other, nil).Ensure(t.Context(), w.url("a.bin"), c.Version)
		require.NoError(t, err)

		w.put("a.bin", noise(1<<20 + 1)[1:]+"")
		w.put("a.bin", noise(1<<20+1))
		for _, dir := range []string{dir, filepath.Join(t.TempDir(), "third")} {
			_, err = w.again(t).Spool(dir, nil).Ensure(t.Context(), w.url("a.bin"), c.Version)
			require.ErrorContains(t, err, "changed after the run read it")
			require.Equal(t, fault.UserData, fault.Of(err).Kind)
		}
		// A copy that no plan was made with is made anew.
		fresh, err := w.again(t).Spool(dir, nil).Ensure(t.Context(), w.url("a.bin"), "")
		require.NoError(t, err)
		requireCopy(t, noise(1<<20+1), fresh)
		require.NotContains(t, w.log.String(), "SECRET")
	})
}

func requireCopy(t *testing.T, content string, c remote.Copy) {
	t.Helper()
	got, err := os.ReadFile(c.Path)
	require.NoError(t, err)
	require.Equal(t, len(content), len(got))
	require.True(t, content == string(got), "the copy has other bytes")
	entries, err := filepath.Glob(filepath.Join(filepath.Dir(c.Path), "*.part"))
	require.NoError(t, err)
	require.Empty(t, entries)
}

func TestBrokenDownloadsGoOn(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		content := noise(4 << 20)
		w.put("a.bin", content)
		w.proxy.Plan(remotetest.Break{Down: 1 << 20}, remotetest.Break{Down: 10}, remotetest.Break{Down: 1 << 20},
			remotetest.Break{Up: 5})
		c, err := w.client.Spool(t.TempDir(), nil).Ensure(t.Context(), w.url("a.bin"), "")
		require.NoError(t, err)
		requireCopy(t, content, c)
		require.GreaterOrEqual(t, w.proxy.Connections(), 4)
		require.Contains(t, w.log.String(), "a transfer broke")
		require.NotContains(t, w.log.String(), "SECRET")
	})
}

func TestServersThatNeverFinish(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.put("a.bin", noise(1<<20))
		for range 6 {
			w.proxy.Plan(remotetest.Break{Down: 10})
		}
		dir := t.TempDir()
		_, err := w.client.Spool(dir, nil).Ensure(t.Context(), w.url("a.bin"), "")
		require.ErrorContains(t, err, "tried 6 times")
		require.True(t, fault.Of(err).Retryable)
		require.Equal(t, fault.Environment, fault.Of(err).Kind)
		left, err := os.ReadDir(dir)
		require.NoError(t, err)
		require.Empty(t, left)
	})
}

func TestSilentServersAreLeft(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		content := noise(3 << 20)
		w.put("a.bin", content)
		w.proxy.Plan(remotetest.Break{Down: 1 << 20, Stall: true})
		cfg := w.config
		cfg.IdleTimeout = 2 * time.Second // of each of six attempts, which go on where the last one stopped
		c := remote.New(cfg)
		defer c.Close()
		got, err := c.Spool(t.TempDir(), nil).Ensure(t.Context(), w.url("a.bin"), "")
		require.NoError(t, err)
		requireCopy(t, content, got)
		require.Contains(t, w.log.String(), "silent for")
	})
}

func TestCancelEndsTransfers(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.put("a.bin", noise(3<<20))
		w.proxy.Plan(remotetest.Break{Down: 1 << 20, Stall: true})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go func() {
			<-w.proxy.Stalled()
			cancel()
		}()
		_, err := w.client.Spool(t.TempDir(), nil).Ensure(ctx, w.url("a.bin"), "")
		require.Equal(t, fault.Canceled, fault.Of(err).Kind, "%v", err)
	})
}

func TestNobodyListens(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	addr := l.Addr().String()
	require.NoError(t, l.Close())
	dir := t.TempDir()
	remotetest.NewKey(t, filepath.Join(dir, "key"))
	c := remote.New(remote.Config{S3Endpoint: "http://" + addr,
		SFTPKeys: map[string]string{"joe": filepath.Join(dir, "key")}, HomeDir: dir, Pause: time.Millisecond})
	defer c.Close()
	for _, url := range []string{"http://" + addr + "/x", "s3://b/k", "sftp://joe@" + addr + "/x"} {
		_, err := c.Read(t.Context(), url, 10, nil)
		require.ErrorContains(t, err, "connection refused")
		require.ErrorContains(t, err, "tried 6 times")
		require.True(t, fault.Of(err).Retryable)
	}
}

func TestSpoolLimit(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.put("a", noise(600_000))
		w.put("b", noise(600_000))
		cfg := w.config
		cfg.SpoolBytes = 1 << 20
		c := remote.New(cfg)
		defer c.Close()
		dir := t.TempDir()
		spool := c.Spool(dir, nil)
		_, err := spool.Ensure(t.Context(), w.url("a"), "")
		require.NoError(t, err)
		_, err = spool.Ensure(t.Context(), w.url("b"), "")
		require.ErrorContains(t, err, "more than 1 MiB")
		require.Equal(t, fault.Environment, fault.Of(err).Kind)
		parts, _ := filepath.Glob(filepath.Join(dir, "*.part"))
		require.Empty(t, parts)
	})
}

func upload(t *testing.T, content string) remote.Upload {
	dir := t.TempDir()
	file := filepath.Join(dir, "out")
	putFile(t, file, content)
	return remote.Upload{Path: file, Bytes: int64(len(content)), Checksum: "sum-of-it", Temp: ".x.thalweg-abc.tmp"}
}

func TestAnotherVersionIsNotRemoved(t *testing.T) {
	writable(t, func(t *testing.T, w *world) {
		none, err := w.client.Look(t.Context(), w.url("a"), nil)
		require.NoError(t, err)
		require.Nil(t, none)
		w.put("a", "one")
		was, err := w.client.Look(t.Context(), w.url("a"), nil)
		require.NoError(t, err)
		w.put("a", "another")
		require.NoError(t, w.client.RemoveVersion(t.Context(), w.url("a"), *was, nil))
		require.Equal(t, []string{"a"}, w.names())
		was, err = w.client.Look(t.Context(), w.url("a"), nil)
		require.NoError(t, err)
		for range 2 {
			require.NoError(t, w.client.RemoveVersion(t.Context(), w.url("a"), *was, nil))
			require.Empty(t, w.names())
		}
	})
}

func TestStageShowsNothingUntilPublish(t *testing.T) {
	writable(t, func(t *testing.T, w *world) {
		content := noise(20 << 20)
		w.put("dir/old", "old")
		for _, name := range []string{"new/deep/x.csv", "dir/old"} {
			s, err := w.client.Stage(t.Context(), w.url(name), upload(t, content))
			require.NoError(t, err)
			if got, ok := w.get(name); ok {
				require.Equal(t, "old", got)
			}
			require.NoError(t, s.Publish(t.Context()))
			requireStored(t, w, name, content)
			require.NoError(t, s.Publish(t.Context()), "again")
			require.NoError(t, s.Discard(t.Context()), "does nothing any more")
			requireStored(t, w, name, content)
		}
		require.ElementsMatch(t, []string{"new/deep/x.csv", "dir/old"}, w.names())
	})
}

func requireStored(t *testing.T, w *world, name, content string) {
	t.Helper()
	got, ok := w.get(name)
	require.True(t, ok)
	require.True(t, got == content, "%d bytes are stored, %d were sent", len(got), len(content))
}

func TestDiscardLeavesNothing(t *testing.T) {
	writable(t, func(t *testing.T, w *world) {
		u := upload(t, noise(1<<20))
		s, err := w.client.Stage(t.Context(), w.url("x.csv"), u)
		require.NoError(t, err)
		require.NoError(t, s.Discard(t.Context()))
		require.Empty(t, w.names())
		require.Error(t, s.Publish(t.Context()))
		require.Empty(t, w.names())
		w.put("x.csv", strings.Repeat("x", 1<<20))
		require.Error(t, s.Publish(t.Context()), "a file of the same size is another one")
	})
}

func TestBrokenUploadsAreRepeated(t *testing.T) {
	writable(t, func(t *testing.T, w *world) {
		content := noise(20 << 20)
		w.proxy.Plan(remotetest.Break{Up: 1 << 20}, remotetest.Break{Up: 3 << 20}, remotetest.Break{Down: 5})
		s, err := w.client.Stage(t.Context(), w.url("x.csv"), upload(t, content))
		require.NoError(t, err)
		require.NoError(t, s.Publish(t.Context()))
		requireStored(t, w, "x.csv", content)
		require.Equal(t, []string{"x.csv"}, w.names())
	})
}

func TestFailedUploadLeavesNothing(t *testing.T) {
	writable(t, func(t *testing.T, w *world) {
		u := upload(t, noise(1<<20))
		for range 40 {
			w.proxy.Plan(remotetest.Break{Up: 20_000})
		}
		_, err := w.client.Stage(t.Context(), w.url("x.csv"), u)
		require.Error(t, err)
		require.True(t, fault.Of(err).Retryable)
		_, ok := w.get("x.csv")
		require.False(t, ok)
	})
}

func TestWhatDeadAttemptsLeftIsRemoved(t *testing.T) {
	writable(t, func(t *testing.T, w *world) {
		u := upload(t, "first")
		left := remote.Leftover{Temp: u.Temp}
		u.Named = func(_ context.Context, id string) error {
			require.Empty(t, w.names(), "nothing has been sent")
			left.Upload = id
			return nil
		}
		_, err := w.client.Stage(t.Context(), w.url("d/x.csv"), u) // and its process dies
		require.NoError(t, err)
		for range 2 { // any process may, and again
			require.NoError(t, w.again(t).Abandon(t.Context(), w.url("d/x.csv"), left))
			require.Empty(t, w.names())
		}
		s, err := w.again(t).Stage(t.Context(), w.url("d/x.csv"), upload(t, "second"))
		require.NoError(t, err)
		require.NoError(t, s.Publish(t.Context()))
		requireStored(t, w, "d/x.csv", "second")
		require.NoError(t, w.again(t).Abandon(t.Context(), w.url("d/x.csv"), left), "what is published stays")
		require.Equal(t, []string{"d/x.csv"}, w.names())
	})
}

func TestHTTPIsNotWritten(t *testing.T) {
	t.Parallel()
	w := httpsWorld(t)
	_, err := w.client.Stage(t.Context(), w.url("x"), upload(t, "x"))
	require.Equal(t, fault.Script, fault.Of(err).Kind)
	require.False(t, errors.Is(err, fs.ErrNotExist))
}

func TestSamples(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		content := noise(3 << 20)
		for _, footer := range []int{10, 200_000} {
			end := make([]byte, 8)
			binary.LittleEndian.PutUint32(end, uint32(footer))
			file := content[:len(content)-8] + string(end)
			w.put("a.parquet", file)
			path := filepath.Join(t.TempDir(), "sample")
			require.NoError(t, w.client.SampleParquet(t.Context(), w.url("a.parquet"), path, nil))
			got, err := os.ReadFile(path)
			require.NoError(t, err)
			require.Len(t, got, len(file))
			require.True(t, string(got[len(got)-footer-8:]) == file[len(file)-footer-8:])
			require.True(t, string(got[:1<<20]) == strings.Repeat("\x00", 1<<20), "the data were not read")

			require.NoError(t, w.client.Sample(t.Context(), w.url("a.parquet"), 1000, path, nil))
			got, err = os.ReadFile(path)
			require.NoError(t, err)
			require.Equal(t, file[:1000], string(got))
		}
		w.put("small", "abc")
		path := filepath.Join(t.TempDir(), "sample")
		require.NoError(t, w.client.Sample(t.Context(), w.url("small"), 1000, path, nil))
		got, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, "abc", string(got))
		require.NoError(t, w.client.SampleParquet(t.Context(), w.url("small"), path, nil))
		require.ErrorIs(t, w.client.Sample(t.Context(), w.url("none"), 10, path, nil), fs.ErrNotExist)
	})
}
