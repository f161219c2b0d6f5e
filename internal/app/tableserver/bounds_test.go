package tableserver_test

import (
	"errors"
	"io"
	"net"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/app/tableserver"
	"thalweg/internal/test/effort"
)

// requireServed requires that another client gets its answers meanwhile.
func requireServed(t *testing.T, s *served, secure bool) {
	t.Helper()
	c := s.dial(t, secure)
	_, err := io.WriteString(c, "GET key7\r\nQUIT\r\n")
	require.NoError(t, err)
	got, err := io.ReadAll(c)
	require.NoError(t, err)
	require.Equal(t, "$2\r\nv1\r\n+OK\r\n", string(got))
}

// heap is what the process has in use.
func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// What announces or sends more than there may be is told so and is disconnected, before it takes memory.
func TestOversized(t *testing.T) {
	s := serve(t, tableserver.Options{}, index(t, 1))
	argument := "$65536\r\n" + strings.Repeat("x", 64<<10) + "\r\n"
	for name, tc := range map[string]struct {
		sent, says string
		// unread: the server hangs up before it has read all of it. The kernel then resets the connection, which may
		// take the answer back that is under way.
		unread bool
	}{
		"a bulk of 1 GB":       {"*2\r\n$3\r\nGET\r\n$1073741824\r\n", "invalid length of an argument: at most 65536", false},
		"a million arguments":  {"*1000000\r\n", "invalid number of arguments: at most 65536", false},
		"nested arrays":        {strings.Repeat("*1\r\n", 100_000), "expected '$', got '*'", true},
		"a line without end":   {strings.Repeat("x", 80<<10), "too big inline request", true},
		"a long line":          {strings.Repeat("x", 70<<10) + "\r\n", "too big inline request", true},
		"a line of many words": {strings.Repeat("x ", 1000) + "\r\n", "too many words in a line", false},
		"a command of 12 MB":   {"*193\r\n" + strings.Repeat(argument, 192), "a command has at most 8388608 bytes", true},
	} {
		t.Run(name, func(t *testing.T) {
			each(t, func(t *testing.T, secure bool) {
				c := s.dial(t, secure)
				go io.WriteString(c, tc.sent) // it ends with the connection, at the latest
				got, err := io.ReadAll(c)
				if tc.unread && errors.Is(err, syscall.ECONNRESET) && len(got) == 0 {
					requireServed(t, s, secure)
					return
				}
				require.Equal(t, "-ERR Protocol error: "+tc.says+"\r\n", string(got))
				if !tc.unread {
					require.NoError(t, err)
				}
				requireServed(t, s, secure)
			})
		})
	}
}

// Commands that come byte by byte, or never whole, keep nobody waiting and little memory.
func TestSlowClients(t *testing.T) {
	s := serve(t, tableserver.Options{MaxClients: 1000}, index(t, 1))
	each(t, func(t *testing.T, secure bool) {
		before := heap()
		const slow = 200
		connections := make([]net.Conn, slow)
		for i := range connections {
			connections[i] = s.dial(t, secure)
		}
		for _, b := range []byte("*2\r\n$3\r\nGET\r\n$4\r\nkey7\r") {
			for _, c := range connections {
				_, err := c.Write([]byte{b})
				require.NoError(t, err)
			}
			requireServed(t, s, secure)
		}
		require.Less(t, int64(heap()-before)/slow, int64(200<<10), "bytes of a client, on both sides")
		for _, c := range connections {
			_, err := io.WriteString(c, "\nQUIT\r\n")
			require.NoError(t, err)
			got, err := io.ReadAll(c)
			require.NoError(t, err)
			require.Equal(t, "$2\r\nv1\r\n+OK\r\n", string(got))
		}
	})
}

// Strangers who never say who they are go after a while.
func TestStrangers(t *testing.T) {
	t.Parallel()
	s := serve(t, tableserver.Options{Check: func(_, password []byte) bool { return string(password) == "right" }},
		index(t, 1))
	each(t, func(t *testing.T, secure bool) {
		t.Parallel()
		silent, known := s.dial(t, secure), s.dial(t, secure)
		_, err := io.WriteString(known, "AUTH right\r\n")
		require.NoError(t, err)
		require.NoError(t, silent.SetReadDeadline(time.Now().Add(effort.Patience)))
		got, err := io.ReadAll(silent)
		require.NoError(t, err)
		require.Empty(t, got)
		_, err = io.WriteString(known, "GET key7\r\nQUIT\r\n")
		require.NoError(t, err)
		got, err = io.ReadAll(known)
		require.NoError(t, err)
		require.Equal(t, "+OK\r\n$2\r\nv1\r\n+OK\r\n", string(got))
	})
}

// All that clients have begun and not ended is bounded together.
func TestUnendedCommands(t *testing.T) {
	s := serve(t, tableserver.Options{MaxClients: 1000}, index(t, 1))
	part := "*64000\r\n$4\r\nMGET\r\n" + strings.Repeat("$100\r\n"+strings.Repeat("k", 100)+"\r\n", 60_000)
	for range 60 {
		c := s.dial(t, false)
		_, _ = io.WriteString(c, part) // those who are too many are disconnected
		require.Less(t, s.Figures().Pending, int64(tableserver.MaxPendingBytes+32<<20))
	}
	require.Eventually(t, func() bool { return s.Figures().Disconnected > 0 }, effort.Patience, time.Millisecond)
	requireServed(t, s, false)
}
