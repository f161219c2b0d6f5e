package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// openTerminal opens a pseudo-terminal of 80 columns: our side, and the one of a program.
func openTerminal(t *testing.T) (ours, theirs *os.File) {
	t.Helper()
	ours, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skip("no pseudo-terminals here: ", err)
	}
	t.Cleanup(func() { ours.Close() })
	require.NoError(t, unix.IoctlSetPointerInt(int(ours.Fd()), unix.TIOCSPTLCK, 0))
	n, err := unix.IoctlGetInt(int(ours.Fd()), unix.TIOCGPTN)
	require.NoError(t, err)
	require.NoError(t, unix.IoctlSetWinsize(int(ours.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 80}))
	theirs, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	require.NoError(t, err)
	t.Cleanup(func() { theirs.Close() })
	return ours, theirs
}

// TestSessionAtATerminal: lines of several parts, completion of tables and columns, Ctrl-C
// of a query, failures that end nothing, and the history of the next session.
func TestSessionAtATerminal(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "script.yaml"),
		[]byte("nodes:\n  read: {type: file_table, r: {urls: [in.csv], types: {amount: int}}, w: sales}\n"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "in.csv"), []byte("shop,amount\na,7\n"), 0o600))
	out, err := thalweg(t.Context(), dir, "run", "script.yaml").CombinedOutput()
	require.NoError(t, err, string(out))

	ours, theirs := openTerminal(t)
	cmd := thalweg(t.Context(), dir, "sql")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = theirs, theirs, theirs
	cmd.Env = append(cmd.Environ(), "TERM=xterm", "XDG_STATE_HOME="+dir, "NO_COLOR=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	require.NoError(t, cmd.Start())
	said := make(chan string, 1000)
	go func() {
		defer close(said)
		buf := make([]byte, 1<<12)
		for {
			n, err := ours.Read(buf)
			said <- string(buf[:n])
			if err != nil {
				return
			}
		}
	}()
	got := ""
	wait := func(text string) {
		t.Helper()
		late := time.After(time.Minute)
		for !strings.Contains(got, text) {
			select {
			case more := <-said:
				got += more
			case <-late:
				t.Fatalf("no %q in %q", text, got)
			}
		}
		_, got, _ = strings.Cut(got, text)
	}
	typed := func(keys, want string) {
		t.Helper()
		_, err := ours.WriteString(keys)
		require.NoError(t, err)
		wait(want)
	}
	wait("sql> ")
	typed("SELECT 6*amount\r", "...> ")
	typed("FROM sal\t", "FROM sales")
	typed("\r", "...> ")
	typed("WHERE am\t", "WHERE amount")
	typed(" = 7;\r", "42")
	wait("sql> ")
	typed("SELECT nosuch;\r", "there is no column")
	wait("sql> ")
	typed("\\d sales\r", "BIGINT")
	wait("sql> ")
	typed("SELECT sum(a.range * b.range) FROM range(1000000) a, range(1000000) b;\r", "b;")
	// whether it has begun or not, it ends
	time.AfterFunc(300*time.Millisecond, func() { _, _ = ours.WriteString("\x03") })
	wait("interrupted")
	wait("sql> ")
	typed("\\q\r", "")
	require.NoError(t, cmd.Wait())
	history, err := os.ReadFile(filepath.Join(dir, "thalweg", "sql_history"))
	require.NoError(t, err)
	require.Contains(t, string(history), "SELECT 6*amount FROM sales WHERE amount = 7;\nSELECT nosuch;\n\\d sales\n")
}
