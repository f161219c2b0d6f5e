package s3

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/base/fault"
	"thalweg/internal/io/remote"
	"thalweg/internal/store/parts"
	"thalweg/internal/store/parts/cache"
	"thalweg/internal/test/partstest"
	"thalweg/internal/test/remotetest"
)

func open(t *testing.T, service *remotetest.S3, with func(*Config)) *Store {
	t.Helper()
	cfg := Config{URL: "s3://" + service.Bucket + "/a/prefix", PieceBytes: 1 << 20,
		Remote: remote.Config{S3Endpoint: service.Endpoint, Pause: time.Millisecond, PauseMax: 5 * time.Millisecond,
			IdleTimeout: 5 * time.Second}}
	if with != nil {
		with(&cfg)
	}
	s, err := New(context.Background(), cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

func noise(seed uint64, size int) []byte {
	out := make([]byte, size)
	rng := rand.NewChaCha8([32]byte{byte(seed)})
	_, _ = rng.Read(out) // never fails
	return out
}

func put(t *testing.T, s *Store, key string, content []byte) (parts.Info, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "part")
	require.NoError(t, os.WriteFile(path, content, 0o600))
	return s.Put(t.Context(), key, path)
}

func read(t *testing.T, s *Store, key string, offset, length int64) ([]byte, error) {
	t.Helper()
	body, _, err := s.Open(t.Context(), key, offset, length)
	if err != nil {
		return nil, err
	}
	defer func() { require.NoError(t, body.Close()) }()
	return io.ReadAll(body)
}

func listed(t *testing.T, s *Store) []string {
	t.Helper()
	out := []string{}
	for info, err := range s.List(t.Context(), "", "") {
		require.NoError(t, err)
		out = append(out, info.Key)
	}
	return out
}

func unfinished(t *testing.T, s *Store) []string {
	t.Helper()
	out := []string{}
	for info, err := range s.Unfinished(t.Context(), "", "") {
		require.NoError(t, err)
		out = append(out, info.Key)
	}
	return out
}

// suite runs the conformance suite; prepare changes each service.
func suite(t *testing.T, prepare func(*remotetest.S3)) {
	t.Helper()
	var mu sync.Mutex
	services := map[string]*remotetest.S3{}
	partstest.Run(t, func(t *testing.T) parts.Store {
		t.Helper()
		mu.Lock()
		defer mu.Unlock()
		service := services[t.Name()]
		if service == nil {
			service = remotetest.NewS3(t)
			prepare(service)
			services[t.Name()] = service
		}
		s, err := cache.New(open(t, service, nil), filepath.Join(t.TempDir(), "copies"), 64<<20)
		require.NoError(t, err)
		return s
	})
}

func TestConformance(t *testing.T) {
	t.Parallel()
	suite(t, func(*remotetest.S3) {})
}

// failing is a service that fails or breaks at every fourth request or so, some
// of them behind the work, but not at one for ever.
func failing(s *remotetest.S3) func(http.ResponseWriter, *http.Request) bool {
	const inTurnMax = 3
	var mu sync.Mutex
	var n int
	inTurn := map[string]int{}
	return func(w http.ResponseWriter, r *http.Request) bool {
		mu.Lock()
		n++
		i, key := n, r.Method+r.URL.String()
		fails := (i%6 == 0 || i%10 == 0 || i%13 == 0) && inTurn[key] < inTurnMax
		if inTurn[key]++; !fails {
			delete(inTurn, key)
		}
		mu.Unlock()
		switch {
		case !fails:
			return false
		case i%6 == 0:
			w.WriteHeader(http.StatusServiceUnavailable)
			return true
		case i%10 == 0: // it is carried out, and nobody hears of it
			s.Serve(httptest.NewRecorder(), r)
		}
		panic(http.ErrAbortHandler)
	}
}

// A service that fails and breaks all the time keeps the promises all the same.
func TestConformanceOfAFailingService(t *testing.T) {
	t.Parallel()
	suite(t, func(s *remotetest.S3) { s.Intercept(failing(s)) })
}

// A process that dies at any point of a Put leaves nothing that shows, and what
// it leaves is found and removed.
func TestDiesWhilePutting(t *testing.T) {
	t.Parallel()
	content := noise(1, 3<<20+5)
	for _, point := range []Point{Begun, Sent, Done} {
		t.Run(string(point), func(t *testing.T) {
			t.Parallel()
			service := remotetest.NewS3(t)
			dying := open(t, service, func(c *Config) {
				c.Checkpoint = func(at Point) {
					if at == point {
						runtime.Goexit()
					}
				}
			})
			path := filepath.Join(t.TempDir(), "part")
			require.NoError(t, os.WriteFile(path, content, 0o600))
			dead := make(chan struct{})
			go func() {
				defer close(dead)
				_, _ = dying.Put(context.Background(), "w/k", path) // does not return
			}()
			<-dead
			s := open(t, service, nil)
			if point == Done {
				require.Equal(t, []string{"w/k"}, listed(t, s))
				require.Empty(t, unfinished(t, s))
				return
			}
			require.Empty(t, listed(t, s))
			require.Equal(t, []string{"w/k"}, unfinished(t, s))
			_, err := put(t, s, "w/k2", content)
			require.NoError(t, err)
			require.NoError(t, s.Abandon(t.Context(), "w/k"))
			require.Empty(t, unfinished(t, s))
			require.Equal(t, []string{"w/k2"}, listed(t, s))
		})
	}
}

// A service that refuses If-None-Match is looked at first.
func TestServiceWithoutConditions(t *testing.T) {
	t.Parallel()
	service := remotetest.NewS3(t)
	service.Intercept(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Header.Get("If-None-Match") == "" {
			return false
		}
		w.WriteHeader(http.StatusNotImplemented)
		return true
	})
	s := open(t, service, nil)
	for _, size := range []int{100, 3 << 20} {
		key := fmt.Sprint("w/", size)
		_, err := put(t, s, key, noise(1, size))
		require.NoError(t, err)
		_, err = put(t, s, key, noise(2, size))
		require.ErrorIs(t, err, parts.ErrExists)
		got, err := read(t, s, key, 0, -1)
		require.NoError(t, err)
		require.True(t, bytes.Equal(noise(1, size), got))
	}
}

// A service that does not answer is a failure that may pass, and no file is lost.
func TestServiceIsDown(t *testing.T) {
	t.Parallel()
	service := remotetest.NewS3(t)
	service.Intercept(func(w http.ResponseWriter, _ *http.Request) bool {
		w.WriteHeader(http.StatusInternalServerError)
		return true
	})
	s := open(t, service, nil)
	path := filepath.Join(t.TempDir(), "part")
	require.NoError(t, os.WriteFile(path, noise(1, 3<<20), 0o600))
	_, err := s.Put(t.Context(), "w/k", path)
	f := fault.Of(err)
	require.Equal(t, fault.Environment, f.Kind)
	require.True(t, f.Retryable)
	require.FileExists(t, path)
	service.Intercept(func(http.ResponseWriter, *http.Request) bool { return false })
	_, err = s.Put(t.Context(), "w/k", path)
	require.NoError(t, err)
}

// Reading that stands still ends.
func TestServiceStandsStill(t *testing.T) {
	t.Parallel()
	service := remotetest.NewS3(t)
	s := open(t, service, func(c *Config) { c.Remote.IdleTimeout = 50 * time.Millisecond })
	_, err := put(t, s, "w/k", noise(1, 1000))
	require.NoError(t, err)
	service.Intercept(func(w http.ResponseWriter, r *http.Request) bool {
		w.Header().Set("Content-Range", "bytes 0-999/1000")
		w.Header().Set("Content-Length", "1000")
		w.WriteHeader(http.StatusPartialContent)
		_, _ = w.Write(noise(1, 10))
		w.(http.Flusher).Flush()
		<-r.Context().Done()
		return true
	})
	got, err := read(t, s, "w/k", 0, -1)
	require.Equal(t, noise(1, 10), got)
	require.Error(t, err)
	require.True(t, fault.Of(err).Retryable)
}

// Lists that are late, twice or out of order are never taken for what they are not.
func TestStrangeLists(t *testing.T) {
	t.Parallel()
	service := remotetest.NewS3(t)
	s := open(t, service, nil)
	var answer atomic.Pointer[[]string]
	service.Intercept(func(w http.ResponseWriter, r *http.Request) bool {
		pages := answer.Load()
		if pages == nil || r.Method != http.MethodGet {
			return false
		}
		at := 0
		if token := r.URL.Query().Get("continuation-token"); token != "" {
			_, _ = fmt.Sscan(token, &at)
		}
		var b strings.Builder
		fmt.Fprintf(&b,
			`<ListBucketResult><IsTruncated>%v</IsTruncated><NextContinuationToken>%d</NextContinuationToken>`,
			at+1 < len(*pages), at+1)
		for _, key := range strings.Fields((*pages)[at]) {
			fmt.Fprintf(&b, `<Contents><Key>a/prefix/%s</Key><Size>1</Size></Contents>`, key)
		}
		_, _ = io.WriteString(w, b.String()+`</ListBucketResult>`)
		return true
	})
	answer.Store(&[]string{"w/b w/a w/a", "", "w/b w/d", "w/e not%20a+key/"})
	require.Equal(t, []string{"w/a", "w/b", "w/d", "w/e"}, listed(t, s))
	require.NoError(t, s.Delete(t.Context(), "w/a"), "what is gone and still listed")
	answer.Store(&[]string{"w/b", "w/a"})
	var last error
	for _, err := range s.List(t.Context(), "", "") {
		last = err
	}
	require.ErrorContains(t, last, "order")
}

// Pieces that were damaged on their way are refused and sent again.
func TestDamagedOnTheWay(t *testing.T) {
	t.Parallel()
	service := remotetest.NewS3(t)
	var damaged atomic.Int64
	service.Intercept(func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPut && damaged.Add(1) == 1 {
			body, _ := io.ReadAll(r.Body)
			body[len(body)/2] ^= 1
			r.Body = io.NopCloser(bytes.NewReader(body))
		}
		return false
	})
	s := open(t, service, nil)
	for _, size := range []int{100, 3 << 20} {
		damaged.Store(0)
		key := fmt.Sprint("w/", size)
		_, err := put(t, s, key, noise(1, size))
		require.NoError(t, err)
		got, err := read(t, s, key, 0, -1)
		require.NoError(t, err)
		require.True(t, bytes.Equal(noise(1, size), got))
	}
}

func TestAddress(t *testing.T) {
	t.Parallel()
	for _, url := range []string{"https://x/y", "s3://", "x"} {
		_, err := New(t.Context(), Config{URL: url})
		require.Error(t, err, url)
	}
}

// A bucket that is not there is said, not taken for one without the part, and not tried again.
func TestNoBucket(t *testing.T) {
	t.Parallel()
	service := remotetest.NewS3(t)
	s := open(t, service, func(c *Config) { c.URL = "s3://nowhere/a" })
	_, err := put(t, s, "w/1", noise(1, 100))
	require.Equal(t, fault.UserData, fault.Of(err).Kind)
	require.False(t, fault.Of(err).Retryable)
	require.ErrorContains(t, err, "NoSuchBucket")
	require.Contains(t, fault.Of(err).Hint, "bucket's name")
	_, err = put(t, s, "w/2", noise(2, 3<<20)) // in pieces
	require.ErrorContains(t, err, "NoSuchBucket")
	_, err = read(t, s, "w/1", 0, -1)
	require.ErrorContains(t, err, "NoSuchBucket")
	require.NotErrorIs(t, err, parts.ErrNotFound)
	require.ErrorContains(t, s.Check(t.Context()), "there is no bucket nowhere")
	require.NoError(t, open(t, service, nil).Check(t.Context()))
}
