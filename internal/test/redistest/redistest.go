// Package redistest starts a server of Redis for a test. Only tests use it; a test without
// redis-server and redis-cli on the machine is skipped.
package redistest

import (
	"bytes"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/test/effort"
)

// Server is a server that ends with its test.
type Server struct {
	URL  string // of its first database, without TLS
	Port string
	dir  string
}

// Here reports whether there is a server to start.
func Here() bool {
	_, err := exec.LookPath("redis-server")
	_, noClient := exec.LookPath("redis-cli")
	return err == nil && noClient == nil
}

// Table reads a published table from the server of an address, as JSON: of each key a list of fields and values.
func Table(t testing.TB, url, table string) string {
	t.Helper()
	const script = "local at, out = redis.call('GET', KEYS[1]), {} " +
		"for _, k in ipairs(redis.call('KEYS', '*')) do if at and k:sub(1, #at) == at then " +
		"out[k:sub(#at + 1)] = redis.call('HGETALL', k) end end return cjson.encode(out)"
	out, err := exec.Command("redis-cli", "-u", url, "EVAL", script, "1", table+":current").CombinedOutput()
	require.NoError(t, err, string(out))
	return string(out)
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
	cmd := exec.Command("redis-server", append(args, options...)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	var text bytes.Buffer
	cmd.Stdout, cmd.Stderr = &text, &text
	if err := cmd.Start(); err != nil {
		t.Logf("start redis-server: %v", err)
		return false
	}
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	end := func() { _ = cmd.Process.Kill(); <-ended }
	for deadline := time.Now().Add(effort.Patience); time.Now().Before(deadline); {
		if out, err := s.cli("PING").CombinedOutput(); err == nil &&
			(strings.Contains(string(out), "PONG") || strings.Contains(string(out), "NOAUTH")) {
			t.Cleanup(end)
			return true
		}
		select {
		case <-ended:
			t.Logf("redis-server ended: %s", text.String())
			return false
		case <-time.After(time.Millisecond):
		}
	}
	end()
	return false
}

func (s *Server) socket() string { return filepath.Join(s.dir, "s") }

func (s *Server) cli(words ...string) *exec.Cmd {
	return exec.Command("redis-cli", append([]string{"-s", s.socket()}, words...)...)
}

// Do carries out a command, and returns its answer as redis-cli prints it to programs.
func (s *Server) Do(t testing.TB, words ...string) string {
	t.Helper()
	out, err := s.cli(words...).CombinedOutput()
	require.NoError(t, err, "%v: %s", words, out)
	return strings.TrimSuffix(string(out), "\n")
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
