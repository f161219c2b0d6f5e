package main

import (
	"bufio"
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// cmdAsk sends commands to the server of a table whose standard error is a file, and prints its answers as they come:
// ask [-tls CERTIFICATE] LOG COMMAND…, each command a line.
func cmdAsk(ts *testscript.TestScript, neg bool, args []string) {
	pattern, certificate := `listening at (\S+)\n`, ""
	if len(args) > 1 && args[0] == "-tls" {
		pattern, certificate, args = `listening at (\S+), with TLS\n`, ts.ReadFile(args[1]), args[2:]
	}
	if neg || len(args) < 2 {
		ts.Fatalf("usage: ask [-tls CERTIFICATE] LOG COMMAND…")
	}
	cmdWaitfile(ts, false, []string{args[0], pattern})
	address := regexp.MustCompile(pattern).FindStringSubmatch(ts.ReadFile(args[0]))[1]
	c, err := net.Dial("tcp", address)
	ts.Check(err)
	if certificate != "" {
		trusted := x509.NewCertPool()
		trusted.AppendCertsFromPEM([]byte(certificate))
		c = tls.Client(c, &tls.Config{RootCAs: trusted, ServerName: "localhost"})
	}
	defer c.Close()
	_, err = io.WriteString(c, strings.Join(args[1:], "\r\n")+"\r\nQUIT\r\n")
	ts.Check(err)
	got, err := io.ReadAll(c)
	ts.Check(err)
	_, err = io.WriteString(ts.Stdout(), strings.ReplaceAll(string(got), "\r\n", "\n"))
	ts.Check(err)
}

// TestServeTableEnds tells a server to end while clients have sent more than it has answered. Each client gets the
// answers to all that it had sent before, as one that goes on sending does, whose connection ends behind an answer.
func TestServeTableEnds(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{"in.csv": "id,v\n1,one\n", "script.yaml": "nodes:\n" +
		"  read: {type: file_table, r: {urls: [in.csv], types: {id: int, v: string}}, w: t}\n" +
		"  write: {type: table_file, r: {table: t}, w: {url_template: t.twx, index: {key: id}, columns: [id, v]}}\n"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	said, err := thalweg(t.Context(), dir, "run", "script.yaml").CombinedOutput()
	require.NoError(t, err, string(said))
	for _, sign := range []os.Signal{syscall.SIGTERM, os.Interrupt} {
		t.Run(sign.String(), func(t *testing.T) {
			cmd := thalweg(t.Context(), dir, "serve-table", "t.twx", "--listen", "127.0.0.1:0")
			address, rest := startServingTable(t, cmd)
			const clients, sentBefore = 4, 50_000
			got, before := make(chan int64, clients), make(chan struct{}, clients)
			for range clients {
				go func() { got <- floodUntilClosed(t, address, sentBefore, before) }()
			}
			for range clients {
				<-before
			}
			require.NoError(t, cmd.Process.Signal(sign))
			for range clients {
				require.GreaterOrEqual(t, <-got, int64(sentBefore), "answers to what was sent before")
			}
			log, err := io.ReadAll(rest)
			require.NoError(t, err)
			require.NoError(t, cmd.Wait(), string(log))
			require.NotRegexp(t, "(?i)error|disconnected|interrupted", string(log))
		})
	}
}

// startServingTable starts a server, and returns its address and what else it says.
func startServingTable(t *testing.T, cmd *exec.Cmd) (address string, rest io.Reader) {
	t.Helper()
	said, err := cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill() }) // it has ended, if the test has not failed
	rest = bufio.NewReader(said)
	for {
		line, err := rest.(*bufio.Reader).ReadString('\n')
		require.NoError(t, err)
		if at, ok := strings.CutPrefix(line, "listening at "); ok {
			return strings.TrimSpace(at), rest
		}
	}
}

// floodUntilClosed sends commands without waiting for their answers until the server ends, and tells when it has sent
// some of them. It returns how many were answered. The connection must end behind an answer.
func floodUntilClosed(t *testing.T, address string, some int64, before chan<- struct{}) (answers int64) {
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Error(err)
		before <- struct{}{}
		return 0
	}
	defer c.Close()
	const command, answer, each = "GET 1\r\n", "$3\r\none\r\n", 100
	var ended atomic.Bool
	sent, answered := make(chan struct{}), make(chan struct{})
	first, enough := sync.OnceFunc(func() { close(answered) }), sync.OnceFunc(func() { before <- struct{}{} })
	go func() {
		defer close(sent)
		defer enough()
		for n := int64(0); !ended.Load(); n += each {
			if n == some {
				<-answered // else the server may not know of the connection
				awaitArrival(t, c)
				enough()
			}
			if _, err := io.WriteString(c, strings.Repeat(command, each)); err != nil {
				break
			}
		}
	}()
	in, got := bufio.NewReader(c), make([]byte, len(answer))
	for ; ; answers++ {
		n, failed := io.ReadFull(in, got)
		if err = failed; err == nil && string(got) != answer || err != nil && n > 0 {
			err = fmt.Errorf("a wrong or cut answer: %q, %v", got[:n], err)
		}
		if err != nil {
			break
		}
		first()
	}
	first()
	ended.Store(true)
	c.Close()
	<-sent
	// what is sent later than the server reads has its connection reset
	if err != io.EOF && !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("after %d answers: %v", answers, err)
	}
	return answers
}

// awaitArrival waits until all that was written has come to the other side's machine.
func awaitArrival(t *testing.T, c net.Conn) {
	raw, err := c.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Error(err)
		return
	}
	for underway := 1; underway > 0; runtime.Gosched() {
		failed := raw.Control(func(fd uintptr) { underway, err = unix.IoctlGetInt(int(fd), unix.TIOCOUTQ) })
		if err = cmp.Or(failed, err); err != nil {
			t.Error(err)
			return
		}
	}
}
