// Package redistest starts a server of Redis for a test. Only tests use it; a test without
// redis-server and redis-cli in PATH is skipped. A valkey-server does under the name redis-server.
package redistest

import (
	"bytes"
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/base/keeper"
	"thalweg/internal/test/effort"
)

const (
	serverProgram = "redis-server"
	clientProgram = "redis-cli"
)

// Server is a server that ends with its test.
type Server struct {
	URL  string // of its first database, without TLS
	Port string
	dir  string
	stop func()
}

// Here reports whether there is a server to start.
func Here() bool {
	_, err := keeper.Find(serverProgram)
	_, noClient := keeper.Find(clientProgram)
	return err == nil && noClient == nil
}

// Table reads a published table from the server of an address, as JSON: of each key a list of fields and values.
func Table(t testing.TB, url, table string) string {
	t.Helper()
	const script = "local at, out = redis.call('GET', KEYS[1]), {} " +
		"for _, k in ipairs(redis.call('KEYS', '*')) do if at and k:sub(1, #at) == at then " +
		"out[k:sub(#at + 1)] = redis.call('HGETALL', k) end end return cjson.encode(out)"
	out, ok := cli("-u", url, "EVAL", script, "1", table+":current")
	require.True(t, ok, out)
	return out
}

// Start starts a server with options of its command line, such as --requirepass x. Its port is on loopback. With
// --tls-port N it has no other, and URL is of that one.
func Start(t testing.TB, options ...string) *Server {
	t.Helper()
	if !Here() {
		t.Skip("there is no redis-server or no redis-cli here (Debian: apt-get install redis-server redis-tools)")
	}
	s := &Server{dir: shortDir(t)}
	require.Eventually(t, func() bool { return s.start(t, options) }, effort.Patience, time.Millisecond,
		"the server starts")
	return s
}

// shortDir is a directory whose name leaves room for that of a socket.
func shortDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "redis")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// start reports whether the server has got a port and answers.
func (s *Server) start(t testing.TB, options []string) bool {
	s.Port = FreePort(t)
	args := []string{"--bind", "127.0.0.1", "--port", s.Port, "--save", "", "--dir", s.dir, "--unixsocket",
		s.socket(), "--enable-debug-command", "yes"}
	for i, o := range options {
		if o == "--tls-port" {
			s.Port, args[3] = options[i+1], "0"
		}
	}
	s.URL = "redis://127.0.0.1:" + s.Port + "/0"
	ctx, end := context.WithCancel(context.WithoutCancel(t.Context()))
	var text bytes.Buffer
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		state, err := keeper.Run(ctx, "", keeper.Program{Path: serverProgram, Args: append(args, options...),
			Stdout: &text, Stderr: &text})
		t.Logf("redis-server: %v, %v", state, err)
	}()
	s.stop = func() { end(); <-ended }
	for deadline := time.Now().Add(effort.Patience); time.Now().Before(deadline); {
		if out, _ := cli("-s", s.socket(), "PING"); strings.Contains(out, "PONG") || strings.Contains(out, "NOAUTH") {
			t.Cleanup(s.stop)
			return true
		}
		select {
		case <-ended:
			t.Log(text.String())
			return false
		case <-time.After(time.Millisecond):
		}
	}
	s.stop()
	return false
}

func (s *Server) socket() string { return filepath.Join(s.dir, "s") }

// cli gives what redis-cli prints to programs, and whether it is content.
func cli(words ...string) (out string, ok bool) {
	var text bytes.Buffer
	state, err := keeper.Run(context.Background(), "", keeper.Program{Path: clientProgram, Args: words, Stdout: &text,
		Stderr: &text})
	return text.String(), err == nil && state.Err == nil && state.Status == syscall.WaitStatus(0)
}

// Stop kills the server, before the test ends.
func (s *Server) Stop() { s.stop() }

// Do carries out a command, and returns its answer as redis-cli prints it to programs.
func (s *Server) Do(t testing.TB, words ...string) string {
	t.Helper()
	out, ok := cli(append([]string{"-s", s.socket()}, words...)...)
	require.True(t, ok, "%v: %s", words, out)
	return strings.TrimSuffix(out, "\n")
}

// Keys lists the keys that match a pattern, those of more than one line as several.
func (s *Server) Keys(t testing.TB, pattern string) []string {
	t.Helper()
	return strings.Fields(s.Do(t, "KEYS", pattern))
}

// FreePort is a port of loopback that nobody has at the moment.
func FreePort(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	require.NoError(t, err)
	return port
}
