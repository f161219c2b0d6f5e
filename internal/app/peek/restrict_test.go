package peek_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/app/inspect"
	"thalweg/internal/app/peek"
)

// restricted is the word with which the test binary tries what a child may not.
const restricted = "restricted"

// tries prints what a process can do that is held as a bare child is: a line each.
func tries(dir, readable string) int {
	notes, err := peek.Restrict(dir, readable)
	fmt.Println("notes:", len(notes), err)
	say := func(what string, err error) {
		fmt.Printf("%s: %v\n", what, err == nil)
	}
	try := func(what string, do func() error) { say(what, do()) }
	try("read its file", func() error { _, err := os.ReadFile(readable); return err })
	try("write its file", func() error { return os.WriteFile(readable, []byte("x"), 0o600) })
	try("list its file's directory", func() error { _, err := os.ReadDir(filepath.Dir(readable)); return err })
	try("read beside its file", func() error { _, err := os.ReadFile(readable + ".other"); return err })
	try("read passwd", func() error { _, err := os.ReadFile("/etc/passwd"); return err })
	try("read its parent's variables", func() error {
		_, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", os.Getppid()))
		return err
	})
	try("read its own variables", func() error { _, err := os.ReadFile("/proc/self/environ"); return err })
	own := filepath.Join(dir, "own")
	try("write in its directory", func() error { return os.WriteFile(own, []byte("#!/bin/sh\n"), 0o700) })
	try("write too much", func() error { return truncated(own) })
	try("execute its own", func() error { return exec.Command(own).Run() })
	try("execute another", func() error { return exec.Command("/bin/true").Run() })
	try("write beside its directory", func() error { return os.WriteFile(dir+".other", nil, 0o600) })
	try("link out of its directory", func() error { return os.Link(own, dir+".link") })
	try("connect", func() error {
		c, err := net.Dial("tcp", "127.0.0.1:9")
		if errors.Is(err, syscall.ECONNREFUSED) {
			return nil // it could
		}
		if err == nil {
			_ = c.Close()
		}
		return err
	})
	try("listen", func() error {
		var cfg net.ListenConfig
		cfg.SetMultipathTCP(false) // Landlock knows plain TCP
		l, err := cfg.Listen(context.Background(), "tcp", "127.0.0.1:0")
		if err == nil {
			_ = l.Close()
		}
		return err
	})
	for _, kind := range []struct {
		name                     string
		family, socket, protocol int
	}{
		{"TCP", syscall.AF_INET, syscall.SOCK_STREAM, 0}, {"TCP over IPv6", syscall.AF_INET6, syscall.SOCK_STREAM, 0},
		{"MPTCP", syscall.AF_INET, syscall.SOCK_STREAM, 262}, {"UDP", syscall.AF_INET, syscall.SOCK_DGRAM, 0},
		{"UDP over IPv6", syscall.AF_INET6, syscall.SOCK_DGRAM, 0},
		{"ping", syscall.AF_INET, syscall.SOCK_DGRAM, syscall.IPPROTO_ICMP},
		{"raw", syscall.AF_INET, syscall.SOCK_RAW, syscall.IPPROTO_ICMP}, {"packet", 17, syscall.SOCK_RAW, 0},
		{"unix", syscall.AF_UNIX, syscall.SOCK_STREAM, 0}, {"netlink", 16, syscall.SOCK_RAW, 0},
		{"vsock", 40, syscall.SOCK_STREAM, 0},
	} {
		fd, err := syscall.Socket(kind.family, kind.socket, kind.protocol)
		if err == nil {
			_ = syscall.Close(fd)
		}
		fmt.Printf("socket of %s: %v\n", kind.name, err)
	}
	_, err = syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	fmt.Printf("pair of sockets: %v\n", err)
	try("signal its parent", func() error { return syscall.Kill(os.Getppid(), 0) })
	return 0
}

// truncated makes a file longer than a child may.
func truncated(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Truncate(1 << 30)
}

// The system holds a child to its files, whatever is executed in it.
func TestTheSystemHoldsAChild(t *testing.T) {
	t.Parallel()
	dir, other := t.TempDir(), t.TempDir()
	readable := filepath.Join(other, "part")
	for _, name := range []string{readable, readable + ".other"} {
		require.NoError(t, os.WriteFile(name, []byte("rows"), 0o600))
	}
	cmd := exec.Command(os.Args[0], restricted, dir, readable)
	cmd.Env = []string{"A=b"}
	text, err := cmd.CombinedOutput()
	require.NoError(t, err, string(text))
	if strings.HasPrefix(string(text), "notes: 1") {
		t.Skip("this system does not hold children")
	}
	require.Equal(t, `notes: 0 <nil>
read its file: true
write its file: false
list its file's directory: false
read beside its file: false
read passwd: false
read its parent's variables: false
read its own variables: false
write in its directory: true
write too much: false
execute its own: false
execute another: false
write beside its directory: false
link out of its directory: false
connect: false
listen: false
socket of TCP: permission denied
socket of TCP over IPv6: permission denied
socket of MPTCP: permission denied
socket of UDP: permission denied
socket of UDP over IPv6: permission denied
socket of ping: permission denied
socket of raw: permission denied
socket of packet: permission denied
socket of unix: permission denied
socket of netlink: permission denied
socket of vsock: permission denied
pair of sockets: permission denied
signal its parent: false
`, string(text))
}

// kept is a sink that keeps what it gets.
type kept struct{ rows int }

func (k *kept) Begin(inspect.QueryResult) error { return nil }
func (k *kept) Row([]any) error                 { k.rows++; return nil }

// Whatever a child sends: no more is taken than is allowed, and nothing of it ends this process.
func FuzzWhatAChildSends(f *testing.F) {
	length := func(n uint64) string { return string(binary.AppendUvarint(nil, n)) }
	head := `{"columns":["a","b"],"types":["X","Y"],"text":[true,false]}`
	good := "H" + length(uint64(len(head))) + head + "R0s" + length(3) + "abcE"
	for _, seed := range []string{"", "E", good, "H" + length(1<<62), "HH", "R", good[:len(good)-3], "X",
		"H" + length(uint64(len(head))) + head + "Rs" + length(1<<40), "H" + length(2) + "{}R",
		"H" + length(uint64(len(head))) + head + "Riiff"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, sent []byte) {
		k := &kept{}
		_ = peek.ReadRows(bytes.NewReader(sent), 100, k) // that it returns is all
		require.LessOrEqual(t, k.rows, len(sent))
	})
	require.NoError(f, peek.ReadRows(strings.NewReader(good), 100, &kept{}))
	require.Error(f, peek.ReadRows(io.MultiReader(strings.NewReader(good[:len(good)-6]), strings.NewReader("s"+length(101)+
		strings.Repeat("x", 101))), 100, &kept{}))
}
