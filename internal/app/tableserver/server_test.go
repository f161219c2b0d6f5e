package tableserver_test

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/app/tableserver"
	"thalweg/internal/io/tableindex"
	"thalweg/internal/test/effort"
)

const rows = 1000

// index writes a file whose values are all of one version.
func index(t *testing.T, version int) string { return indexOf(t, fmt.Sprint("v", version)) }

// indexOf writes a file whose rows all have a value.
func indexOf(t *testing.T, value string) string {
	path := filepath.Join(t.TempDir(), "index")
	file, err := os.Create(path)
	require.NoError(t, err)
	defer file.Close()
	w, err := tableindex.NewWriter(file, rows, tableindex.Meta{Key: []string{"k"}, Columns: []string{"v"}})
	require.NoError(t, err)
	for i := range rows {
		require.NoError(t, w.Add([]byte(fmt.Sprint("key", i)), tableindex.Frame(nil, []byte(value))))
	}
	require.NoError(t, w.Finish())
	return path
}

// served is a server that ends with its test.
type served struct {
	*tableserver.Server
	plain, secure string
	client        *tls.Config
}

func serve(t *testing.T, o tableserver.Options, path string) *served {
	site := httptest.NewTLSServer(nil)
	t.Cleanup(site.Close)
	o.Address, o.TLSAddress, o.TLS = "127.0.0.1:0", "127.0.0.1:0", &tls.Config{Certificates: site.TLS.Certificates}
	o.Log = slog.New(slog.NewTextHandler(io.Discard, nil))
	o.MemoryBytes = cmp.Or(o.MemoryBytes, 1<<30)
	if o.MaxClients == 0 {
		o.MaxClients = 100
	}
	s, err := tableserver.New(t.Context(), path, o)
	require.NoError(t, err)
	require.NoError(t, s.Listen(t.Context()))
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, nil) }()
	t.Cleanup(func() {
		stop()
		require.NoError(t, <-ended)
		require.NoError(t, s.Close())
	})
	at := s.Addresses()
	return &served{s, at[0].String(), at[1].String(), site.Client().Transport.(*http.Transport).TLSClientConfig}
}

// dial connects by either front.
func (s *served) dial(t *testing.T, secure bool) net.Conn {
	c, err := net.Dial("tcp", s.plain)
	if secure {
		c, err = tls.Dial("tcp", s.secure, s.client)
	}
	require.NoError(t, err)
	t.Cleanup(func() { c.Close() })
	return c
}

// each does a test with each front.
func each(t *testing.T, test func(t *testing.T, secure bool)) {
	for name, secure := range map[string]bool{"plain": false, "TLS": true} {
		t.Run(name, func(t *testing.T) { test(t, secure) })
	}
}

func TestAnswers(t *testing.T) {
	s := serve(t, tableserver.Options{}, index(t, 1))
	each(t, func(t *testing.T, secure bool) {
		c := s.dial(t, secure)
		_, err := io.WriteString(c, strings.Repeat("GET key7\r\n", 50_000)+"GET none\r\nDBSIZE\r\nQUIT\r\n")
		require.NoError(t, err)
		got, err := io.ReadAll(c)
		require.NoError(t, err)
		require.Equal(t, strings.Repeat("$2\r\nv1\r\n", 50_000)+"$-1\r\n:1000\r\n+OK\r\n", string(got))
	})
}

// Fields of INFO have the names and the meaning that Redis gives them.
func TestInfoTellsWhatWasDone(t *testing.T) {
	s := serve(t, tableserver.Options{}, index(t, 1))
	c := s.dial(t, false)
	asked := strings.Repeat("GET key7\r\n", 1000)
	_, err := io.WriteString(c, asked)
	require.NoError(t, err)
	const answer = len("$2\r\nv1\r\n")
	_, err = io.ReadFull(c, make([]byte, 1000*answer))
	require.NoError(t, err)
	_, err = io.WriteString(c, "INFO\r\nQUIT\r\n")
	require.NoError(t, err)
	text, err := io.ReadAll(c)
	require.NoError(t, err)
	told := map[string]string{}
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		told[name] = value
	}
	require.Equal(t, "1000", told["total_commands_processed"])
	require.Equal(t, fmt.Sprint(len(asked)), told["total_net_input_bytes"])
	require.Equal(t, fmt.Sprint(1000*answer), told["total_net_output_bytes"])
	used := 0.0
	for _, name := range []string{"used_cpu_sys", "used_cpu_user"} {
		seconds, err := strconv.ParseFloat(told[name], 64)
		require.NoError(t, err, name)
		used += seconds
	}
	require.Positive(t, used)
	require.InDelta(t, used, s.Figures().CPU.Seconds(), 5)
}

func TestPasswords(t *testing.T) {
	s := serve(t, tableserver.Options{Check: func(user, password []byte) bool { return string(password) == "right" }},
		index(t, 1))
	each(t, func(t *testing.T, secure bool) {
		c := s.dial(t, secure)
		_, err := io.WriteString(c, "GET key7\r\nAUTH wrong\r\nAUTH right\r\nGET key7\r\nQUIT\r\n")
		require.NoError(t, err)
		got, err := io.ReadAll(c)
		require.NoError(t, err)
		require.Equal(t, "-NOAUTH Authentication required.\r\n-WRONGPASS invalid username-password pair or user is disabled."+
			"\r\n+OK\r\n$2\r\nv1\r\n+OK\r\n", string(got))
	})
}

func TestTooManyClients(t *testing.T) {
	s := serve(t, tableserver.Options{MaxClients: 1}, index(t, 1))
	first := s.dial(t, false)
	_, err := io.WriteString(first, "PING\r\n")
	require.NoError(t, err)
	line, err := bufio.NewReader(first).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "+PONG\r\n", line)
	got, err := io.ReadAll(s.dial(t, false))
	require.NoError(t, err)
	require.Equal(t, "-ERR max number of clients reached\r\n", string(got))
	_, err = tls.Dial("tcp", s.secure, s.client)
	require.Error(t, err)
}

// Whoever fetches no answers is disconnected, and nobody else waits.
func TestNoAnswersFetched(t *testing.T) {
	t.Parallel()
	s := serve(t, tableserver.Options{}, index(t, 1))
	each(t, func(t *testing.T, secure bool) {
		lost := s.Figures().Disconnected
		c := s.dial(t, secure)
		many := strings.Repeat("MGET"+strings.Repeat(" key1", 9)+"\r\n", 10_000)
		for err := error(nil); err == nil; {
			_, err = io.WriteString(c, many)
		}
		requireServed(t, s, secure)
		require.Eventually(t, func() bool {
			f := s.Figures()
			return f.Disconnected == lost+1 && f.Unsent == 0
		}, effort.Patience, time.Millisecond)
	})
}

// Answers that many clients together do not fetch are bounded, although none of them has too many.
func TestUnfetchedTogether(t *testing.T) {
	s := serve(t, tableserver.Options{}, indexOf(t, strings.Repeat("v", 100<<10)))
	const clients, asked = 10, 800 // of 100 KiB: less than one may have, more than all may
	most := int64(0)
	for i := range clients {
		_, err := io.WriteString(s.dial(t, false), strings.Repeat("GET key1\r\n", asked))
		require.NoError(t, err)
		require.Eventually(t, func() bool {
			f := s.Figures()
			most = max(most, f.Unsent)
			return f.Disconnected > 0 || f.Commands == int64(i+1)*asked
		}, effort.Patience, time.Millisecond)
		require.Less(t, most, int64(tableserver.MaxUnsentBytes+16<<20))
	}
	require.Eventually(t, func() bool { return s.Figures().Disconnected > 0 }, effort.Patience, time.Millisecond)
	require.Greater(t, most, int64(tableserver.MaxUnsentBytes*3/4), "nobody is disconnected before")
	other := s.dial(t, false)
	_, err := io.WriteString(other, "DBSIZE\r\nQUIT\r\n")
	require.NoError(t, err)
	got, err := io.ReadAll(other)
	require.NoError(t, err)
	require.Equal(t, ":1000\r\n+OK\r\n", string(got))
}

// While tables are switched to and fro, each answer is whole and of one of them.
func TestSwitches(t *testing.T) {
	files := []string{index(t, 1), index(t, 2)}
	damaged := index(t, 3)
	content, err := os.ReadFile(damaged)
	require.NoError(t, err)
	content[5000] ^= 1
	require.NoError(t, os.WriteFile(damaged, content, 0o600))
	s := serve(t, tableserver.Options{MemoryBytes: 2 * int64(len(content))}, files[0]) // those before have to go
	each(t, func(t *testing.T, secure bool) {
		var stop atomic.Bool
		seen := make(chan map[string]int)
		failed := make(chan error, 4)
		for range 4 {
			c := s.dial(t, secure)
			go func() {
				counts := map[string]int{}
				defer func() { seen <- counts }()
				in := bufio.NewReader(c)
				for !stop.Load() {
					if _, err := io.WriteString(c, "MGET key1 key999 key500\r\n"); err != nil {
						failed <- err
						return
					}
					var got strings.Builder
					for range 7 {
						line, err := in.ReadString('\n')
						if err != nil {
							failed <- err
							return
						}
						got.WriteString(line)
					}
					if counts[got.String()]++; len(counts) > 2 {
						failed <- fmt.Errorf("answers %v", counts)
						return
					}
				}
			}()
		}
		for i := range 40 {
			_, err := s.Switch(t.Context(), files[(i+1)%2])
			require.NoError(t, err)
			_, err = s.Switch(t.Context(), damaged)
			require.ErrorContains(t, err, "damaged")
		}
		stop.Store(true)
		for range 4 {
			for answer := range <-seen {
				require.Contains(t, []string{"*3\r\n" + strings.Repeat("$2\r\nv1\r\n", 3),
					"*3\r\n" + strings.Repeat("$2\r\nv2\r\n", 3)}, answer)
			}
		}
		select {
		case err := <-failed:
			require.NoError(t, err)
		default:
		}
	})
}

// A file that somebody writes into is served as it was from memory, and not at all from the disk.
func TestWrittenInItsPlace(t *testing.T) {
	for _, cold := range []bool{false, true} {
		path, told := index(t, 1), make(chan error, 10)
		s := serve(t, tableserver.Options{Cold: cold}, path)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			s.Follow(ctx, path, nil, func(_ tableserver.Switched, err error) { told <- err })
		}()
		content, err := os.ReadFile(path)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(path, bytes.ReplaceAll(content, []byte("v1"), []byte("v2")), 0o600))
		require.ErrorContains(t, <-told, "damaged")
		c := s.dial(t, false)
		_, err = io.WriteString(c, "GET key1\r\n")
		require.NoError(t, err)
		answer, err := bufio.NewReader(c).ReadString('\n')
		require.NoError(t, err)
		if cold {
			require.Contains(t, answer, "cannot be read")
		} else {
			require.Equal(t, "$2\r\n", answer)
		}
		stop()
		<-ended
	}
}

func TestTooLarge(t *testing.T) {
	_, err := tableserver.New(t.Context(), index(t, 1), tableserver.Options{MemoryBytes: 1000})
	require.ErrorContains(t, err, "it may take 1000 B of memory")
	info, err := os.Stat(index(t, 1))
	require.NoError(t, err)
	s, err := tableserver.New(t.Context(), index(t, 1), tableserver.Options{MemoryBytes: 2*info.Size() - 1,
		Log: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	_, err = s.Switch(t.Context(), index(t, 2))
	require.ErrorContains(t, err, "are served until then")
	require.NoError(t, s.Close())
	_, err = tableserver.New(t.Context(), "none", tableserver.Options{MemoryBytes: 1000})
	require.True(t, errors.Is(err, os.ErrNotExist))
}
